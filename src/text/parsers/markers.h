// SPDX-License-Identifier: Apache-2.0
// Where in a text that is still arriving does a marker stand, and how much of it can be none? The text not
// yet settled, and look-ups in it. Pure; a Pending belongs to one parser.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::text {

/// Text that arrived and is not consumed. Views hold until the next append or drop.
class Pending {
 public:
  void append(std::string_view text);
  std::string_view view() const { return std::string_view(data_).substr(at_); }
  void drop(std::size_t num_bytes) { at_ += num_bytes; }
  /// Moves the first `num_bytes` to the end of `to`, but stops, and says true, when `to` is one byte over
  /// `limit`: at the same byte however the text was cut.
  bool move_to(std::string& to, std::size_t num_bytes, std::size_t limit);

 private:
  std::string data_;
  std::size_t at_ = 0;
};

enum class Match { kNo, kPartial, kYes };

/// Whether `text` starts with `marker`; kPartial: it is a proper beginning of it. Empty markers never match.
Match match_at(std::string_view text, std::string_view marker);

struct MarkerHit {
  std::size_t at = 0;  // bytes before the marker, or, without one, bytes that cannot be part of any
  int marker = -1;     // index into the markers; -1: none is complete
};
/// The first marker in `text`. Where one is the beginning of another the shorter counts, as it is there
/// first.
MarkerHit find_marker(std::string_view text, std::span<const std::string_view> markers);

/// JSON's and the templates' blanks: space, tab, CR, LF.
bool is_blank(char c);
/// Letters, digits and _ . : / - of ASCII.
bool is_tool_name_byte(char c);
std::size_t num_leading_blanks(std::string_view text);
std::string_view trimmed(std::string_view text);

}  // namespace plimsoll::text
