// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/unigram_model.h"

#include <algorithm>
#include <limits>

#include "text/tokenizer/byte_tokens.h"
#include "text/tokenizer/utf8_steps.h"
#include "text/tokenizer/vocabulary_trie.h"

namespace plimsoll::text {
namespace {

constexpr TokenId kUnknown = -1;  // in the lattice only: the text has no token
// As the reference: an unknown character costs this more than the worst token.
constexpr double kUnknownPenalty = 10.0;
// Working memory beyond this many nodes is given back after the piece.
constexpr std::size_t kKeptNodes = std::size_t{1} << 16;

}  // namespace

Result<std::unique_ptr<UnigramModel>> UnigramModel::build(const Vocabulary& vocabulary,
                                                          std::vector<double> scores, Options options) {
  if (scores.size() != static_cast<std::size_t>(vocabulary.size()))
    return fail(ErrorCode::kMalformed, "a Unigram vocabulary of " + std::to_string(vocabulary.size()) +
                                           " tokens has " + std::to_string(scores.size()) + " scores");
  if (options.unknown_id && !vocabulary.has(*options.unknown_id))
    return fail(ErrorCode::kMalformed, "the unknown token's id " + std::to_string(*options.unknown_id) +
                                           " is not in the vocabulary");
  PLIMSOLL_TRY_VOID(check_token_lengths(vocabulary));
  return std::unique_ptr<UnigramModel>(new UnigramModel(vocabulary, std::move(scores), std::move(options)));
}

UnigramModel::UnigramModel(const Vocabulary& vocabulary, std::vector<double> scores, Options options)
    : vocabulary_(vocabulary),
      scores_(std::move(scores)),
      options_(std::move(options)),
      trie_(trie_of(vocabulary)),
      byte_ids_(byte_token_ids(vocabulary)) {
  double lowest = std::numeric_limits<double>::infinity();
  for (TokenId id = 0; id < vocabulary.size(); ++id)
    if (vocabulary.has(id)) lowest = std::min(lowest, scores_[static_cast<std::size_t>(id)]);
  unknown_score_ = lowest - kUnknownPenalty;
}

void UnigramModel::find_best(std::string_view piece, std::vector<Node>& nodes) const {
  nodes.assign(piece.size() + 1, Node{});
  const auto offer = [&](std::size_t begin, std::size_t length, TokenId id, double score) {
    Node& node = nodes[begin + length];
    // The first of equal ways stays: of two tokens with one end, the one that starts further left.
    if (node.length == 0 || score > node.score) node = {score, static_cast<std::uint32_t>(length), id};
  };
  for (std::size_t at = 0; at < piece.size();) {
    const double till_here = nodes[at].score;
    const std::size_t character = character_bytes(piece, at);
    bool has_single = false;
    trie_.each_prefix(piece.substr(at), [&](std::size_t length, TokenId id) {
      offer(at, length, id, scores_[static_cast<std::size_t>(id)] + till_here);
      has_single |= length == character;
    });
    if (!has_single) offer(at, character, options_.unknown_id.value_or(kUnknown), unknown_score_ + till_here);
    at += character;
  }
}

void UnigramModel::encode(std::string_view piece, const PieceSink& sink) const {
  if (piece.empty()) return;
  thread_local std::vector<Node> nodes;
  thread_local std::vector<Span> parts;  // from the last to the first
  find_best(piece, nodes);
  parts.clear();
  const TokenId unknown = options_.unknown_id.value_or(kUnknown);
  bool after_unknown = false;
  for (std::size_t end = piece.size(); end > 0;) {
    const Node& node = nodes[end];
    const std::size_t begin = end - node.length;
    const bool is_unknown = node.id == unknown && options_.unknown_id;
    if (is_unknown && after_unknown && options_.fuse_unknown)
      parts.back().begin = begin;
    else
      parts.push_back({begin, end});
    after_unknown = is_unknown;
    end = begin;
  }
  for (auto part = parts.rbegin(); part != parts.rend(); ++part) add(piece, part->begin, part->end, sink);
  if (nodes.size() > kKeptNodes) {
    nodes = {};
    parts = {};
  }
}

void UnigramModel::add(std::string_view piece, std::size_t begin, std::size_t end,
                       const PieceSink& sink) const {
  // Looked up again because unknown neighbours may spell a token together.
  const std::string_view text = piece.substr(begin, end - begin);
  if (const auto id = vocabulary_.find_bytes(text)) return sink.add(*id, begin, end);
  if (options_.byte_fallback && has_byte_tokens(byte_ids_, text)) {
    for (const char c : text) sink.add(byte_ids_[static_cast<unsigned char>(c)], begin, end);
  } else if (options_.unknown_id) {
    sink.add(*options_.unknown_id, begin, end);
  }
}

}  // namespace plimsoll::text
