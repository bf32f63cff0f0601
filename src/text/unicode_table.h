// SPDX-License-Identifier: Apache-2.0
// The generated tables behind unicode_sets.h: what the reference tokenizers take each code point for. Only
// that file reads them. Static data without owners; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace plimsoll::text {

/// The code points [first, last].
struct CodePoints {
  char32_t first = 0;
  char32_t last = 0;
  bool operator==(const CodePoints&) const = default;
};

/// `other` and `smallest` are the same letter when case does not matter.
struct CaseFold {
  char32_t other = 0;
  char32_t smallest = 0;
};

struct NamedSet {
  std::string_view name;  // lower case, without underscores
  std::span<const CodePoints> ranges;
};

/// Where a run of one general category starts: code point << 8 | category, ascending; surrogates belong to
/// the run before them.
std::span<const std::uint32_t> category_starts();
std::span<const CaseFold> case_folds();
std::span<const NamedSet> named_sets();

}  // namespace plimsoll::text
