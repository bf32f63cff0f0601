// SPDX-License-Identifier: Apache-2.0
// The generated tables behind unicode_sets.h and tokenizer/reference_unicode.h, whose sources alone read
// them: what the reference tokenizers take each code point for. Static data without owners; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "text/unicode_sets.h"

namespace plimsoll::text {

/// `other` and `smallest` are the same letter when case does not matter.
struct CaseFold {
  char32_t other = 0;
  char32_t smallest = 0;
};

/// The reference's lower case of `c`, where it is one character and not utf8proc's.
struct LowerCase {
  char32_t c = 0;
  char32_t lower = 0;
};

struct NamedSet {
  std::string_view name;  // lower case, without underscores
  std::span<const CodePoints> ranges;
};

/// Where a run of one general category starts: code point << 8 | category, ascending; surrogates belong to
/// the run before them.
std::span<const std::uint32_t> category_starts();
std::span<const CaseFold> case_folds();
/// Ascending.
std::span<const LowerCase> other_lower_cases();
std::span<const NamedSet> named_sets();

}  // namespace plimsoll::text
