// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/regex_reader.h"

#include <utility>

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxClassDepth = 20;

bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

CharacterOrSet a_set(CodePointSet set) {
  return {0, std::move(set)};
}

// The reference takes a few characters for parts of words only when \w stands alone.
CodePointSet word_set(bool in_class) {
  const CodePointSet word = *set_named("word");
  return in_class ? word : word | *set_named("wordoutsideclass");
}

// \s \d \w \h, in capitals what they leave out.
std::optional<CodePointSet> shorthand(char letter, bool in_class) {
  switch (letter) {
    case 's':
      return set_named("whitespace");
    case 'd':
      return set_named("nd");
    case 'w':
      return word_set(in_class);
    case 'h':
      return set_named("xdigit");
    case 'S':
    case 'D':
    case 'W':
    case 'H':
      return ~*shorthand(static_cast<char>(letter - 'A' + 'a'), in_class);
    default:
      return std::nullopt;
  }
}

std::optional<char32_t> control(char letter) {
  switch (letter) {
    case 'n':
      return U'\n';
    case 'r':
      return U'\r';
    case 't':
      return U'\t';
    case 'f':
      return U'\f';
    case 'v':
      return U'\v';
    case 'a':
      return U'\a';
    case 'e':
      return char32_t{0x1B};
    default:
      return std::nullopt;
  }
}

}  // namespace

bool RegexReader::take(std::string_view text) {
  if (pattern_.substr(at_, text.size()) != text) return false;
  at_ += text.size();
  return true;
}

std::optional<int> RegexReader::take_number(int limit) {
  const std::size_t start = at_;
  int number = 0;
  for (; peek() >= '0' && peek() <= '9'; ++at_) {
    number = number * 10 + (peek() - '0');
    if (number > limit) {
      at_ = start;
      return std::nullopt;
    }
  }
  return at_ > start ? std::optional(number) : std::nullopt;
}

Status RegexReader::skip_behind(char last) {
  const std::size_t found = pattern_.find(last, at_);
  if (found == std::string_view::npos) return refuse("a group that does not end");
  at_ = found + 1;
  return {};
}

tl::unexpected<Error> RegexReader::refuse(const std::string& what) const {
  return fail(ErrorCode::kUnsupported,
              "regular expression cannot be used: " + what + " at byte " + std::to_string(at_));
}

Result<CharacterOrSet> RegexReader::read_character(bool in_class) {
  if (at_end()) return refuse("an expression that does not end");
  if (take("\\")) return read_escape(in_class);
  const DecodedChar next = decode_utf8(pattern_.substr(at_));
  if (!next.valid) return refuse("bytes that are not UTF-8");
  at_ += static_cast<std::size_t>(next.bytes);
  return CharacterOrSet{next.code_point, std::nullopt};
}

Result<CharacterOrSet> RegexReader::read_escape(bool in_class) {
  if (at_end()) return refuse("an escape of nothing");
  const char letter = peek();
  if (auto set = shorthand(letter, in_class)) {
    ++at_;
    if (options_.has_rust_words && letter == 'w') set = set_named("rustword");
    if (options_.has_rust_words && letter == 'W') set = ~*set_named("rustword");
    return a_set(std::move(*set));
  }
  if (const auto c = control(letter)) {
    ++at_;
    return CharacterOrSet{*c, std::nullopt};
  }
  if (in_class && take("b")) return CharacterOrSet{U'\b', std::nullopt};
  if (take("x{")) {
    PLIMSOLL_TRY(const CharacterOrSet c, read_hexadecimal(1, 8));
    if (!take("}")) return refuse("an escape \\x{ that does not end");
    return c;
  }
  if (take("x")) {
    PLIMSOLL_TRY(const CharacterOrSet c, read_hexadecimal(1, 2));
    if (c.character > 0x7F) return refuse("a character in bytes");
    return c;
  }
  if (take("u")) return read_hexadecimal(4, 4);
  if (letter == 'p' || letter == 'P') {
    ++at_;
    if (take("{")) return read_property(letter == 'P', in_class);
    return refuse("\\p without braces");
  }
  if (letter == '0') {
    int number = 0;
    for (int digits = 0; digits < 3 && is_octal(peek()); ++digits, ++at_)
      number = number * 8 + (peek() - '0');
    return CharacterOrSet{static_cast<char32_t>(number), std::nullopt};
  }
  if (!in_class && take("N")) return a_set(~CodePointSet::of(U'\n', U'\n'));
  if (!in_class && take("O")) return a_set(~CodePointSet());
  constexpr std::string_view kSpecial = "123456789cCMkgRXKGZyYzAbBNO";
  if (kSpecial.find(letter) != std::string_view::npos) return refuse(std::string("the escape \\") + letter);
  const DecodedChar next = decode_utf8(pattern_.substr(at_));
  if (!next.valid) return refuse("bytes that are not UTF-8");
  at_ += static_cast<std::size_t>(next.bytes);
  return CharacterOrSet{next.code_point, std::nullopt};
}

