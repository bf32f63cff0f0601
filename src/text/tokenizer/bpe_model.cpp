// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/bpe_model.h"

#include <algorithm>
#include <bit>
#include <queue>

namespace plimsoll::text {
namespace {

// Up to here scanning all pairs after each join is faster than a heap (measured: words of real text).
constexpr std::size_t kShortPiece = 48;
constexpr std::size_t kMaxWholePiece = 512;  // bytes; longer pieces are hardly tokens

std::uint64_t key_of(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

std::size_t slot_of(std::uint64_t key, std::size_t mask) {
  const std::uint64_t mixed = key * 0x9E3779B97F4A7C15ull;
  return static_cast<std::size_t>(mixed >> 24 ^ mixed >> 47) & mask;
}

}  // namespace

BpeModel::BpeModel(const Vocabulary& vocabulary, const Options& options)
    : vocabulary_(vocabulary),
      options_(options),
      byte_ids_(256, -1),
      whole_(static_cast<std::size_t>(vocabulary.size())) {
  for (int byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    if (const auto id = vocabulary.find_bytes(std::string_view(&c, 1)))
      byte_ids_[static_cast<std::size_t>(byte)] = *id;
  }
}

Result<std::unique_ptr<BpeModel>> BpeModel::build(const Vocabulary& vocabulary,
                                                  const std::vector<Merge>& merges, const Options& options) {
  std::unique_ptr<BpeModel> model(new BpeModel(vocabulary, options));
  model->pairs_.resize(std::bit_ceil(merges.size() * 2 + 16));
  std::string joined;
  for (std::size_t rank = 0; rank < merges.size(); ++rank) {
    const auto left = vocabulary.find_text(merges[rank].left);
    const auto right = vocabulary.find_text(merges[rank].right);
    std::optional<TokenId> merged;
    if (left && right) {
      joined = vocabulary.bytes_of(*left);
      joined += vocabulary.bytes_of(*right);
      merged = vocabulary.find_bytes(joined);
    }
    if (!merged)
      return fail(ErrorCode::kMalformed,
                  "merge number " + std::to_string(rank) + " \"" + std::string(merges[rank].left) + " " +
                      std::string(merges[rank].right) + "\" names a token that is not in the vocabulary",
                  "tokenizer.json: /model/merges/" + std::to_string(rank));
    model->insert(key_of(*left, *right), static_cast<std::uint32_t>(rank), *merged);
  }
  return model;
}

void BpeModel::insert(std::uint64_t key, std::uint32_t rank, TokenId merged) {
  const std::size_t mask = pairs_.size() - 1;
  std::size_t slot = slot_of(key, mask);
  while (pairs_[slot].key != kEmptyKey && pairs_[slot].key != key) slot = (slot + 1) & mask;
  pairs_[slot] = {key, rank, merged};  // of equal merges the last one counts, as in the reference
}

const BpeModel::Pair* BpeModel::find(TokenId left, TokenId right) const {
  const std::uint64_t key = key_of(left, right);
  const std::size_t mask = pairs_.size() - 1;
  for (std::size_t slot = slot_of(key, mask);; slot = (slot + 1) & mask) {
    if (pairs_[slot].key == key) return &pairs_[slot];
    if (pairs_[slot].key == kEmptyKey) return nullptr;
  }
}

void BpeModel::encode(std::string_view piece, std::vector<TokenId>& ids) const {
  std::optional<TokenId> whole;
  if (piece.size() <= kMaxWholePiece || options_.ignore_merges) whole = vocabulary_.find_bytes(piece);
  std::atomic<std::uint8_t>* flag = whole ? &whole_[static_cast<std::size_t>(*whole)] : nullptr;
  if (flag && (options_.ignore_merges || flag->load(std::memory_order_relaxed) == kYes)) {
    ids.push_back(*whole);
    return;
  }
  thread_local std::vector<TokenId> symbols;
  symbols.clear();
  start_symbols(piece, symbols);
  if (symbols.size() <= kShortPiece)
    merge_short(symbols);
  else
    merge_long(symbols);
  if (flag && flag->load(std::memory_order_relaxed) == kUnknown)
    flag->store(symbols.size() == 1 && symbols[0] == *whole ? kYes : kNo, std::memory_order_relaxed);
  ids.insert(ids.end(), symbols.begin(), symbols.end());
}

void BpeModel::start_symbols(std::string_view piece, std::vector<TokenId>& symbols) const {
  bool after_unknown = false;
  for (const char c : piece) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0) {
      symbols.push_back(id);
    } else if (options_.unknown_id && !(after_unknown && options_.fuse_unknown)) {
      symbols.push_back(*options_.unknown_id);
    }
    after_unknown = id < 0;
  }
}

