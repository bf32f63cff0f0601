// SPDX-License-Identifier: Apache-2.0
// SentencePiece's own normalisation: rules of the charsmap, blanks squeezed and spelled "▁", a blank put in
// front. Unlike Hugging Face's it takes the longest rule at every position and leaves user-defined symbols as
// they are. Immutable after building; any thread may use one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "text/tokenizer/charsmap.h"
#include "text/tokenizer/prefix_trie.h"
#include "text/tokenizer/sentencepiece_file.h"

namespace plimsoll::text {

class SentencePieceText {
 public:
  /// Settings of `file`; nothing of it is kept. Errors: kMalformed for a damaged charsmap.
  static Result<SentencePieceText> build(const SentencePieceFile& file);

  /// Bytes of the longest user-defined symbol that `text` starts with; 0 when there is none.
  std::size_t user_symbol(std::string_view text) const;

  /// Replaces `normalized` by what pieces are looked for in. Bytes of `text` that are not UTF-8 become
  /// U+FFFD. Unless null, `origin` gets, for each byte of `normalized` and for its end, the place in `text`
  /// where what it stands for starts.
  void normalize(std::string_view text, std::string& normalized, std::vector<std::size_t>* origin) const;

 private:
  struct Prefix {
    std::string_view text;  // normalised
    std::size_t bytes = 0;  // of the source
  };
  class Output;
  SentencePieceText() = default;
  Prefix normalize_prefix(std::string_view text) const;

  std::optional<Charsmap> charsmap_;
  PrefixTrie user_symbols_;
  bool has_user_symbols_ = false;
  bool add_dummy_prefix_ = true;
  bool remove_extra_whitespaces_ = true;
  bool escape_whitespaces_ = true;
  bool treat_whitespace_as_suffix_ = false;
};

}  // namespace plimsoll::text
