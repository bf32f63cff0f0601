// SPDX-License-Identifier: Apache-2.0
// What text does a sequence of ids become, and where does a stop string end it? Holds back bytes that are no
// whole character yet and text that may turn out to be the start of a stop string. One sequence, one thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/model_context.h"

namespace plimsoll::serve {

/// Finds the earliest of several strings in a text that arrives in pieces.
class StopMatcher {
 public:
  explicit StopMatcher(std::vector<std::string> stops) : stops_(std::move(stops)) {}

  struct Found {
    std::string text;                 // safe to send: before the match, or what can no longer be a match
    std::optional<std::string> stop;  // the string that matched
  };
  Found push(std::string_view text);
  /// What is still held back; it is no stop string.
  std::string flush();

 private:
  std::vector<std::string> stops_;
  std::string held_;
};

struct ChoiceTextOptions {
  std::vector<std::string> stop;
  bool skip_special_tokens = true;
  bool include_stop = false;    // keep the stop string in the text
  std::int64_t min_tokens = 0;  // stop strings count only after so many tokens
};

class ChoiceText {
 public:
  /// Without a tokenizer every text is empty.
  ChoiceText(std::shared_ptr<const text::Tokenizer> tokenizer, ChoiceTextOptions options);

  /// Takes one token. Its text may come with a later one. Once stop() is set no more tokens are to be pushed.
  std::string push(TokenId id);
  /// The rest, at the end of a sequence that no stop string ended.
  std::string flush();
  const std::optional<std::string>& stop() const { return stop_; }

 private:
  std::string match(std::string_view text);

  std::optional<text::StreamDecoder> decoder_;
  StopMatcher matcher_;
  ChoiceTextOptions options_;
  std::int64_t num_tokens_ = 0;
  std::optional<std::string> stop_;
};

}  // namespace plimsoll::serve