Result<CharacterOrSet> RegexReader::read_hexadecimal(std::size_t min_digits, std::size_t max_digits) {
  char32_t c = 0;
  std::size_t digits = 0;
  for (; digits < max_digits && hexadecimal(peek()) >= 0; ++digits, ++at_)
    c = c * 16 + static_cast<char32_t>(hexadecimal(peek()));
  if (digits < min_digits || c > kLastCodePoint || (c >= 0xD800 && c <= 0xDFFF))
    return refuse("an escape that is not a character");
  return CharacterOrSet{c, std::nullopt};
}

Result<CharacterOrSet> RegexReader::read_property(bool is_negative, bool in_class) {
  if (take("^")) is_negative = !is_negative;
  const std::size_t end = pattern_.find('}', at_);
  const std::string_view name = pattern_.substr(at_, end == std::string_view::npos ? end : end - at_);
  auto set = set_named(name);
  if (end == std::string_view::npos || !set) return refuse("the property " + std::string(name));
  at_ = end + 1;
  if (*set == word_set(true)) set = word_set(in_class);
  return a_set(is_negative ? ~*set : std::move(*set));
}

// [:name:] inside a class; nothing where a plain bracket stands.
Result<std::optional<CodePointSet>> RegexReader::read_posix() {
  const std::size_t start = at_;
  take("[:");
  const bool is_negative = take("^");
  const std::size_t name_start = at_;
  while (peek() >= 'a' && peek() <= 'z') ++at_;
  const std::string_view name = pattern_.substr(name_start, at_ - name_start);
  if (!take(":]")) {
    at_ = start;
    return std::nullopt;
  }
  if (name == "graph" || name == "print" || name == "blank") return refuse("the class " + std::string(name));
  // Unlike \p{Punct}, the bracketed name takes symbols too.
  auto set = name == "punct" ? *set_named("p") | *set_named("s") : set_named(name);
  if (!set) return refuse("the class " + std::string(name));
  return is_negative ? ~*set : std::move(*set);
}

// A nested class, an escape's set, a character or a range of them.
Result<CodePointSet> RegexReader::read_class_item() {
  PLIMSOLL_TRY(CharacterOrSet first, read_character(true));
  const bool has_range = peek() == '-' && peek(1) != ']' && peek(1) != '\0';
  if (first.set) {
    if (has_range) return refuse("a range that starts with a set");
    return std::move(*first.set);
  }
  if (!has_range) return CodePointSet::of(first.character, first.character);
  take("-");
  if (peek() == '[') return refuse("a range that ends with a class");
  PLIMSOLL_TRY(const CharacterOrSet last, read_character(true));
  if (last.set || last.character < first.character)
    return refuse("a range whose end stands before its beginning");
  return CodePointSet::of(first.character, last.character);
}

Result<CodePointSet> RegexReader::read_class(int depth) {
  if (depth > kMaxClassDepth) return refuse("classes nested beyond 20");
  const bool is_negative = take("^");
  std::optional<CodePointSet> common;  // of what stands before each &&
  std::vector<CodePoints> ranges;
  const auto add = [&](const CodePointSet& set) {
    ranges.insert(ranges.end(), set.ranges().begin(), set.ranges().end());
  };
  if (take("]")) add(CodePointSet::of(U']', U']'));
  while (!take("]")) {
    if (at_end()) return refuse("a class that does not end");
    if (take("&&")) {
      CodePointSet so_far(std::exchange(ranges, {}));
      common = common ? *common & so_far : std::move(so_far);
      continue;
    }
    if (peek() == '[' && peek(1) == ':') {
      PLIMSOLL_TRY(const auto named, read_posix());
      if (named) {
        add(*named);
        continue;
      }
    }
    if (take("[")) {
      PLIMSOLL_TRY(const CodePointSet inner, read_class(depth + 1));
      add(inner);
      continue;
    }
    PLIMSOLL_TRY(const CodePointSet item, read_class_item());
    add(item);
  }
  CodePointSet set(std::move(ranges));
  if (common) set = *common & set;
  if (options_.ignores_case) set = set.with_other_cases();
  return is_negative ? ~set : set;
}

}  // namespace plimsoll::text
