// SPDX-License-Identifier: Apache-2.0
#include "text/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <utility>

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

utf8proc_category_t category(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

char32_t upper(char32_t c) {
  return static_cast<char32_t>(utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}
char32_t lower(char32_t c) {
  return static_cast<char32_t>(utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}
char32_t title(char32_t c) {
  return static_cast<char32_t>(utf8proc_totitle(static_cast<utf8proc_int32_t>(c)));
}

constexpr char32_t kCapitalIWithDot = 0x130;  // lower-cases to two characters
constexpr char32_t kFinalSigma = 0x3C2;       // lower case of a capital sigma that ends a word
constexpr char32_t kCapitalSigma = 0x3A3;

// Full case folding, where a ligature becomes its letters.
std::u32string folded(char32_t c) {
  utf8proc_int32_t parts[4] = {};
  int boundary = 0;
  const auto size =
      utf8proc_decompose_char(static_cast<utf8proc_int32_t>(c), parts, 4, UTF8PROC_CASEFOLD, &boundary);
  return size > 0 ? std::u32string(parts, parts + std::min<utf8proc_ssize_t>(size, 4)) : std::u32string(1, c);
}

// Characters whose other case is several letters have it spelled by their folding, capitals apart.
void append_upper(std::u32string& out, char32_t c) {
  const bool may_grow = c >= 0x80 && category(c) != UTF8PROC_CATEGORY_LU;
  const std::u32string parts = may_grow ? folded(c) : std::u32string(1, c);
  if (parts.size() == 1)
    out += upper(c);
  else
    for (const char32_t part : parts) out += upper(part);
}

void append_title(std::u32string& out, char32_t c) {
  constexpr char32_t kSharpS = 0xDF, kIota = 0x3B9, kIotaBelow = 0x345;
  const bool may_grow = c == kSharpS || (c >= 0x80 && title(c) == c && category(c) == UTF8PROC_CATEGORY_LL);
  std::u32string parts = may_grow ? folded(c) : std::u32string(1, c);
  if (parts.size() == 1) {
    out += title(c);
    return;
  }
  bool has_capital = false;
  for (char32_t& part : parts) {
    if (has_capital && part == kIota) part = kIotaBelow;
    if (has_capital) continue;
    has_capital = title(part) != part;
    part = title(part);
  }
  out += parts;
}

void append_lower(std::u32string& out, std::u32string_view text, std::size_t at) {
  if (text[at] == kCapitalIWithDot) {
    out += U"i\u0307";
    return;
  }
  const bool ends_word = text[at] == kCapitalSigma && at > 0 && is_alphabetic(text[at - 1]) &&
                         (at + 1 == text.size() || !is_alphabetic(text[at + 1]));
  out += ends_word ? kFinalSigma : lower(text[at]);
}

}  // namespace

std::u32string to_code_points(std::string_view utf8) {
  std::u32string out;
  out.reserve(utf8.size());
  while (!utf8.empty()) {
    const DecodedChar next = decode_utf8(utf8);
    out += next.code_point;
    utf8.remove_prefix(static_cast<std::size_t>(next.bytes));
  }
  return out;
}

std::string to_utf8(std::u32string_view code_points) {
  std::string out;
  out.reserve(code_points.size());
  for (const char32_t c : code_points) append_utf8(out, c);
  return out;
}

bool is_ascii(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < 0x80; });
}

std::size_t num_code_points(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(
      utf8.begin(), utf8.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u; }));
}

