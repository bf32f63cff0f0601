// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/rank_model.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <vector>

namespace plimsoll::text {
namespace {

// Up to here scanning all pairs after each join is faster than a heap.
constexpr std::size_t kShortPiece = 64;
constexpr TokenId kNoToken = std::numeric_limits<TokenId>::max();  // sorts behind every rank

}  // namespace

RankModel::RankModel(const Vocabulary& vocabulary) : vocabulary_(vocabulary) {
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    byte_ids_[byte] = vocabulary.find_bytes(std::string_view(&c, 1)).value_or(kNoToken);
  }
  for (TokenId id = 0; id < vocabulary.size(); ++id)
    longest_ = std::max(longest_, vocabulary.bytes_of(id).size());
}

void RankModel::encode(std::string_view piece, const PieceSink& sink) const {
  if (piece.empty()) return;
  if (const TokenId whole = rank_of(piece, 0, piece.size()); whole != kNoToken)
    return sink.add(whole, 0, piece.size());
  if (piece.size() <= kShortPiece)
    merge_short(piece, sink);
  else
    merge_long(piece, sink);
}

TokenId RankModel::rank_of(std::string_view piece, std::size_t begin, std::size_t end) const {
  if (end - begin > longest_) return kNoToken;
  return vocabulary_.find_bytes(piece.substr(begin, end - begin)).value_or(kNoToken);
}

void RankModel::add(std::string_view piece, std::size_t begin, std::size_t end, const PieceSink& sink) const {
  const TokenId id =
      end - begin == 1 ? byte_ids_[static_cast<unsigned char>(piece[begin])] : rank_of(piece, begin, end);
  if (id != kNoToken) sink.add(id, begin, end);
}

void RankModel::merge_short(std::string_view piece, const PieceSink& sink) const {
  std::uint8_t starts[kShortPiece + 1];  // of the parts, then the end of the piece
  TokenId ranks[kShortPiece];            // of part i and i + 1 together
  std::size_t size = piece.size();
  for (std::size_t i = 0; i <= size; ++i) starts[i] = static_cast<std::uint8_t>(i);
  const auto rate = [&](std::size_t i) {
    ranks[i] = i + 2 <= size ? rank_of(piece, starts[i], starts[i + 2]) : kNoToken;
  };
  for (std::size_t i = 0; i < size; ++i) rate(i);
  while (size > 1) {
    const auto best = static_cast<std::size_t>(std::min_element(ranks, ranks + size - 1) - ranks);
    if (ranks[best] == kNoToken) break;
    std::copy(starts + best + 2, starts + size + 1, starts + best + 1);
    std::copy(ranks + best + 2, ranks + size, ranks + best + 1);
    --size;
    rate(best);
    if (best > 0) rate(best - 1);
  }
  for (std::size_t i = 0; i < size; ++i) add(piece, starts[i], starts[i + 1], sink);
}

void RankModel::merge_long(std::string_view piece, const PieceSink& sink) const {
  struct Candidate {
    TokenId rank;
    std::size_t begin, end;
    bool operator<(const Candidate& other) const {  // the queue gives its greatest first
      return rank != other.rank ? rank > other.rank : begin > other.begin;
    }
  };
  const std::size_t size = piece.size();
  std::vector<std::size_t> ends(size + 1);    // of the part that starts here; 0 when none does
  std::vector<std::size_t> begins(size + 1);  // of the part that ends here
  for (std::size_t i = 0; i < size; ++i) {
    ends[i] = i + 1;
    begins[i + 1] = i;
  }
  std::vector<Candidate> candidates;
  candidates.reserve(size);
  for (std::size_t i = 0; i + 1 < size; ++i)
    if (const TokenId rank = rank_of(piece, i, i + 2); rank != kNoToken)
      candidates.push_back({rank, i, i + 2});
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
  const auto offer = [&](std::size_t begin, std::size_t end) {
    if (const TokenId rank = rank_of(piece, begin, end); rank != kNoToken) queue.push({rank, begin, end});
  };
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const std::size_t middle = ends[best.begin];
    // Stale unless two parts still make up these bytes: it does not matter which two.
    if (middle == 0 || middle >= size || ends[middle] != best.end) continue;
    ends[middle] = 0;
    ends[best.begin] = best.end;
    begins[best.end] = best.begin;
    if (best.end < size) offer(best.begin, ends[best.end]);
    if (best.begin > 0) offer(begins[best.begin], best.end);
  }
  for (std::size_t at = 0; at < size; at = ends[at]) add(piece, at, ends[at], sink);
}

}  // namespace plimsoll::text
