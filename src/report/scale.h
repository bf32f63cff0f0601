// SPDX-License-Identifier: Apache-2.0
// From values to places in a chart: an axis with its range. Private to the charts. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace plimsoll::report {

/// An axis from `low` to `high` drawn from `from` to `to` (pixels; y axes have from > to).
class Scale {
 public:
  Scale(double low, double high, double from, double to, bool is_log);
  double place(double value) const;
  const std::vector<double>& ticks() const { return ticks_; }

 private:
  double low_;
  double high_;
  double from_;
  double to_;
  bool is_log_;
  std::vector<double> ticks_;
};

/// Can be drawn: finite and far from the ends of double, where differences overflow.
bool is_drawable(double value);
/// Pixels with at most two decimals, as SVG reads them.
std::string pixels(double value);

}  // namespace plimsoll::report