bool is_python_space(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x20) || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool is_alphabetic(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_LO;
}
bool is_decimal(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_ND;
}
int decimal_value(char32_t c) {
  // Digits come in runs of ten from zero on.
  int value = 0;
  while (is_decimal(c - static_cast<char32_t>(value) - 1)) ++value;
  return value % 10;
}
bool is_digit(char32_t c) {
  static constexpr std::pair<char32_t, char32_t> kOthers[] = {
      {0xB2, 0xB3},     {0xB9, 0xB9},       {0x1369, 0x1371},   {0x19DA, 0x19DA},   {0x2070, 0x2070},
      {0x2074, 0x2079}, {0x2080, 0x2089},   {0x2460, 0x2468},   {0x2474, 0x247C},   {0x2488, 0x2490},
      {0x24EA, 0x24EA}, {0x24F5, 0x24FD},   {0x24FF, 0x24FF},   {0x2776, 0x277E},   {0x2780, 0x2788},
      {0x278A, 0x2792}, {0x10A40, 0x10A43}, {0x10E60, 0x10E68}, {0x11052, 0x1105A}, {0x1F100, 0x1F10A}};
  return is_decimal(c) || std::any_of(std::begin(kOthers), std::end(kOthers), [&](const auto& range) {
           return c >= range.first && c <= range.second;
         });
}
bool is_numeric(char32_t c) {
  const auto kind = category(c);
  return kind >= UTF8PROC_CATEGORY_ND && kind <= UTF8PROC_CATEGORY_NO;
}
bool is_word_character(char32_t c) {
  const auto kind = category(c);
  return (kind >= UTF8PROC_CATEGORY_LU && kind <= UTF8PROC_CATEGORY_ND) || kind == UTF8PROC_CATEGORY_NL ||
         kind == UTF8PROC_CATEGORY_PC;
}
bool is_upper(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LU;
}
bool is_lower(char32_t c) {
  return category(c) == UTF8PROC_CATEGORY_LL;
}

bool is_printable(char32_t c) {
  if (c == ' ') return true;
  switch (category(c)) {
    case UTF8PROC_CATEGORY_CC:
    case UTF8PROC_CATEGORY_CF:
    case UTF8PROC_CATEGORY_CS:
    case UTF8PROC_CATEGORY_CO:
    case UTF8PROC_CATEGORY_CN:
    case UTF8PROC_CATEGORY_ZL:
    case UTF8PROC_CATEGORY_ZP:
    case UTF8PROC_CATEGORY_ZS:
      return false;
    default:
      return true;
  }
}

std::string to_upper(std::string_view utf8) {
  std::u32string out;
  for (const char32_t c : to_code_points(utf8)) {
    append_upper(out, c);
  }
  return to_utf8(out);
}

std::string to_lower(std::string_view utf8) {
  const std::u32string text = to_code_points(utf8);
  std::u32string out;
  for (std::size_t i = 0; i < text.size(); ++i) append_lower(out, text, i);
  return to_utf8(out);
}

std::string fold_case(std::string_view utf8) {
  std::u32string out;
  for (const char32_t c : to_code_points(utf8)) out += folded(c);
  return to_utf8(out);
}

std::string to_title(std::string_view utf8) {
  const std::u32string text = to_code_points(utf8);
  std::u32string out;
  bool inside_word = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (inside_word)
      append_lower(out, text, i);
    else
      append_title(out, text[i]);
    inside_word = is_alphabetic(text[i]);
  }
  return to_utf8(out);
}

std::string capitalize(std::string_view utf8) {
  const std::u32string text = to_code_points(utf8);
  std::u32string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 0)
      append_title(out, text[i]);
    else
      append_lower(out, text, i);
  }
  return to_utf8(out);
}

std::string_view strip(std::string_view text, Side side, const std::string* characters) {
  std::u32string set = characters ? to_code_points(*characters) : std::u32string();
  std::sort(set.begin(), set.end());
  const auto drops = [&](char32_t c) {
    return characters ? std::binary_search(set.begin(), set.end(), c) : is_python_space(c);
  };
  while (side != Side::kRight && !text.empty()) {
    const DecodedChar next = decode_utf8(text);
    if (!drops(next.code_point)) break;
    text.remove_prefix(static_cast<std::size_t>(next.bytes));
  }
  while (side != Side::kLeft && !text.empty()) {
    std::size_t start = text.size() - 1;
    while (start > 0 && text.size() - start < 4 && (static_cast<unsigned char>(text[start]) & 0xC0u) == 0x80u)
      --start;
    const DecodedChar last = decode_utf8(text.substr(start));
    if (!drops(last.code_point)) break;
    text.remove_suffix(text.size() - start);
  }
  return text;
}

}  // namespace plimsoll::text
