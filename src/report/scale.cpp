// SPDX-License-Identifier: Apache-2.0
#include "report/scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "report/chart.h"

namespace plimsoll::report {
namespace {

constexpr double kLargest = 1e300;

/// 1, 2 or 5 times a power of ten, at or above `rough`.
double round_step(double rough) {
  const double power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

std::vector<double> log_ticks(double low, double high) {
  std::vector<double> ticks;
  const int first = static_cast<int>(std::floor(std::log10(low)));
  const int last = static_cast<int>(std::ceil(std::log10(high)));
  const int stride = std::max(1, (last - first) / 8);
  for (int power = first; power <= last; power += stride)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double tick = factor * std::pow(10.0, power);
      const bool is_wanted = factor == 1.0 || last - first <= 3;
      if (is_wanted && tick >= low * (1 - 1e-9) && tick <= high * (1 + 1e-9)) ticks.push_back(tick);
    }
  return ticks;
}

}  // namespace

bool is_drawable(double value) {
  return std::isfinite(value) && std::abs(value) < kLargest;
}

std::string pixels(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.ends_with('0')) text.pop_back();
  if (text.ends_with('.')) text.pop_back();
  return text == "-0" ? "0" : text;
}

std::vector<double> round_ticks(double low, double high, int count, bool is_log) {
  if (is_log) return log_ticks(low, high);
  const double step = round_step((high - low) / std::max(1, count));
  std::vector<double> ticks;
  // Counted, not added up: the last tick is as round as the first.
  const double first = std::ceil(low / step - 1e-9);
  for (int i = 0; i <= 4 * count; ++i) {
    const double tick = (first + i) * step;
    if (tick > high + step * 1e-9) break;
    ticks.push_back(tick == 0 ? 0 : tick);
  }
  return ticks;
}

std::string tick_text(double value) {
  const double size = std::abs(value);
  if (size >= 1e15 || (size > 0 && size < 1e-4)) return fmt::format("{:.3g}", value);
  if (size >= 1e12) return fmt::format("{:.4g}T", value / 1e12);
  if (size >= 1e9) return fmt::format("{:.4g}G", value / 1e9);
  if (size >= 1e6) return fmt::format("{:.4g}M", value / 1e6);
  return fmt::format("{:.6g}", value);
}

Scale::Scale(double low, double high, double from, double to, bool is_log)
    : low_(low), high_(high), from_(from), to_(to), is_log_(is_log) {
  // One value alone, or so little between them that ticks would read the same: room around it.
  const double least = std::max(std::abs(low), std::abs(high)) * 1e-6;
  if (high - low <= least) {
    const double room = least > 0 ? std::max(std::abs(low), std::abs(high)) * 0.1 : 1.0;
    low_ = is_log ? low / 1.5 : (low >= 0 ? std::max(0.0, low - room) : low - room);
    high_ = is_log ? high * 1.5 : high + room;
  }
  ticks_ = round_ticks(low_, high_, 5, is_log);
  if (ticks_.size() < 2) ticks_ = round_ticks(low_, high_, 5, false);
}

double Scale::place(double value) const {
  const auto at = [this](double v) { return is_log_ ? std::log10(v) : v; };
  const double part = (at(value) - at(low_)) / (at(high_) - at(low_));
  return from_ + (to_ - from_) * std::clamp(part, 0.0, 1.0);
}

}  // namespace plimsoll::report
