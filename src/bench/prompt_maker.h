// SPDX-License-Identifier: Apache-2.0
// How does a text of exactly so many tokens come about? From random words of the tokenizer's own vocabulary,
// counted and mended until the number is right. One maker is one thread's; the tokenizer outlives it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "bench/bench.h"

namespace plimsoll::bench {

/// Prompts are made before the first is sent, so that making them disturbs no clock: some 5 bytes a token,
/// all in memory. Errors: kUsage for more than 10^9 tokens, or when `tokens` could not be counted.
Status check_total(std::optional<std::int64_t> tokens);

class PromptMaker {
 public:
  /// Without a tokenizer a token is a word of a fixed English list.
  /// Errors: kUnsupported when the vocabulary holds no words that stay one token each side by side.
  static Result<PromptMaker> make(const text::Tokenizer* tokenizer, const std::string& tokenizer_name,
                                  std::uint64_t seed);

  /// Where the text stands: special tokens are put before the first turn of a conversation alone.
  enum class Place { kFirst, kFollowUp };

  std::int64_t num_special() const { return num_special_; }
  workload::Random& random() { return random_; }

  /// `head` and random words behind it, `tokens` tokens together, special tokens included at kFirst. Empty
  /// when no words were found that do.
  std::string complete(std::string head, std::int64_t tokens, Place place);

  /// A first turn that consists of blocks, and behind them of random words. Blocks of one id hold the same
  /// words; special tokens belong to the first block. Where the vocabulary joins words over the border of
  /// blocks the last blocks are replaced by random words until the number of tokens is right.
  std::string of_blocks(std::span<const std::int64_t> ids, std::int64_t block_tokens, std::int64_t tokens);

 private:
  std::int64_t count(std::string_view text, Place place) const;
  std::string_view word(workload::Random& random) const;
  std::string_view opener(workload::Random& random) const;
  void append_block(std::int64_t id, std::int64_t tokens, std::string& text) const;

  const text::Tokenizer* tokenizer_ = nullptr;
  std::uint64_t seed_ = 0;
  workload::Random random_;
  std::int64_t num_special_ = 0;
  std::vector<std::string> words_;    // each with a blank before it
  std::vector<std::string> openers_;  // those that are one token without the blank too; never empty
};

}  // namespace plimsoll::bench
