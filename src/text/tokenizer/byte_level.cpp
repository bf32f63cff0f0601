// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/byte_level.h"

#include <array>

#include "base/utf8.h"

namespace plimsoll::text {
namespace {

constexpr bool is_printable_byte(int byte) {
  return (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
}

// Printable bytes stand for themselves; the others, in order, take the characters from U+0100 on.
constexpr std::array<char32_t, 256> make_characters() {
  std::array<char32_t, 256> table{};
  char32_t next = 0x100;
  for (int byte = 0; byte < 256; ++byte)
    table[static_cast<std::size_t>(byte)] = is_printable_byte(byte) ? static_cast<char32_t>(byte) : next++;
  return table;
}
constexpr std::array<char32_t, 256> kCharacters = make_characters();
constexpr std::size_t kNumCharacters = 0x100 + 68;  // 68 bytes are not printable

constexpr std::array<std::int16_t, kNumCharacters> make_bytes() {
  std::array<std::int16_t, kNumCharacters> table{};
  table.fill(-1);
  for (std::size_t byte = 0; byte < 256; ++byte) table[kCharacters[byte]] = static_cast<std::int16_t>(byte);
  return table;
}
constexpr std::array<std::int16_t, kNumCharacters> kBytes = make_bytes();

}  // namespace

std::string bytes_to_characters(std::string_view bytes) {
  std::string out;
  for (const char byte : bytes) append_utf8(out, kCharacters[static_cast<unsigned char>(byte)]);
  return out;
}

void write_byte_characters(Rewriter& rewriter) {
  const std::string_view bytes = rewriter.source();
  for (std::size_t i = 0; i < bytes.size(); ++i)
    rewriter.put(bytes_to_characters(bytes.substr(i, 1)), i, i + 1);
}

bool append_bytes(std::string_view utf8, std::string& bytes) {
  // All byte characters take one or two bytes: longer ones end the walk.
  for (std::size_t i = 0; i < utf8.size();) {
    const auto lead = static_cast<unsigned char>(utf8[i]);
    char32_t c = lead;
    std::size_t size = 1;
    if (lead >= 0x80) {
      if ((lead & 0xE0u) != 0xC0u || i + 1 >= utf8.size()) return false;
      c = (lead & 0x1Fu) << 6 | (static_cast<unsigned char>(utf8[i + 1]) & 0x3Fu);
      size = 2;
    }
    if (c >= kNumCharacters || kBytes[c] < 0) return false;
    bytes += static_cast<char>(kBytes[c]);
    i += size;
  }
  return true;
}

bool characters_to_bytes(std::string_view utf8, std::string& bytes) {
  bytes.clear();
  return append_bytes(utf8, bytes);
}

std::string token_to_bytes(std::string_view utf8) {
  std::string bytes;
  return characters_to_bytes(utf8, bytes) ? bytes : std::string(utf8);
}

}  // namespace plimsoll::text
