// SPDX-License-Identifier: Apache-2.0
// Ids of pieces that were encoded before: words repeat, and looking one up costs a tenth of encoding it. A
// fixed table where newer pieces take the place of older ones; what is not in it is only slower. Keys are
// compared whole, so that an answer is always right. Not shared: one user at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "text/text.h"

namespace plimsoll::text {

/// Pieces of up to kBytes bytes and kMaxIds ids, 2^kSlotBits of them.
template <std::size_t kBytes, std::size_t kMaxIds, int kSlotBits>
class PieceTable {
 public:
  static constexpr std::size_t kMaxBytes = kBytes;

  struct alignas(64) Entry {
    std::uint64_t words[kBytes / 8];  // the piece, zeros behind it
    TokenId ids[kMaxIds];
    std::uint8_t bytes = 0;  // 0: empty
    std::uint8_t num_ids = 0;
  };
  struct Key {
    std::uint64_t words[kBytes / 8];
    std::uint32_t slot;  // of a pair of entries
    std::uint8_t bytes;
  };

  /// For a piece of 1 to kBytes bytes. `readable`: so many bytes from its start on may be read.
  static Key key_of(std::string_view piece, std::size_t readable) {
    Key key{};
    key.bytes = static_cast<std::uint8_t>(piece.size());
    if (readable >= kBytes) {  // whole words are read, and what is behind the piece is cleared
      std::memcpy(key.words, piece.data(), kBytes);
      for (std::size_t i = 0; i < kBytes / 8; ++i)
        key.words[i] &= piece.size() >= i * 8 + 8 ? ~std::uint64_t{0}
                        : piece.size() > i * 8    ? (std::uint64_t{1} << (piece.size() - i * 8) * 8) - 1
                                                  : 0;
    } else {
      std::memcpy(key.words, piece.data(), piece.size());
    }
    std::uint64_t hash = piece.size();
    for (const std::uint64_t word : key.words) {
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 29;
    }
    key.slot = static_cast<std::uint32_t>((hash * 0xD6E8FEB86659FD93ull) >> (64 - kSlotBits)) & ~1u;
    return key;
  }

  void prefetch(const Key& key) const { __builtin_prefetch(&entries_[key.slot]); }

  /// The entry of the piece, or null.
  const Entry* find(const Key& key) const {
    const Entry* pair = &entries_[key.slot];
    return is_of(pair[0], key) ? pair : is_of(pair[1], key) ? pair + 1 : nullptr;
  }

  void remember(const Key& key, std::span<const TokenId> ids) {
    if (ids.size() > kMaxIds) return;
    Entry* pair = &entries_[key.slot];
    if (pair[0].bytes != 0) pair[1] = pair[0];  // the older one of the two goes
    std::memcpy(pair[0].words, key.words, sizeof key.words);
    if (!ids.empty()) std::memcpy(pair[0].ids, ids.data(), ids.size_bytes());
    pair[0].bytes = key.bytes;
    pair[0].num_ids = static_cast<std::uint8_t>(ids.size());
  }

 private:
  static bool is_of(const Entry& entry, const Key& key) {
    std::uint64_t difference = entry.bytes ^ key.bytes;
    for (std::size_t i = 0; i < kBytes / 8; ++i) difference |= entry.words[i] ^ key.words[i];
    return difference == 0;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << kSlotBits);
};

}  // namespace plimsoll::text
