// SPDX-License-Identifier: Apache-2.0
// What all charts share: sizes, the frame with title and legend, the grid. Private to the charts. Pure.
#pragma once

#include <string>
#include <vector>

#include "report/chart.h"
#include "report/scale.h"

namespace plimsoll::report {

// Units of the view box, close to pixels on a telephone's screen.
constexpr double kWidth = 480;
constexpr double kChartHeight = 280;
constexpr double kLeft = 56;
constexpr double kRight = 14;
constexpr double kTop = 10;
constexpr double kBottom = 40;
constexpr std::size_t kColours = 8;  // of the style sheet: classes l0..l7 for lines, f0..f7 for areas

struct Frame {
  std::string title;
  std::string x_label;
  std::string y_label;
  double height = kChartHeight;
};

/// Grid lines and their figures; `y` may be null.
std::string grid(const Frame& frame, const Scale& x, const Scale* y);
/// The whole <figure>: caption, drawing, and a legend when there is more than one key.
std::string figure(const Frame& frame, const std::string& drawing, const std::vector<Key>& legend);
/// A figure that says it has no data.
std::string empty_figure(const std::string& title);

}  // namespace plimsoll::report
