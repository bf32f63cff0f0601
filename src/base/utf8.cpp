// SPDX-License-Identifier: Apache-2.0
#include "base/utf8.h"

#include <simdjson.h>

namespace plimsoll {
namespace {

struct LeadByte {
  int length;         // bytes of the sequence, 0: no lead byte
  unsigned char low;  // allowed range of the second byte (Unicode table 3-7)
  unsigned char high;
};

LeadByte lead(unsigned char byte) {
  if (byte < 0x80) return {1, 0, 0};
  if (byte < 0xC2) return {0, 0, 0};
  if (byte < 0xE0) return {2, 0x80, 0xBF};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3, 0x80, 0xBF};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4, 0x80, 0xBF};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0, 0, 0};
}

}  // namespace

DecodedChar decode_utf8(std::string_view text) {
  if (text.empty()) return {};
  const auto byte_at = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const LeadByte first = lead(byte_at(0));
  if (first.length == 0) return {kReplacementCharacter, 1, false, false};
  if (first.length == 1) return {byte_at(0), 1, true, false};
  char32_t value = byte_at(0) & (0x7Fu >> first.length);
  for (int i = 1; i < first.length; ++i) {
    if (static_cast<std::size_t>(i) >= text.size()) return {kReplacementCharacter, i, false, true};
    const unsigned char byte = byte_at(static_cast<std::size_t>(i));
    const unsigned char low = i == 1 ? first.low : 0x80;
    const unsigned char high = i == 1 ? first.high : 0xBF;
    if (byte < low || byte > high) return {kReplacementCharacter, i, false, false};
    value = (value << 6) | (byte & 0x3Fu);
  }
  return {value, first.length, true, false};
}

bool is_valid_utf8(std::string_view text) {
  return simdjson::validate_utf8(text);
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const DecodedChar next = decode_utf8(text);
    append_utf8(out, next.code_point);
    text.remove_prefix(static_cast<std::size_t>(next.bytes));
  }
  return out;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | (c >> 6));
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | (c >> 12));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | (c >> 18));
    put(0x80 | ((c >> 12) & 0x3F));
    put(0x80 | ((c >> 6) & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

}  // namespace plimsoll
