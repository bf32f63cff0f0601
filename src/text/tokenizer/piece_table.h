// SPDX-License-Identifier: Apache-2.0
// Ids of pieces that were encoded before: words repeat, and looking one up costs a tenth of encoding it. A
// fixed table where newer pieces take the place of older ones; what is not in it is only slower. Keys are
// compared whole, so that an answer is always right. Not shared: one user at a time.
#pragma once

#include <sys/mman.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "base/result.h"
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
    std::uint8_t bytes;  // 0: empty
    std::uint8_t num_ids;
  };
  static_assert(std::is_trivial_v<Entry>);  // zeroed memory is an empty table
  struct Key {
    std::uint64_t words[kBytes / 8];
    std::uint32_t slot;  // where the search begins
    std::uint8_t bytes;
  };

  /// Fills `key` for a piece of 1 to kBytes bytes. `readable`: so many bytes from its start on may be read.
  /// Word by word: wider copies would wait for the narrow writes they read.
  static void make_key(std::string_view piece, std::size_t readable, Key& key) {
    const char* from = piece.data();
    char padded[kBytes] = {};
    if (readable < kBytes) [[unlikely]]
      from = static_cast<const char*>(std::memcpy(padded, piece.data(), piece.size()));
    const std::uint8_t* masks = kMasks.data() + (kBytes - piece.size());
    std::uint64_t hash = piece.size();
    for (std::size_t i = 0; i < kNumWords; ++i) {
      std::uint64_t word, mask;
      std::memcpy(&word, from + i * 8, 8);
      std::memcpy(&mask, masks + i * 8, 8);
      word &= mask;  // what is behind the piece does not count
      key.words[i] = word;
      hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
      hash ^= hash >> 32;
    }
    key.slot = static_cast<std::uint32_t>(hash) & (kNumSlots - 1);
    key.bytes = static_cast<std::uint8_t>(piece.size());
  }

  void prefetch(const Key& key) const { __builtin_prefetch(&entries_[key.slot]); }

  /// The entry of the piece, or null.
  const Entry* find(const Key& key) const {
    const Entry* entry = &entries_[key.slot];
    for (std::size_t i = 0; i < kMaxProbes; ++i, ++entry) {
      if (is_of(*entry, key)) return entry;
      if (entry->bytes == 0) return nullptr;
    }
    return nullptr;
  }

  void remember(const Key& key, std::span<const TokenId> ids) {
    if (ids.size() > kMaxIds) return;
    Entry* entry = &entries_[key.slot];
    std::size_t i = 0;
    while (i < kMaxProbes && entry[i].bytes != 0) ++i;
    entry += i < kMaxProbes ? i : 0;  // no place left: the first one goes
    std::memcpy(entry->words, key.words, sizeof key.words);
    if (!ids.empty()) std::memcpy(entry->ids, ids.data(), ids.size_bytes());
    entry->bytes = key.bytes;
    entry->num_ids = static_cast<std::uint8_t>(ids.size());
  }

 private:
  static constexpr std::size_t kNumWords = kBytes / 8;
  static constexpr std::size_t kNumSlots = std::size_t{1} << kSlotBits;
  static constexpr std::size_t kMaxProbes = 8;

  /// kBytes set bytes and as many clear ones: from kBytes - n on they are the mask of n bytes.
  static constexpr std::array<std::uint8_t, 2 * kBytes> kMasks = [] {
    std::array<std::uint8_t, 2 * kBytes> masks{};
    for (std::size_t i = 0; i < kBytes; ++i) masks[i] = 0xFF;
    return masks;
  }();

  static bool is_of(const Entry& entry, const Key& key) {
    std::uint64_t difference = entry.bytes ^ key.bytes;
    for (std::size_t i = 0; i < kNumWords; ++i) difference |= entry.words[i] ^ key.words[i];
    return difference == 0;
  }

  struct Unmap {
    void operator()(void* memory) const { ::munmap(memory, kTableBytes); }
  };
  /// Fresh pages are zero, and take no memory before they are touched. Large ones spare address look-ups,
  /// which would cost as much as the table's own.
  static std::unique_ptr<void, Unmap> zeroed() {
    void* memory = ::mmap(nullptr, kTableBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    PLIMSOLL_CHECK(memory != MAP_FAILED, "no memory for remembering pieces");
    ::madvise(memory, kTableBytes, MADV_HUGEPAGE);
    return std::unique_ptr<void, Unmap>(memory);
  }
  static Entry* aligned(void* memory) {
    std::size_t room = kTableBytes;
    return static_cast<Entry*>(std::align(kHugePage, kTableBytes - kHugePage, memory, room));
  }

  static constexpr std::size_t kHugePage = std::size_t{2} << 20;
  static constexpr std::size_t kTableBytes = (kNumSlots + kMaxProbes) * sizeof(Entry) + kHugePage;
  std::unique_ptr<void, Unmap> memory_ = zeroed();
  Entry* entries_ = aligned(memory_.get());
};

}  // namespace plimsoll::text
