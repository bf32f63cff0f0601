// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/wordpiece_model.h"

#include "text/tokenizer/utf8_steps.h"
#include "text/tokenizer/vocabulary_trie.h"
#include "text/unicode.h"

namespace plimsoll::text {
WordPieceModel::WordPieceModel(const Vocabulary& vocabulary, Options options)
    : options_(std::move(options)),
      trie_(trie_of(vocabulary)),
      inside_(trie_.node_of(options_.continuing_prefix)) {}

void WordPieceModel::encode(std::string_view piece, const PieceSink& sink) const {
  struct Token {
    TokenId id;
    std::size_t end;
  };
  thread_local std::vector<Token> tokens;
  tokens.clear();
  // Every character is at least one byte: short words need no counting.
  bool is_known =
      piece.size() <= options_.max_characters || num_code_points(piece) <= options_.max_characters;
  for (std::size_t begin = 0; is_known && begin < piece.size();) {
    Token longest{-1, 0};
    const std::optional<PrefixTrie::Node> start = begin == 0 ? PrefixTrie::kRoot : inside_;
    if (start)
      trie_.each_prefix(
          piece.substr(begin, kLongestToken),
          [&](std::size_t length, TokenId id) {
            if (is_boundary(piece, begin + length)) longest = {id, begin + length};
          },
          *start);
    is_known = longest.id >= 0;
    if (is_known) tokens.push_back(longest);
    begin = longest.end;
  }
  if (!is_known) {
    if (options_.unknown_id) sink.add(*options_.unknown_id, 0, piece.size());
    return;
  }
  std::size_t begin = 0;
  for (const Token& token : tokens) {
    sink.add(token.id, begin, token.end);
    begin = token.end;
  }
}

}  // namespace plimsoll::text
