// SPDX-License-Identifier: Apache-2.0
#include "report/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "report/drawing.h"
#include "report/scale.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kMaxPoints = 2000;

struct Ranges {
  double low_x = 0, high_x = 0, low_y = 0, high_y = 0;
};

bool can_draw(const Chart& chart, const Point& point) {
  return is_drawable(point.x) && is_drawable(point.y) && (!chart.has_log_x || point.x > 0);
}

std::vector<Series> drawable(const Chart& chart) {
  std::vector<Series> all;
  const std::size_t each =
      std::max<std::size_t>(4, kMaxPoints / std::max<std::size_t>(1, chart.series.size()));
  for (const Series& series : chart.series) {
    Series kept{series.name, {}};
    for (const Point& point : series.points)
      if (can_draw(chart, point)) kept.points.push_back(point);
    kept.points = thinned(kept.points, each);
    all.push_back(std::move(kept));
  }
  return all;
}

/// Nothing without a point.
std::optional<Ranges> ranges_of(const Chart& chart, const std::vector<Series>& all) {
  std::optional<Ranges> found;
  for (const Series& series : all)
    for (const Point& p : series.points) {
      if (!found) found = Ranges{p.x, p.x, p.y, p.y};
      found->low_x = std::min(found->low_x, p.x);
      found->high_x = std::max(found->high_x, p.x);
      found->low_y = std::min(found->low_y, p.y);
      found->high_y = std::max(found->high_y, p.y);
    }
  if (found && chart.starts_at_zero) found->low_y = std::min(found->low_y, 0.0);
  return found;
}

std::string line_of(const Series& series, const Scale& x, const Scale& y, bool is_step) {
  std::string path;
  for (const Point& point : series.points) {
    const std::string at_x = pixels(x.place(point.x));
    const std::string at_y = pixels(y.place(point.y));
    if (path.empty())
      path = "M" + at_x + " " + at_y;
    else if (is_step)
      path += "H" + at_x + "V" + at_y;
    else
      path += "L" + at_x + " " + at_y;
  }
  return path;
}

std::string dots_of(const Series& series, std::size_t colour, const Scale& x, const Scale& y) {
  std::string out;
  for (const Point& point : series.points)
    out += fmt::format(
        "<circle class=\"f{}\" cx=\"{}\" cy=\"{}\" r=\"3\"><title>{}</title></circle>\n", colour,
        pixels(x.place(point.x)), pixels(y.place(point.y)),
        escaped_markup(point.note.empty() ? tick_text(point.x) + ": " + tick_text(point.y) : point.note));
  return out;
}

}  // namespace

std::vector<Point> thinned(const std::vector<Point>& points, std::size_t limit) {
  if (points.size() <= limit) return points;
  std::vector<Point> kept = {points.front()};
  const std::size_t num_stretches = (limit - 2) / 2;
  const std::size_t inner = points.size() - 2;
  for (std::size_t i = 0; i < num_stretches; ++i) {
    const auto begin = points.begin() + 1 + static_cast<std::ptrdiff_t>(inner * i / num_stretches);
    const auto end = points.begin() + 1 + static_cast<std::ptrdiff_t>(inner * (i + 1) / num_stretches);
    const auto [low, high] =
        std::minmax_element(begin, end, [](const Point& a, const Point& b) { return a.y < b.y; });
    kept.push_back(*std::min(low, high));
    if (low != high) kept.push_back(*std::max(low, high));
  }
  kept.push_back(points.back());
  return kept;
}

std::string to_svg(const Chart& chart) {
  const std::vector<Series> all = drawable(chart);
  const auto ranges = ranges_of(chart, all);
  if (!ranges) return empty_figure(chart.title);
  const Frame frame{chart.title, chart.x_label, chart.y_label, kChartHeight};
  const Scale x(ranges->low_x, ranges->high_x, kLeft, kWidth - kRight, chart.has_log_x);
  const Scale y(ranges->low_y, ranges->high_y, kChartHeight - kBottom, kTop, false);
  std::vector<Key> legend;
  std::string lines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    legend.push_back({all[i].name, i % kColours});
    if (all[i].points.empty()) continue;
    lines +=
        fmt::format("<path class=\"l{}\" d=\"{}\"/>\n", i % kColours, line_of(all[i], x, y, chart.is_step));
    if (chart.has_dots) lines += dots_of(all[i], i % kColours, x, y);
  }
  return figure(frame, grid(frame, x, &y) + lines, legend);
}

}  // namespace plimsoll::report
