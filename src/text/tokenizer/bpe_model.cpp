// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/bpe_model.h"

#include <algorithm>
#include <bit>
#include <queue>
#include <utility>

#include "base/utf8.h"
#include "text/tokenizer/byte_tokens.h"

namespace plimsoll::text {
namespace {

// Up to here scanning all pairs after each join is faster than a heap (measured: words of real text).
constexpr std::size_t kShortPiece = 48;
constexpr std::size_t kMergeBatch = 64;
constexpr std::size_t kKeptSymbols = 1 << 16;
constexpr std::string_view kMark = "▁";  // SentencePiece's blank
constexpr std::size_t kMarkByte = 0xFF;  // no byte of UTF-8

std::uint64_t key_of(TokenId left, TokenId right) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

std::size_t slot_of(std::uint64_t key, std::size_t mask) {
  const std::uint64_t mixed = key * 0x9E3779B97F4A7C15ull;
  return static_cast<std::size_t>(mixed >> 24 ^ mixed >> 47) & mask;
}

}  // namespace

BpeModel::BpeModel(const Vocabulary& vocabulary, Options options)
    : vocabulary_(vocabulary),
      options_(std::move(options)),
      starts_with_bytes_(vocabulary.spelling() != Spelling::kPlain) {
  if (!starts_with_bytes_) byte_ids_ = byte_token_ids(vocabulary);
  for (unsigned byte = 0; byte < 256; ++byte) {
    const char c = static_cast<char>(byte);
    const TokenId id = vocabulary.find_bytes(std::string_view(&c, 1)).value_or(-1);
    if (starts_with_bytes_) byte_ids_[byte] = id;
    if (byte < 128) ascii_ids_[byte] = id;
  }
}

// A batch at a time, so that the vocabulary can look up many tokens at once.
Status BpeModel::insert_all(std::span<const Merge> merges, std::size_t first_rank) {
  const std::size_t prefix = options_.continuing_prefix.size();
  std::string joined;   // left and right parts one after another
  std::string without;  // joined tokens, where they are not simply that
  std::array<std::size_t, 2 * kMergeBatch + 1> ends{};
  std::array<bool, kMergeBatch> is_spelled{};
  for (std::size_t i = 0; i < merges.size(); ++i) {
    is_spelled[i] = vocabulary_.append_key(merges[i].left, joined);
    ends[2 * i + 1] = joined.size();
    is_spelled[i] = vocabulary_.append_key(merges[i].right, joined) && is_spelled[i];
    ends[2 * i + 2] = joined.size();
  }
  std::array<std::string_view, 3 * kMergeBatch> keys;
  std::array<TokenId, 3 * kMergeBatch> ids;
  if (prefix > 0) without.reserve(joined.size());
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string_view left = std::string_view(joined).substr(ends[2 * i], ends[2 * i + 1] - ends[2 * i]);
    const std::string_view right =
        std::string_view(joined).substr(ends[2 * i + 1], ends[2 * i + 2] - ends[2 * i + 1]);
    keys[3 * i] = left;
    keys[3 * i + 1] = right;
    keys[3 * i + 2] = {left.data(), left.size() + right.size()};
    if (prefix > 0) {  // the right part loses it
      const std::size_t begin = without.size();
      without.append(left).append(right.substr(std::min(prefix, right.size())));
      keys[3 * i + 2] = std::string_view(without).substr(begin);
    }
  }
  vocabulary_.find_many(std::span(keys).first(3 * merges.size()), ids);
  for (std::size_t i = 0; i < merges.size(); ++i)
    __builtin_prefetch(&pairs_[slot_of(key_of(ids[3 * i], ids[3 * i + 1]), pairs_.size() - 1)], 1);
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::size_t rank = first_rank + i;
    if (!is_spelled[i] || ids[3 * i] < 0 || ids[3 * i + 1] < 0 || ids[3 * i + 2] < 0)
      return fail(ErrorCode::kMalformed,
                  "merge number " + std::to_string(rank) + " \"" + std::string(merges[i].left) + " " +
                      std::string(merges[i].right) + "\" names a token that is not in the vocabulary",
                  "tokenizer.json: /model/merges/" + std::to_string(rank));
    insert(key_of(ids[3 * i], ids[3 * i + 1]), static_cast<std::uint32_t>(rank), ids[3 * i + 2]);
  }
  return {};
}

