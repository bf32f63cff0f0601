// SPDX-License-Identifier: Apache-2.0
// How do a table of figures and a progress line look in a terminal? Knows no domain.
// Plain values; a ProgressLine writes to stderr from one thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace plimsoll::report {

/// Rows of a label and a figure between headed rules, all of one width, as benchmark clients print them.
class FigureBlock {
 public:
  FigureBlock(std::size_t width, std::size_t label_width, std::size_t value_width)
      : width_(width), label_width_(label_width), value_width_(value_width) {}

  /// `title` centred in a line of `fill`; without a title the bare line.
  void rule(std::string_view title, char fill);
  void row(std::string_view label, std::string_view value);
  void row(std::string_view label, std::int64_t value);
  /// Two decimals; "-" when there is no value.
  void row(std::string_view label, std::optional<double> value);
  const std::string& text() const { return text_; }

 private:
  std::size_t width_;
  std::size_t label_width_;
  std::size_t value_width_;
  std::string text_;
};

/// "12.34"; "-" when there is no value.
std::string two_decimals(std::optional<double> value);

/// Pieces of a text one beside the other: on backgrounds in turn when coloured, else with '|' between them.
/// Control characters are shown as escapes, so that no text can steer the terminal.
std::string side_by_side(std::span<const std::string> pieces, bool is_coloured);

/// True when standard output is a terminal that wants colours (NO_COLOR is not set).
bool stdout_takes_colours();

/// A line on stderr that is written over on a terminal, and at most every few seconds elsewhere.
class ProgressLine {
 public:
  explicit ProgressLine(bool is_quiet);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  /// True when show() would show: a text that costs something is then worth making.
  bool is_due() const;
  /// Shows `text` if it is time to; always when `is_last`.
  void show(std::string_view text, bool is_last = false);

 private:
  bool is_quiet_;
  bool is_terminal_;
  bool has_open_line_ = false;
  std::chrono::steady_clock::time_point next_{};
};

}  // namespace plimsoll::report
