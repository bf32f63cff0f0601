// SPDX-License-Identifier: Apache-2.0
// Charts as SVG elements for a page: no script, no library, colours from the page's style sheet. Knows no
// domain. Whatever the data, a chart has at most some 2,000 points, all of them finite. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace plimsoll::report {

struct Point {
  double x = 0;
  double y = 0;
  std::string note;  // shown when pointed at; empty: none
};

struct Series {
  std::string name;
  std::vector<Point> points;  // drawn in this order; points that are not finite are left out
};

struct Chart {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool has_log_x = false;      // points at or below 0 are left out
  bool is_step = false;        // a value holds until the next point
  bool has_dots = false;       // each point is marked
  bool starts_at_zero = true;  // the y axis
  std::vector<Series> series = {};
};
/// One <figure> with an <svg>; without a single point it says so instead.
std::string to_svg(const Chart& chart);

/// A stretch of a row; `kind` is an index into Timeline::kinds.
struct Stretch {
  double from = 0;
  double to = 0;
  std::size_t kind = 0;
};
/// A line of a legend.
struct Key {
  std::string name;
  std::size_t colour = 0;  // 0..7, as the style sheet numbers them
};
struct Timeline {
  std::string title;
  std::string x_label;
  std::vector<Key> kinds;                  // in the order of the legend
  std::vector<std::vector<Stretch>> rows;  // from the top
};
/// Beyond 400 rows every n-th is shown, and the title says so.
std::string to_svg(const Timeline& timeline);

/// At most `limit` points (at least 4) in the old order: first and last, and of each stretch between the
/// lowest and the highest.
std::vector<Point> thinned(const std::vector<Point>& points, std::size_t limit);

/// Round numbers within [low, high], about `count` of them; powers and their 2- and 5-fold for a log axis.
std::vector<double> round_ticks(double low, double high, int count, bool is_log);
/// "0.25", "1500", "4.2M".
std::string tick_text(double value);

/// `text` for the inside of an element or an attribute in quotes; what no XML document may hold is U+FFFD.
std::string escaped_markup(std::string_view text);

/// The style sheet that charts and tables need, in dark and light.
std::string_view page_style();
/// A whole document around `body`: no script, nothing from elsewhere.
std::string to_page(std::string_view title, std::string_view body);

}  // namespace plimsoll::report
