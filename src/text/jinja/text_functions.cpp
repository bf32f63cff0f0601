// SPDX-License-Identifier: Apache-2.0
// The text functions behind methods and filters; no values here.
#include <algorithm>
#include <cstring>
#include <utility>

#include "base/utf8.h"
#include "text/jinja/string_methods.h"
#include "text/unicode.h"

namespace plimsoll::text::jinja {

std::size_t find_text(std::string_view text, std::string_view part) {
  if (part.empty()) return 0;
  const void* found = text.empty() ? nullptr : memmem(text.data(), text.size(), part.data(), part.size());
  return found ? static_cast<std::size_t>(static_cast<const char*>(found) - text.data())
               : std::string_view::npos;
}

std::string_view trimmed(std::string_view text, Side side) {
  const auto is_blank = [](char c) {
    return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1C && c <= 0x1F);
  };
  const auto is_wide = [](char c) { return static_cast<unsigned char>(c) >= 0x80; };
  if (side != Side::kRight) {
    while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
    if (!text.empty() && is_wide(text.front())) return strip(text, side);
  }
  if (side != Side::kLeft) {
    while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
    if (!text.empty() && is_wide(text.back())) return strip(text, side);
  }
  return text;
}

std::string replaced(std::string_view text, std::string_view from, std::string_view to, std::int64_t count) {
  std::string out;
  if (from.empty()) {
    while (count != 0) {
      out += to;
      if (count > 0) --count;
      if (text.empty()) return out;
      const auto bytes = static_cast<std::size_t>(decode_utf8(text).bytes);
      out += text.substr(0, bytes);
      text.remove_prefix(bytes);
    }
    return out += text;
  }
  for (; count != 0; count -= count > 0 ? 1 : 0) {
    const std::size_t at = find_text(text, from);
    if (at == std::string_view::npos) break;
    out += text.substr(0, at);
    out += to;
    text.remove_prefix(at + from.size());
  }
  return out += text;
}

std::vector<std::string> split_lines(std::string_view text, bool keeps_ends) {
  std::vector<std::string> lines;
  std::string line;
  bool has_open_line = false;
  for (std::size_t i = 0; i < text.size();) {
    const DecodedChar next = decode_utf8(text.substr(i));
    const char32_t c = next.code_point;
    const auto bytes = static_cast<std::size_t>(next.bytes);
    if ((c >= 0x0A && c <= 0x0D) || (c >= 0x1C && c <= 0x1E) || c == 0x85 || c == 0x2028 || c == 0x2029) {
      const std::size_t end = i;
      i += bytes;
      if (c == '\r' && i < text.size() && text[i] == '\n') ++i;
      if (keeps_ends) line += text.substr(end, i - end);
      lines.push_back(std::exchange(line, {}));
      has_open_line = false;
      continue;
    }
    line += text.substr(i, bytes);
    has_open_line = true;
    i += bytes;
  }
  if (has_open_line) lines.push_back(std::move(line));
  return lines;
}

std::size_t most_lines(std::string_view text) {
  // The wide ends of lines begin with one of these two bytes.
  return 1 + static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
           return (c >= '\n' && c <= '\r') || (c >= 0x1C && c <= 0x1E) || c == '\xC2' || c == '\xE2';
         }));
}

std::int64_t strip_cost(std::string_view characters) {
  constexpr std::int64_t kSortedPerStep = 4;
  return static_cast<std::int64_t>(characters.size()) / kSortedPerStep;
}

std::string escaped_markup(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&#34;";
    else if (c == '\'')
      out += "&#39;";
    else
      out += c;
  }
  return out;
}

std::string swap_case(std::string_view text) {
  std::string out;
  for (const char32_t c : to_code_points(text)) {
    const std::string one = to_utf8(std::u32string(1, c));
    out += is_upper(c) ? to_lower(one) : is_lower(c) ? to_upper(one) : one;
  }
  return out;
}

}  // namespace plimsoll::text::jinja
