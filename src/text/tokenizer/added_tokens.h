// SPDX-License-Identifier: Apache-2.0
// Tokens that are found in the text as they stand, before the model sees it ("<|im_end|>"): where they are,
// leftmost and longest first, with the reference's rules on words and blanks around them.
// Built once, then read-only for any thread.
#pragma once

#include <array>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/result.h"
#include "text/text.h"
#include "text/tokenizer/normalizer.h"

namespace plimsoll::text {

struct AddedToken {
  TokenId id = 0;
  std::string content;
  bool is_special = false;
  bool is_normalized = false;   // looked for in normalised text
  bool is_single_word = false;  // not inside a word
  bool strips_left = false;     // takes the blanks before it
  bool strips_right = false;
  bool keeps_spelling = true;  // normalising leaves its text as it is; else the reference never skips it
};

class AddedTokens {
 public:
  /// Errors: kMalformed when a token's text is longer than 1,024 bytes (searching must stay linear).
  static Result<AddedTokens> build(std::vector<AddedToken> tokens, const Normalizer& normalizer);

  struct Part {
    Span span;
    const AddedToken* token = nullptr;  // null: text between tokens
  };
  enum class Stage { kRawText, kNormalizedText };
  /// The parts of `text` in order. With `with_special` false, special tokens are plain text; they are never
  /// found across one of `barriers` (ascending).
  std::vector<Part> split(std::string_view text, Stage stage, bool with_special,
                          std::span<const std::size_t> barriers = {}) const;

  /// Places inside `text` at which it must be broken so that no special token of the stage is found in it:
  /// one behind the first character of each, also of those within others. And the ends of the text, blanks
  /// aside, where a special token might begin or end that other text completes.
  std::vector<std::size_t> special_breaks(std::string_view text, Stage stage) const;

  const std::vector<AddedToken>& tokens() const { return tokens_; }
  const AddedToken* find(TokenId id) const;
  const AddedToken* find(std::string_view content) const;
  TokenId highest_id() const { return highest_; }
  bool has_stage(Stage stage) const { return !tries_[static_cast<std::size_t>(stage)].nodes.empty(); }

 private:
  struct Node {
    std::vector<std::pair<unsigned char, std::int32_t>> children;  // by byte, ascending
    std::int32_t token = -1;                                       // index into tokens_
  };
  struct Trie {
    std::vector<Node> nodes;
    std::array<std::int32_t, 256> first{};  // child of the root per byte, -1 for none
    int num_first = 0;                      // such children
    char only_first = 0;                    // the byte, when there is one
    /// The next place where a token may start; the text's size when there is none.
    std::size_t next_start(std::string_view text, std::size_t from) const;
    void insert(std::string_view content, std::int32_t token);
    std::int32_t child(std::int32_t node, unsigned char byte) const;
  };

  bool begins_special(std::string_view text, Stage stage) const;
  bool ends_special(std::string_view text, Stage stage) const;

  std::vector<AddedToken> tokens_;
  std::array<Trie, 2> tries_;  // by stage
  std::unordered_map<TokenId, std::size_t> by_id_;
  std::unordered_map<std::string, std::size_t> by_content_;
  TokenId highest_ = -1;
  std::size_t longest_special_ = 0;  // bytes
};

}  // namespace plimsoll::text
