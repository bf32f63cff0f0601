// SPDX-License-Identifier: Apache-2.0
// SentencePiece's compiled normalisation rules: a double-array trie from character sequences to their
// replacements, as `.model`, tokenizer.json and GGUF files carry it. Owns a copy of the bytes, every read is
// checked. Read-only after parsing, for any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/rewriter.h"

namespace plimsoll::text {

class Charsmap {
 public:
  struct Match {
    std::size_t bytes = 0;         // of the text
    std::string_view replacement;  // owned by the charsmap
  };

  /// `blob`: length of the trie in bytes (32 bits, little-endian), the trie's 32-bit units, then replacements
  /// that end in NUL. Rules for more than 1,024 bytes are never found.
  /// Errors: kMalformed when the lengths do not agree or a replacement is absurdly long.
  static Result<Charsmap> parse(std::string_view blob);

  /// The longest rule that `text` starts with, which is what SentencePiece applies.
  std::optional<Match> longest(std::string_view text) const;
  /// Rewrites as Hugging Face tokenizers 0.23.3 does, which differs: a grapheme cluster below 6 bytes becomes
  /// the replacement of the shortest rule that it starts with; where there is none, and in longer clusters,
  /// each character does.
  void apply(Rewriter& out) const;

 private:
  Charsmap() = default;
  template <class Found>
  void each_rule(std::string_view text, Found&& found) const;
  std::optional<std::string_view> shortest(std::string_view text) const;
  std::optional<std::string_view> replacement_at(std::uint32_t offset) const;

  std::vector<std::uint32_t> units_;
  std::string replacements_;
  std::array<bool, 128> is_plain_{};  // no rule starts with this ASCII character
};

}  // namespace plimsoll::text
