// SPDX-License-Identifier: Apache-2.0
#include "text/parsers/markers.h"

#include <algorithm>

namespace plimsoll::text {

void Pending::append(std::string_view text) {
  // Consumed text goes when it outweighs the rest, so each byte is moved a bounded number of times.
  if (at_ > 0 && at_ >= data_.size() - at_) {
    data_.erase(0, at_);
    at_ = 0;
  }
  data_ += text;
}

bool Pending::move_to(std::string& to, std::size_t num_bytes, std::size_t limit) {
  const std::size_t num_moved = std::min(num_bytes, limit + 1 - std::min(limit, to.size()));
  to += view().substr(0, num_moved);
  drop(num_moved);
  return to.size() > limit;
}

Match match_at(std::string_view text, std::string_view marker) {
  if (marker.empty()) return Match::kNo;
  if (text.size() >= marker.size()) return text.starts_with(marker) ? Match::kYes : Match::kNo;
  return marker.starts_with(text) ? Match::kPartial : Match::kNo;
}

MarkerHit find_marker(std::string_view text, std::span<const std::string_view> markers) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    bool partial = false;
    MarkerHit hit{at, -1};
    for (std::size_t index = 0; index < markers.size(); ++index) {
      if (markers[index].empty() || markers[index].front() != text[at]) continue;
      const Match match = match_at(text.substr(at), markers[index]);
      partial |= match == Match::kPartial;
      const bool is_shorter =
          hit.marker < 0 || markers[index].size() < markers[static_cast<std::size_t>(hit.marker)].size();
      if (match == Match::kYes && is_shorter) hit.marker = static_cast<int>(index);
    }
    if (partial || hit.marker >= 0) return hit;
  }
  return {text.size(), -1};
}

bool is_blank(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

bool is_tool_name_byte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' ||
         c == ':' || c == '/' || c == '-';
}

std::size_t num_leading_blanks(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_blank(text[count])) ++count;
  return count;
}

std::string_view trimmed(std::string_view text) {
  text.remove_prefix(num_leading_blanks(text));
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

}  // namespace plimsoll::text
