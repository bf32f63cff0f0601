// SPDX-License-Identifier: Apache-2.0
// Which code points can an expression not tell apart? Numbers them in classes and finds the class of the next
// character of a text. Immutable after building; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "text/unicode_sets.h"

namespace plimsoll::text {

struct SymbolClasses {
  static constexpr std::size_t kBlock = 128;  // ASCII is one block

  std::size_t num_classes = 0;  // at most 255
  std::array<std::uint16_t, (kLastCodePoint + 1) / kBlock> block_of{};
  std::vector<std::array<std::uint8_t, kBlock>> blocks;

  std::size_t class_of(char32_t c) const { return blocks[block_of[c / kBlock]][c % kBlock]; }
};

struct DividedSets {
  SymbolClasses classes;
  std::vector<std::vector<bool>> members;  // [set][class]
};
/// Nothing when there are more than 128 sets or 255 classes.
std::optional<DividedSets> divide_into_classes(const std::vector<CodePointSet>& sets);

/// A character at the head of a text that is not ASCII.
struct WideChar {
  char32_t code_point;
  std::uint32_t bytes;
};
/// Decodes without judging: what is not UTF-8 gives some code point, and never reads behind `end`.
inline WideChar decode_wide(const unsigned char* at, const unsigned char* end) {
  const std::uint32_t lead = *at;
  const auto room = end - at;
  const auto tail = [at](int i) { return static_cast<std::uint32_t>(at[i]) & 0x3Fu; };
  if (lead < 0xE0 && room >= 2) return {(lead & 0x1Fu) << 6 | tail(1), 2};
  if (lead < 0xF0 && lead >= 0xE0 && room >= 3) return {(lead & 0x0Fu) << 12 | tail(1) << 6 | tail(2), 3};
  if (lead >= 0xF0 && room >= 4) {
    const std::uint32_t c = (lead & 0x07u) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
    return {c <= kLastCodePoint ? c : 0xFFFDu, 4};
  }
  return {0xFFFDu, 1};
}

}  // namespace plimsoll::text
