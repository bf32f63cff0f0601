// SPDX-License-Identifier: Apache-2.0
// Which prompt asks for a number that stands somewhere in a filler, and what is the number of an answer?
// Prompts are made to the token. Refers to the tokenizer given; plain values otherwise.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/text.h"

namespace plimsoll::serve {

inline constexpr std::int64_t kPasskeyAnswerTokens = 12;

class PasskeyPrompts {
 public:
  /// `leading`: the token before every text, if the model wants one.
  PasskeyPrompts(const text::Tokenizer& tokenizer, std::optional<text::TokenId> leading);

  /// A prompt of length - kPasskeyAnswerTokens tokens with `key` behind `depth` percent of the filler, where
  /// a line of it ends; nothing when the key and the question alone are longer.
  std::optional<std::vector<text::TokenId>> make(std::int64_t length, int depth,
                                                 const std::string& key) const;

 private:
  std::vector<text::TokenId> encode(std::string_view text) const;

  const text::Tokenizer& tokenizer_;
  std::vector<text::TokenId> opening_, filler_, question_;
};

/// The first digits of an answer that stand together; empty when there are none.
std::string first_number(std::string_view answer);

}  // namespace plimsoll::serve