void BpeModel::merge_short(std::vector<TokenId>& symbols) const {
  const Pair* pairs[kShortPiece];  // of symbol i and i + 1
  std::size_t size = symbols.size();
  for (std::size_t i = 0; i + 1 < size; ++i) pairs[i] = find(symbols[i], symbols[i + 1]);
  while (size > 1) {
    std::size_t best = size;
    std::uint32_t best_rank = UINT32_MAX;
    for (std::size_t i = 0; i + 1 < size; ++i)
      if (pairs[i] && pairs[i]->rank < best_rank) {
        best_rank = pairs[i]->rank;
        best = i;
      }
    if (best == size) break;
    symbols[best] = pairs[best]->merged;
    for (std::size_t i = best + 1; i + 1 < size; ++i) {
      symbols[i] = symbols[i + 1];
      if (i + 2 < size) pairs[i] = pairs[i + 1];
    }
    --size;
    if (best > 0) pairs[best - 1] = find(symbols[best - 1], symbols[best]);
    if (best + 1 < size) pairs[best] = find(symbols[best], symbols[best + 1]);
  }
  symbols.resize(size);
}

void BpeModel::merge_long(std::vector<TokenId>& symbols) const {
  struct Candidate {
    std::uint32_t rank;
    std::int32_t left;
    TokenId left_id, right_id;  // what stood there: the candidate is stale when they changed
    bool operator<(const Candidate& other) const {  // the queue gives its greatest first
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  const auto size = static_cast<std::int32_t>(symbols.size());
  std::vector<Symbol> chain(symbols.size());
  std::priority_queue<Candidate> queue;
  const auto offer = [&](std::int32_t left) {
    if (left < 0 || chain[static_cast<std::size_t>(left)].next < 0) return;
    const Symbol& first = chain[static_cast<std::size_t>(left)];
    const TokenId second = chain[static_cast<std::size_t>(first.next)].id;
    if (const Pair* pair = find(first.id, second)) queue.push({pair->rank, left, first.id, second});
  };
  for (std::int32_t i = 0; i < size; ++i)
    chain[static_cast<std::size_t>(i)] = {symbols[static_cast<std::size_t>(i)], i - 1,
                                          i + 1 < size ? i + 1 : -1};
  for (std::int32_t i = 0; i + 1 < size; ++i) offer(i);
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    Symbol& left = chain[static_cast<std::size_t>(best.left)];
    if (left.id != best.left_id || left.next < 0) continue;  // -1: joined into its neighbour
    Symbol& right = chain[static_cast<std::size_t>(left.next)];
    if (right.id != best.right_id) continue;
    left.id = find(best.left_id, best.right_id)->merged;
    right.id = -1;
    left.next = right.next;
    if (left.next >= 0) chain[static_cast<std::size_t>(left.next)].previous = best.left;
    offer(left.previous);
    offer(best.left);
  }
  symbols.clear();
  for (std::int32_t i = size > 0 ? 0 : -1; i >= 0; i = chain[static_cast<std::size_t>(i)].next)
    symbols.push_back(chain[static_cast<std::size_t>(i)].id);
}

}  // namespace plimsoll::text
