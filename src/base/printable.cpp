// SPDX-License-Identifier: Apache-2.0
#include "base/printable.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/utf8.h"

namespace plimsoll {
namespace {

std::string shown(std::string_view text, bool keeps_lines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    // Nearly all text is plain ASCII: taken in one piece.
    const auto plain_end =
        std::find_if(text.begin(), text.end(), [](char c) { return c < 0x20 || c > 0x7E; });
    out.append(text.begin(), plain_end);
    text.remove_prefix(static_cast<std::size_t>(plain_end - text.begin()));
    if (text.empty()) break;
    const DecodedChar next = decode_utf8(text);
    const char32_t c = next.code_point;
    if (!steers_terminal(c) || (keeps_lines && (c == '\n' || c == '\t')))
      append_utf8(out, c);
    else if (c < 0x100)
      out += fmt::format("\\x{:02x}", static_cast<unsigned>(c));
    else
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    text.remove_prefix(static_cast<std::size_t>(next.bytes));
  }
  return out;
}

}  // namespace

bool steers_terminal(char32_t c) {
  return c < 0x20 || (c >= 0x7F && c < 0xA0) || (c >= 0x202A && c <= 0x202E) ||
         (c >= 0x2066 && c <= 0x2069) || c == 0x2028 || c == 0x2029;
}

std::string printable(std::string_view text) {
  return shown(text, false);
}

std::string printable_page(std::string_view text) {
  return shown(text, true);
}

}  // namespace plimsoll
