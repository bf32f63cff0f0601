// SPDX-License-Identifier: Apache-2.0
// Ids of pieces that were encoded before: words repeat, and looking one up costs a tenth of encoding it. A
// fixed table where a newer piece takes the place of an older one; what is not in it is only slower. Keys are
// compared whole, so that an answer is always right. Not shared: one user at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "text/text.h"

namespace plimsoll::text {

class PieceCache {
 public:
  static constexpr std::size_t kMaxBytes = 24;  // longer pieces hardly come twice
  static constexpr std::size_t kMaxIds = 8;

  /// A short piece as numbers, zeros behind it.
  struct Key {
    std::uint64_t words[3];
    std::uint8_t bytes;
    std::uint32_t slot;
  };
  /// `readable`: so many bytes from the piece's start may be read. Only for pieces of 1 to kMaxBytes bytes.
  static Key key_of(std::string_view piece, std::size_t readable) {
    Key key{{0, 0, 0}, static_cast<std::uint8_t>(piece.size()), 0};
    if (readable >= kMaxBytes) {
      std::memcpy(key.words, piece.data(), kMaxBytes);
      const std::size_t size = piece.size();
      key.words[0] &= mask(size);
      key.words[1] &= mask(size > 8 ? size - 8 : 0);
      key.words[2] &= mask(size > 16 ? size - 16 : 0);
    } else {
      std::memcpy(key.words, piece.data(), piece.size());
    }
    std::uint64_t hash = key.words[0] * 0x9E3779B97F4A7C15ull;
    hash ^= (key.words[1] + key.bytes) * 0xC2B2AE3D27D4EB4Full;
    hash ^= key.words[2] * 0x165667B19E3779F9ull;
    hash ^= hash >> 32;
    hash *= 0xD6E8FEB86659FD93ull;
    key.slot = static_cast<std::uint32_t>(hash >> (64 - kSlotBits));
    return key;
  }

  /// Appends the ids of the piece when it is known.
  bool append(const Key& key, std::vector<TokenId>& ids) const {
    const Entry& entry = entries_[key.slot];
    if (entry.bytes != key.bytes || entry.words[0] != key.words[0] || entry.words[1] != key.words[1] ||
        entry.words[2] != key.words[2])
      return false;
    ids.insert(ids.end(), entry.ids, entry.ids + entry.num_ids);
    return true;
  }
  /// Remembers ids [from, end) of `ids` for the piece when they are few.
  void remember(const Key& key, const std::vector<TokenId>& ids, std::size_t from) {
    const std::size_t count = ids.size() - from;
    if (count > kMaxIds) return;
    Entry& entry = entries_[key.slot];
    std::memcpy(entry.words, key.words, sizeof key.words);
    if (count > 0) std::memcpy(entry.ids, ids.data() + from, count * sizeof(TokenId));
    entry.bytes = key.bytes;
    entry.num_ids = static_cast<std::uint8_t>(count);
  }

 private:
  static constexpr int kSlotBits = 16;  // 4 MiB: most of a language's words, and not much more than a cache

  struct alignas(64) Entry {  // one cache line
    std::uint64_t words[3];
    TokenId ids[kMaxIds];
    std::uint8_t bytes = 0;  // 0: empty
    std::uint8_t num_ids = 0;
  };

  /// All bits of the first `bytes` bytes of a little-endian word.
  static std::uint64_t mask(std::size_t bytes) {
    return bytes >= 8 ? ~std::uint64_t{0} : (std::uint64_t{1} << (bytes * 8)) - 1;
  }

  std::vector<Entry> entries_ = std::vector<Entry>(std::size_t{1} << kSlotBits);
};

}  // namespace plimsoll::text