// Merges take place between neighbours only: where no merge has such a byte last in its left part and such a
// byte first in its right part, nothing ever crosses the place between them. Marks count as a byte of their
// own.
void BpeModel::find_cuts(const std::vector<Merge>& merges) {
  const bool all_bytes = std::none_of(byte_ids_.begin(), byte_ids_.end(), [](TokenId id) { return id < 0; });
  // Every character must become tokens of its own, whatever stands beside it.
  const bool all_known = options_.byte_fallback && all_bytes;
  const bool unknown_alone = options_.unknown_id && !options_.fuse_unknown && !options_.byte_fallback;
  if (starts_with_bytes_ || options_.ignore_merges || !(all_known || unknown_alone) ||
      !options_.continuing_prefix.empty() || !options_.end_suffix.empty())
    return;
  const std::string_view unknown = options_.unknown_id ? vocabulary_.bytes_of(*options_.unknown_id) : "";
  joins_.assign(256 * 256, false);
  for (const Merge& merge : merges) {
    if (merge.left.empty() || merge.right.empty()) continue;
    // These stand for texts that they do not spell.
    if (byte_of_token(merge.left) >= 0 || byte_of_token(merge.right) >= 0 || merge.left == unknown ||
        merge.right == unknown)
      return joins_.clear();
    const std::size_t last =
        merge.left.ends_with(kMark) ? kMarkByte : static_cast<unsigned char>(merge.left.back());
    const std::size_t first =
        merge.right.starts_with(kMark) ? kMarkByte : static_cast<unsigned char>(merge.right[0]);
    joins_[last * 256 + first] = true;
  }
}

std::size_t BpeModel::safe_cut(std::string_view piece) const {
  if (joins_.empty()) return piece.size();
  std::size_t before = 0;
  for (std::size_t at = 0; at < piece.size();) {
    const auto lead = static_cast<unsigned char>(piece[at]);
    const bool is_mark = lead == static_cast<unsigned char>(kMark[0]) && piece.substr(at).starts_with(kMark);
    if (at > 0 && !joins_[before * 256 + (is_mark ? kMarkByte : lead)]) return at;
    at += lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    before = is_mark ? kMarkByte : static_cast<unsigned char>(piece[std::min(at, piece.size()) - 1]);
  }
  return piece.size();
}

Result<std::unique_ptr<BpeModel>> BpeModel::build(const Vocabulary& vocabulary,
                                                  const std::vector<Merge>& merges, Options options) {
  std::unique_ptr<BpeModel> model(new BpeModel(vocabulary, std::move(options)));
  model->pairs_.resize(std::bit_ceil(merges.size() + merges.size() / 2 + 16));
  for (std::size_t from = 0; from < merges.size(); from += kMergeBatch)
    PLIMSOLL_TRY_VOID(model->insert_all(
        std::span(merges).subspan(from, std::min(kMergeBatch, merges.size() - from)), from));
  model->find_cuts(merges);
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

void BpeModel::encode(std::string_view piece, const PieceSink& sink) const {
  if (options_.ignore_merges) {
    if (const auto whole = vocabulary_.find_bytes(piece)) return sink.add(*whole, 0, piece.size());
  }
  thread_local std::vector<Symbol> symbols;
  symbols.clear();
  if (starts_with_bytes_)
    start_bytes(piece, symbols);
  else
    start_characters(piece, symbols);
  if (symbols.size() <= kShortPiece)
    merge_short(symbols);
  else
    merge_long(symbols);
  std::size_t at = 0;
  for (const Symbol& symbol : symbols) {
    sink.add(symbol.id, at, at + symbol.bytes);
    at += symbol.bytes;
  }
  if (symbols.capacity() > kKeptSymbols) symbols = {};  // a giant piece must not stay for ever
}

void BpeModel::start_bytes(std::string_view piece, std::vector<Symbol>& symbols) const {
  bool after_unknown = false;
  for (const char c : piece) {
    const TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    if (id >= 0)
      symbols.push_back({id, 1});
    else if (after_unknown && options_.fuse_unknown)
      ++symbols.back().bytes;
    else if (options_.unknown_id)
      symbols.push_back({*options_.unknown_id, 1});
    after_unknown = id < 0 && options_.unknown_id;
  }
}

// `bytes` of the piece become the tokens of the bytes of `key`, which may have affixes besides.
bool BpeModel::add_bytes(std::string_view key, std::uint32_t bytes, std::vector<Symbol>& symbols) const {
  if (!options_.byte_fallback || !has_byte_tokens(byte_ids_, key)) return false;
  std::uint32_t left = bytes;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const std::uint32_t own = i + 1 == key.size() ? left : std::min(left, 1u);
    symbols.push_back({byte_ids_[static_cast<unsigned char>(key[i])], own});
    left -= own;
  }
  return true;
}

