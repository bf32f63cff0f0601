// SPDX-License-Identifier: Apache-2.0
// Which tensor has this name? One flat hash from names to numbers, for 100,000 names at a time. The names
// stay where they are: a table views them through the numbers it was given. Reading is safe from any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace plimsoll::artifact {

/// Chosen anew by each process, so that no file can be made whose names all fall into one slot.
std::uint64_t name_seed();

/// Same names, same value, within one process.
inline std::uint64_t hash_of(std::string_view name) {
  static const std::uint64_t seed = name_seed();
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;  // 2^64 over the golden ratio: spreads neighbours
  std::uint64_t hash = seed ^ (name.size() * kOdd);
  const char* at = name.data();
  std::size_t left = name.size();
  const auto mix = [&](std::uint64_t word) {
    const auto product = static_cast<unsigned __int128>(hash ^ word) * kOdd;
    hash = static_cast<std::uint64_t>(product) ^ static_cast<std::uint64_t>(product >> 64);
  };
  for (; left >= 8; at += 8, left -= 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    mix(word);
  }
  if (left > 0) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, left);
    mix(word);
  }
  return hash;
}

class NameTable {
 public:
  /// Empties the table and makes room for `count` names; more may not be given.
  void reset(std::size_t count);

  /// Remembers `number` for a name of this hash, unless one is there for which `is_same(number)` holds: then
  /// that one is returned, and nothing changes.
  template <class IsSame>
  std::optional<std::uint32_t> insert(std::uint64_t hash, std::uint32_t number, const IsSame& is_same) {
    PLIMSOLL_CHECK(number < mask_, "a number for which the table has no bits");
    std::size_t at = hash & mask_;
    for (; slots_[at] != kFree; at = (at + 1) & mask_)
      if (has_tag_of(slots_[at], hash) && is_same(number_in(slots_[at]))) return number_in(slots_[at]);
    ++num_names_;
    PLIMSOLL_CHECK(num_names_ < slots_.size(), "a full table has no end of a search");
    slots_[at] = (static_cast<std::uint32_t>(hash >> 32) & ~mask_) | number;
    return std::nullopt;
  }
  /// The place of a hash will be looked at soon.
  void fetch(std::uint64_t hash) const { __builtin_prefetch(&slots_[hash & mask_]); }

  template <class IsSame>
  std::optional<std::uint32_t> find(std::uint64_t hash, const IsSame& is_same) const {
    if (slots_.empty()) return std::nullopt;
    for (std::size_t at = hash & mask_; slots_[at] != kFree; at = (at + 1) & mask_)
      if (has_tag_of(slots_[at], hash) && is_same(number_in(slots_[at]))) return number_in(slots_[at]);
    return std::nullopt;
  }

 private:
  // A number below mask_ in the low bits and as many of the hash's as are left.
  static constexpr std::uint32_t kFree = UINT32_MAX;
  bool has_tag_of(std::uint32_t slot, std::uint64_t hash) const {
    return ((slot ^ static_cast<std::uint32_t>(hash >> 32)) & ~mask_) == 0;
  }
  std::uint32_t number_in(std::uint32_t slot) const { return slot & mask_; }

  std::vector<std::uint32_t> slots_;  // a power of two of them, at most half full
  std::uint32_t mask_ = 0;
  std::size_t num_names_ = 0;
};

}  // namespace plimsoll::artifact
