// SPDX-License-Identifier: Apache-2.0
// The character classes of Hugging Face tokenizers 0.23.3 as sorted tables, which no Unicode version gives:
// its parts follow different ones. Written by tools/make_reference_unicode.py; asked through
// reference_unicode.h.
#pragma once

#include <span>

namespace plimsoll::text {

struct CharacterRange {
  char32_t first;
  char32_t last;
};
struct CharacterPair {
  char32_t from;
  char32_t to;
};

extern const std::span<const CharacterRange> kBertRemoved;
extern const std::span<const CharacterRange> kBertNonspacingMarks;
extern const std::span<const CharacterRange> kBertPunctuation;
extern const std::span<const CharacterRange> kCombiningMarks;
extern const std::span<const CharacterRange> kNoNormalForms;
extern const std::span<const CharacterRange> kNoCompatibilityForms;
extern const std::span<const CharacterPair> kNewerLowerCase;

}  // namespace plimsoll::text