// An unknown waits until something known comes: tokens of bytes pass it by, as in the reference.
void BpeModel::start_characters(std::string_view piece, std::vector<Symbol>& symbols) const {
  const bool has_affixes = !options_.continuing_prefix.empty() || !options_.end_suffix.empty();
  std::string spelled;
  std::optional<Symbol> unknown;
  const auto flush = [&] {
    if (unknown) symbols.push_back(*std::exchange(unknown, std::nullopt));
  };
  for (std::size_t at = 0; at < piece.size();) {
    const auto bytes = static_cast<std::uint32_t>(decode_utf8(piece.substr(at)).bytes);
    std::string_view key = piece.substr(at, bytes);
    if (has_affixes) {
      spelled = at > 0 ? options_.continuing_prefix : "";
      spelled += key;
      if (at + bytes == piece.size()) spelled += options_.end_suffix;
      key = spelled;
    }
    at += bytes;
    const TokenId id = bytes == 1 && !has_affixes ? ascii_ids_[static_cast<unsigned char>(key[0])]
                                                  : vocabulary_.find_bytes(key).value_or(-1);
    if (id >= 0) {
      flush();
      symbols.push_back({id, bytes});
    } else if (!add_bytes(key, bytes, symbols) && options_.unknown_id) {
      if (!options_.fuse_unknown) flush();
      unknown = Symbol{*options_.unknown_id, bytes + (unknown ? unknown->bytes : 0)};
    }
  }
  flush();
}

void BpeModel::merge_short(std::vector<Symbol>& symbols) const {
  const Pair* pairs[kShortPiece];  // of symbol i and i + 1
  std::size_t size = symbols.size();
  for (std::size_t i = 0; i + 1 < size; ++i) pairs[i] = find(symbols[i].id, symbols[i + 1].id);
  while (size > 1) {
    std::size_t best = size;
    std::uint32_t best_rank = UINT32_MAX;
    for (std::size_t i = 0; i + 1 < size; ++i)
      if (pairs[i] && pairs[i]->rank < best_rank) {
        best_rank = pairs[i]->rank;
        best = i;
      }
    if (best == size) break;
    symbols[best] = {pairs[best]->merged, symbols[best].bytes + symbols[best + 1].bytes};
    for (std::size_t i = best + 1; i + 1 < size; ++i) {
      symbols[i] = symbols[i + 1];
      if (i + 2 < size) pairs[i] = pairs[i + 1];
    }
    --size;
    if (best > 0) pairs[best - 1] = find(symbols[best - 1].id, symbols[best].id);
    if (best + 1 < size) pairs[best] = find(symbols[best].id, symbols[best + 1].id);
  }
  symbols.resize(size);
}

void BpeModel::merge_long(std::vector<Symbol>& symbols) const {
  struct Link {
    std::int32_t previous, next;
  };
  struct Candidate {
    std::uint32_t rank;
    std::int32_t left;
    TokenId left_id, right_id;  // what stood there: the candidate is stale when they changed
    bool operator<(const Candidate& other) const {  // the queue gives its greatest first
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };
  constexpr TokenId kGone = -1;  // joined into its neighbour
  const auto size = static_cast<std::int32_t>(symbols.size());
  std::vector<Link> links(symbols.size());
  std::vector<Candidate> candidates;
  candidates.reserve(symbols.size());
  const auto symbol = [&](std::int32_t i) -> Symbol& { return symbols[static_cast<std::size_t>(i)]; };
  const auto link = [&](std::int32_t i) -> Link& { return links[static_cast<std::size_t>(i)]; };
  for (std::int32_t i = 0; i < size; ++i) {
    link(i) = {i - 1, i + 1 < size ? i + 1 : -1};
    if (i + 1 == size) continue;
    if (const Pair* pair = find(symbol(i).id, symbol(i + 1).id))
      candidates.push_back({pair->rank, i, symbol(i).id, symbol(i + 1).id});
  }
  std::priority_queue<Candidate> queue(std::less<Candidate>(), std::move(candidates));
  const auto offer = [&](std::int32_t left) {
    if (left < 0 || link(left).next < 0) return;
    const TokenId first = symbol(left).id, second = symbol(link(left).next).id;
    if (const Pair* pair = find(first, second)) queue.push({pair->rank, left, first, second});
  };
  while (!queue.empty()) {
    const Candidate best = queue.top();
    queue.pop();
    const std::int32_t right = link(best.left).next;
    if (symbol(best.left).id != best.left_id || right < 0 || symbol(right).id != best.right_id) continue;
    symbol(best.left).id = find(best.left_id, best.right_id)->merged;
    symbol(best.left).bytes += symbol(right).bytes;
    symbol(right).id = kGone;
    link(best.left).next = link(right).next;
    if (link(right).next >= 0) link(link(right).next).previous = best.left;
    offer(link(best.left).previous);
    offer(best.left);
  }
  std::erase_if(symbols, [](const Symbol& each) { return each.id == kGone; });
}

}  // namespace plimsoll::text
