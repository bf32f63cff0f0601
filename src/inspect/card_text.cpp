// SPDX-License-Identifier: Apache-2.0
#include "inspect/card_text.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <iterator>
#include <utility>

namespace plimsoll::inspect {

std::string plain(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c == '*' || c == '|' || c == '`' || c == '\r' || c == '\t')
      c = ' ';
    else
      c = lower(c);
  return result;
}

std::string shown(std::string_view source) {
  std::string text(source);
  const auto blank = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < std::min(end, text.size()); ++i)
      if (text[i] != '\n') text[i] = ' ';
  };
  constexpr std::string_view kOpen = "<!--", kClose = "-->";
  for (std::size_t at = 0; (at = source.find(kOpen, at)) != source.npos;) {
    const std::size_t close = source.find(kClose, at);
    if (close == source.npos) break;
    blank(at, close + kClose.size());
    at = close + kClose.size();
  }
  std::size_t fence = text.npos;  // where the open one begins
  char mark = 0;
  for (std::size_t line = 0; line < text.size();) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    const std::size_t start = text.find_first_not_of(" \t", line);
    const std::string_view rest =
        start < end ? std::string_view(text).substr(start, end - start) : std::string_view();
    const bool is_fence = rest.starts_with("```") || rest.starts_with("~~~");
    if (is_fence && fence == text.npos) {
      fence = line;
      mark = rest.front();
    } else if (is_fence && rest.front() == mark && rest.find_last_not_of(" \t\r`~") == rest.npos) {
      blank(fence, end);
      fence = text.npos;
    }
    line = end + 1;
  }
  return text;
}

Number read_number(std::string_view text, std::size_t at) {
  Number number;
  number.begin = at;
  std::string digits;
  bool has_point = false;
  while (at < text.size() && digits.size() < 24) {
    const char c = text[at];
    if (is_digit(c)) {
      digits += c;
      if (has_point) number.last_digit /= 10;
    } else if (c == '.' && !has_point && at + 1 < text.size() && is_digit(text[at + 1])) {
      digits += c;
      has_point = true;
    } else if (!(c == ',' && at + 3 < text.size() && is_digit(text[at + 1]) && is_digit(text[at + 2]) &&
                 is_digit(text[at + 3]))) {
      break;
    }
    ++at;
  }
  number.value = std::strtod(digits.c_str(), nullptr);
  number.end = at;
  constexpr std::array<std::pair<std::string_view, double>, 8> kUnits{{{"trillion", 1e12},
                                                                       {"billion", 1e9},
                                                                       {"million", 1e6},
                                                                       {"bn", 1e9},
                                                                       {"t", 1e12},
                                                                       {"b", 1e9},
                                                                       {"m", 1e6},
                                                                       {"k", 1024}}};
  std::size_t word = at;
  if (word < text.size() && (text[word] == ' ' || text[word] == '-')) ++word;
  for (const auto& [name, unit] : kUnits) {
    // One letter must stand at the number, but for billions; words may follow a blank.
    const bool is_near = name.size() == 1 && (name != "b" || (word > at && text[at] == '-'));
    const std::size_t begin = is_near ? at : word;
    if (text.substr(begin, name.size()) != name) continue;
    const std::size_t end = begin + name.size();
    if (end < text.size() && (is_letter(text[end]) || is_digit(text[end]))) continue;
    number.unit = unit;
    number.unit_text = name;
    number.end = end;
    break;
  }
  return number;
}

bool ends_range(std::string_view text, std::size_t at) {
  std::string_view left = text.substr(0, at);
  const auto trim = [&left] { left = left.substr(0, left.find_last_not_of(' ') + 1); };
  trim();
  bool is_joined = false;
  for (const std::string_view joint : {" to", "\u2013", "\u2014", "~"})
    if (left.ends_with(joint) && !is_joined) {
      left.remove_suffix(joint.size());
      is_joined = true;
    }
  trim();
  for (const std::string_view unit : {"billion", "million", "b", "m"})
    if (is_joined && left.ends_with(unit)) {
      left.remove_suffix(unit.size());
      break;
    }
  trim();
  return is_joined && !left.empty() && is_digit(left.back());
}

bool begins_range(std::string_view text, std::size_t end) {
  std::string_view right = text.substr(end, kReach);
  for (const std::string_view joint : {" to ", "\u2013", " \u2013 ", "\u2014", "~"})
    if (right.starts_with(joint)) return right.size() > joint.size() && is_digit(right[joint.size()]);
  return false;
}

std::size_t list_end(std::string_view text, std::size_t at) {
  constexpr std::string_view kJoints[] = {", and ", ", or ", ", ", " and ", " or ", " & ", "/"};
  constexpr int kMostSizes = 16;
  for (int i = 0; i < kMostSizes; ++i) {
    const auto* joint = std::find_if(std::begin(kJoints), std::end(kJoints),
                                     [&](std::string_view one) { return text.substr(at).starts_with(one); });
    if (joint == std::end(kJoints)) break;
    const std::size_t next = at + joint->size();
    if (next >= text.size() || !is_digit(text[next])) break;
    const Number number = read_number(text, next);
    if (number.unit < 1e6) break;
    at = number.end;
  }
  return at;
}

}  // namespace plimsoll::inspect
