// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "report/chart.h"
#include "report/drawing.h"

namespace plimsoll::report {
namespace {

constexpr std::size_t kMaxRows = 400;
constexpr std::size_t kMaxStretches = 2000;
constexpr double kMostRowPixels = 8;
constexpr double kMostPixels = 320;  // of all rows

bool can_draw(const Stretch& stretch, std::size_t num_kinds) {
  return is_drawable(stretch.from) && is_drawable(stretch.to) && stretch.from <= stretch.to &&
         stretch.kind < num_kinds;
}

using Rows = std::vector<std::vector<Stretch>>;

/// Every n-th row, so that few enough are left.
Rows chosen(const Timeline& timeline) {
  const std::size_t every = (timeline.rows.size() + kMaxRows - 1) / kMaxRows;
  Rows rows;
  std::size_t num_stretches = 0;
  for (std::size_t i = 0; i < timeline.rows.size(); i += every) {
    std::vector<Stretch> row;
    for (const Stretch& stretch : timeline.rows[i])
      if (can_draw(stretch, timeline.kinds.size()) && num_stretches++ < kMaxStretches) row.push_back(stretch);
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<std::pair<double, double>> range_of(const Rows& rows) {
  std::optional<std::pair<double, double>> range;
  for (const auto& row : rows)
    for (const Stretch& stretch : row) {
      if (!range) range = std::pair(stretch.from, stretch.to);
      range->first = std::min(range->first, stretch.from);
      range->second = std::max(range->second, stretch.to);
    }
  return range;
}

}  // namespace

std::string to_svg(const Timeline& timeline) {
  const Rows rows = chosen(timeline);
  const auto range = range_of(rows);
  if (!range) return empty_figure(timeline.title);
  const auto num_rows = static_cast<double>(rows.size());
  const double row_height = std::min(kMostRowPixels, kMostPixels / num_rows);
  Frame frame{timeline.title, timeline.x_label, {}, kTop + num_rows * row_height + kBottom};
  if (rows.size() < timeline.rows.size())
    frame.title += fmt::format(" ({} of {} rows)", rows.size(), timeline.rows.size());
  const Scale x(range->first, range->second, kLeft, kWidth - kRight, false);
  std::string bars;
  double y = kTop;
  for (const auto& row : rows) {
    for (const Stretch& stretch : row) {
      const double from = x.place(stretch.from);
      bars += fmt::format("<rect class=\"f{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>\n",
                          timeline.kinds[stretch.kind].colour % kColours, pixels(from), pixels(y),
                          pixels(std::max(0.3, x.place(stretch.to) - from)), pixels(row_height * 0.85));
    }
    y += row_height;
  }
  return figure(frame, grid(frame, x, nullptr) + bars, timeline.kinds);
}

}  // namespace plimsoll::report
