// SPDX-License-Identifier: Apache-2.0
#include "artifact/json_scan.h"

#include <algorithm>
#include <array>
#include <bit>
#include <bitset>
#include <cstring>
#include <span>

#include "base/utf8.h"

namespace plimsoll::artifact {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

constexpr std::uint64_t repeat(unsigned char byte) {
  return std::uint64_t{0x0101010101010101} * byte;
}

// The high bit of each byte of `word` that is 0. Exact up to the first such byte; a borrow may mark later
// ones.
constexpr std::uint64_t zero_bytes(std::uint64_t word) {
  return (word - repeat(1)) & ~word & repeat(0x80);
}

constexpr std::array<std::int64_t, 9> kPowerOfTen{1,       10,        100,        1'000,      10'000,
                                                  100'000, 1'000'000, 10'000'000, 100'000'000};

// How many of the eight characters of a little-endian `word` are digits before the first that is none.
std::size_t leading_digits(std::uint64_t word) {
  const std::uint64_t digits = word ^ repeat('0');  // 0 to 9 where there is a digit
  // The high bit of each other byte; a carry may spoil what stands behind the first of them.
  const std::uint64_t others = (digits | (digits + repeat(0x80 - 10))) & repeat(0x80);
  return others == 0 ? 8 : static_cast<std::size_t>(std::countr_zero(others)) / 8;
}

// The number that the first `count` of eight characters spell; they are digits. Neighbours are put together,
// then pairs, then fours.
std::int64_t number_of_digits(std::uint64_t word, std::size_t count) {
  if (count == 0) return 0;
  std::uint64_t digits = (word ^ repeat('0')) << (8 * (8 - count));
  digits = (digits * 10 + (digits >> 8)) & 0x00FF00FF00FF00FF;
  digits = (digits * 100 + (digits >> 16)) & 0x0000FFFF0000FFFF;
  return static_cast<std::int64_t>((digits * 10'000 + (digits >> 32)) & 0xFFFFFFFF);
}

// The first byte from `at` that ends a run of plain characters: a quote, a backslash, a control character or
// a byte above 0x7F.
const char* end_of_plain(const char* at, const char* end) {
#if defined(__SSE2__)
  using Block = char __attribute__((vector_size(16)));
  using SignedBlock = signed char __attribute__((vector_size(16)));
  for (; end - at >= 16; at += 16) {
    SignedBlock text;
    std::memcpy(&text, at, 16);
    // Bytes above 0x7F are negative here, so that they count as below the space too.
    const auto special = (text < ' ') | (text == '"') | (text == '\\');
    if (const int mask = __builtin_ia32_pmovmskb128(reinterpret_cast<Block>(special)); mask != 0)
      return at + std::countr_zero(static_cast<unsigned>(mask));
  }
#endif
  if constexpr (std::endian::native == std::endian::little) {
    for (; end - at >= 8; at += 8) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      const std::uint64_t below_space = (word - repeat(' ')) & ~word & repeat(0x80);
      const std::uint64_t special = below_space | (word & repeat(0x80)) | zero_bytes(word ^ repeat('"')) |
                                    zero_bytes(word ^ repeat('\\'));
      if (special != 0) return at + std::countr_zero(special) / 8;
    }
  }
  while (at != end && static_cast<signed char>(*at) >= ' ' && *at != '"' && *at != '\\') ++at;
  return at;
}

}  // namespace

bool JsonScan::take_after_space(char c) {
  skip_space();
  if (at_ == end_ || *at_ != c) return false;
  ++at_;
  return true;
}

std::optional<std::string_view> JsonScan::plain_string() {
  skip_space();
  if (at_ == end_ || *at_ != '"') return std::nullopt;
  const char* first = at_ + 1;
  const char* last = end_of_plain(first, first + std::min(end_ - first, kLongest));
  if (last == end_ || *last != '"') return std::nullopt;
  at_ = last + 1;
  return std::string_view(first, static_cast<std::size_t>(last - first));
}

std::optional<std::int64_t> JsonScan::plain_number() {
  skip_space();
  const char* at = at_;
  std::int64_t value = 0;
  if constexpr (std::endian::native == std::endian::little) {
    while (end_ - at >= 8 && at - at_ < 16) {
      std::uint64_t word;
      std::memcpy(&word, at, 8);
      const std::size_t count = leading_digits(word);
      value = value * kPowerOfTen[count] + number_of_digits(word, count);
      at += count;
      if (count < 8) break;
    }
  }
  while (at != end_ && is_digit(*at) && at - at_ < 18) value = value * 10 + (*at++ - '0');
  if (at == at_ || (*at_ == '0' && at - at_ > 1)) return std::nullopt;
  // What may follow a number, and nothing else: a fraction or more digits are for the exact reader.
  if (at == end_ ||
      (*at != ',' && *at != ']' && *at != '}' && *at != ' ' && *at != '\n' && *at != '\r' && *at != '\t'))
    return std::nullopt;
  at_ = at;
  return value;
}

bool JsonScan::hex4(unsigned& unit) {
  unit = 0;
  for (int i = 0; i < 4; ++i, ++at_) {
    if (at_ == end_) return false;
    const char c = *at_;
    if (is_digit(c))
      unit = unit * 16 + static_cast<unsigned>(c - '0');
    else if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F'))
      unit = unit * 16 + static_cast<unsigned>((c | 0x20) - 'a' + 10);
    else
      return false;
  }
  return true;
}

// at_ is behind the backslash.
bool JsonScan::escape(std::string* text) {
  if (at_ == end_) return false;
  constexpr std::string_view kNames = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
  const char c = *at_;
  if (const std::size_t found = kNames.find(c); found != std::string_view::npos) {
    ++at_;
    if (text) text->push_back(kMeant[found]);
    return true;
  }
  if (c != 'u') return false;
  const char* start = at_++;
  unsigned unit = 0;
  if (!hex4(unit)) return false;
  char32_t code_point = unit;
  if (unit >= 0xD800 && unit <= 0xDFFF) {  // half of a pair; alone it is no character
    unsigned low = 0;
    const bool is_pair = unit < 0xDC00 && end_ - at_ >= 6 && at_[0] == '\\' && at_[1] == 'u';
    if (is_pair) at_ += 2;
    if (!is_pair || !hex4(low) || low < 0xDC00 || low > 0xDFFF) {
      at_ = start;
      return refuse("a surrogate stands alone");
    }
    code_point = 0x10000 + ((unit - 0xD800) << 10) + (low - 0xDC00);
  }
  if (text) append_utf8(*text, code_point);
  return true;
}

bool JsonScan::multibyte(std::string* text) {
  const DecodedChar decoded =
      decode_utf8({at_, static_cast<std::size_t>(std::min<std::ptrdiff_t>(end_ - at_, 4))});
  if (!decoded.valid) {
    is_bad_utf8_ = true;
    return refuse("the text is not UTF-8");
  }
  if (text) text->append(at_, static_cast<std::size_t>(decoded.bytes));
  at_ += decoded.bytes;
  return true;
}

// at_ is behind the opening quote.
bool JsonScan::string_body(std::string* text) {
  const char* limit = at_ + std::min(end_ - at_, kLongest);
  for (;;) {
    const char* stop = end_of_plain(at_, std::max(at_, limit));
    if (text) text->append(at_, static_cast<std::size_t>(stop - at_));
    at_ = stop;
    if (at_ == end_) return refuse("the text ends inside a string");
    if (at_ >= limit) return refuse("a string of more than 8 MB");
    if (*at_ == '"') {
      ++at_;
      return true;
    }
    if (*at_ == '\\') {
      ++at_;
      if (!escape(text)) return false;
    } else if (static_cast<unsigned char>(*at_) < 0x20) {
      return refuse("a string holds a control character");
    } else if (!multibyte(text)) {
      return false;
    }
  }
}

bool JsonScan::string(std::string& text) {
  return take('"') && string_body(&text);
}

bool JsonScan::skip_string() {
  return take('"') && string_body(nullptr);
}

bool JsonScan::skip_scalar() {
  constexpr std::array<std::string_view, 6> kWords{"true", "false", "null", "NaN", "Infinity", "-Infinity"};
  for (const std::string_view word : std::span(kWords).first(allows_constants_ ? 6 : 3)) {
    if (static_cast<std::size_t>(end_ - at_) < word.size() || std::string_view(at_, word.size()) != word)
      continue;
    at_ += word.size();
    return true;
  }
  const char* at = at_;
  const auto digits = [&] {
    const char* first = at;
    while (at != end_ && is_digit(*at)) ++at;
    return at != first;
  };
  if (at != end_ && *at == '-') ++at;
  const char* whole = at;
  if (!digits() || (*whole == '0' && at - whole > 1)) return false;
  if (at != end_ && *at == '.') {
    ++at;
    if (!digits()) return false;
  }
  if (at != end_ && (*at == 'e' || *at == 'E')) {
    ++at;
    if (at != end_ && (*at == '+' || *at == '-')) ++at;
    if (!digits()) return false;
  }
  at_ = at;
  return true;
}

std::optional<std::string_view> JsonScan::value(int max_depth) {
  constexpr int kMostDepth = 256;
  std::bitset<kMostDepth + 1> is_object;
  const int limit = std::min(max_depth, kMostDepth);
  int depth = 0;
  skip_space();
  const char* first = at_;
  const auto key = [&] { return skip_string() && take(':'); };
  for (;;) {  // one value
    if (at_ - first > kLongest) {
      refuse("a value of more than 8 MB");
      return std::nullopt;
    }
    const char c = peek();
    if (c == '{' || c == '[') {
      if (depth == limit) {
        refuse("nested too deep");
        return std::nullopt;
      }
      ++at_;
      is_object[static_cast<std::size_t>(++depth)] = c == '{';
      if (!take(c == '{' ? '}' : ']')) {
        if (c == '{' && !key()) return std::nullopt;
        continue;
      }
      --depth;
    } else if (c == '"' ? !skip_string() : !skip_scalar()) {
      return std::nullopt;
    }
    for (;;) {  // what may follow it
      if (depth == 0) return std::string_view(first, static_cast<std::size_t>(at_ - first));
      const bool in_object = is_object[static_cast<std::size_t>(depth)];
      if (take(',')) {
        if (in_object && !key()) return std::nullopt;
        break;
      }
      if (!take(in_object ? '}' : ']')) return std::nullopt;
      --depth;
    }
  }
}

}  // namespace plimsoll::artifact
