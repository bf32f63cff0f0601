// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/reference_unicode.h"

#include <utf8proc.h>

#include <algorithm>

#include "base/utf8.h"
#include "text/unicode_sets.h"
#include "text/unicode_table.h"

namespace plimsoll::text {
namespace {

constexpr char32_t kCapitalIWithDot = 0x130;  // the one character whose lower case is two
constexpr char32_t kFirstMark = 0x300;        // a short cut for most text

}  // namespace

bool is_bert_removed(char32_t c) {
  static const CodePointSet set = *set_named("bert_control");
  return set.contains(c);
}

bool is_bert_space(char32_t c) {
  return is_rust_space(c);
}

bool is_bert_chinese(char32_t c) {
  static const CodePointSet set = *set_named("bert_ideograph");
  return set.contains(c);
}

bool is_bert_punctuation(char32_t c) {
  static const CodePointSet set = *set_named("rust_punctuation");
  return set.contains(c);
}

bool is_bert_accent(char32_t c) {
  static const CodePointSet set = *set_named("bert_accent");
  return c >= kFirstMark && set.contains(c);
}

bool is_combining_mark(char32_t c) {
  static const CodePointSet set = *set_named("accent");
  return c >= kFirstMark && set.contains(c);
}

bool is_rust_space(char32_t c) {
  static const CodePointSet set = *set_named("rust_white_space");
  return set.contains(c);
}

void append_lower_case(std::string& out, char32_t c) {
  if (c == kCapitalIWithDot) {
    out += "i\u0307";
    return;
  }
  const auto others = other_lower_cases();
  const auto other = std::lower_bound(others.begin(), others.end(), c,
                                      [](const LowerCase& each, char32_t value) { return each.c < value; });
  if (other != others.end() && other->c == c)
    append_utf8(out, other->lower);
  else
    append_utf8(out, static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c))));
}

bool has_no_normal_form(char32_t c, bool compatibility) {
  static const CodePointSet unknown = *set_named("no_normal_form");
  static const CodePointSet also_compatible = unknown | *set_named("no_compatibility_form");
  return c >= kFirstMark && (compatibility ? also_compatible : unknown).contains(c);
}

}  // namespace plimsoll::text
