// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/reference_unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/tokenizer/reference_unicode_table.h"

namespace plimsoll::text {
namespace {

bool is_in(std::span<const CharacterRange> ranges, char32_t c) {
  const auto after =
      std::upper_bound(ranges.begin(), ranges.end(), c,
                       [](char32_t value, const CharacterRange& range) { return value < range.first; });
  return after != ranges.begin() && c <= std::prev(after)->last;
}

constexpr char32_t kCapitalIWithDot = 0x130;  // the one character whose lower case is two

}  // namespace

bool is_bert_removed(char32_t c) {
  return is_in(kBertRemoved, c);
}

bool is_bert_space(char32_t c) {
  return is_rust_space(c);
}

bool is_bert_chinese(char32_t c) {
  return (c >= 0x4E00 && c <= 0x9FFF) || (c >= 0x3400 && c <= 0x4DBF) || (c >= 0x20000 && c <= 0x2A6DF) ||
         (c >= 0x2A700 && c <= 0x2B81F) || (c >= 0x2B920 && c <= 0x2CEAF) || (c >= 0xF900 && c <= 0xFAFF) ||
         (c >= 0x2F800 && c <= 0x2FA1F);
}

bool is_bert_punctuation(char32_t c) {
  return is_in(kBertPunctuation, c);
}

bool is_bert_accent(char32_t c) {
  return c >= 0x300 && is_in(kBertNonspacingMarks, c);
}

bool is_combining_mark(char32_t c) {
  return c >= 0x300 && is_in(kCombiningMarks, c);
}

bool is_rust_space(char32_t c) {
  return c == ' ' || (c >= 0x09 && c <= 0x0D) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

void append_lower_case(std::string& out, char32_t c) {
  if (c == kCapitalIWithDot) {
    out += "i\u0307";
    return;
  }
  const auto newer =
      std::lower_bound(kNewerLowerCase.begin(), kNewerLowerCase.end(), c,
                       [](const CharacterPair& pair, char32_t value) { return pair.from < value; });
  if (newer != kNewerLowerCase.end() && newer->from == c)
    append_utf8(out, newer->to);
  else
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

bool has_no_normal_form(char32_t c, bool compatibility) {
  return c >= kNoNormalForms.front().first &&
         (is_in(kNoNormalForms, c) || (compatibility && is_in(kNoCompatibilityForms, c)));
}

}  // namespace plimsoll::text
