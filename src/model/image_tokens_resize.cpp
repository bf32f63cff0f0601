// SPDX-License-Identifier: Apache-2.0
#include "model/image_tokens_resize.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace plimsoll::model {
namespace {

Status refuse_thin(PixelSize size) {
  const auto [shorter, longer] = std::minmax(size.height, size.width);
  if (static_cast<double>(longer) / static_cast<double>(shorter) <= 200) return {};
  return fail(ErrorCode::kNo,
              fmt::format("counting an image's tokens: {}x{} is refused by the processor, one "
                          "side may be at most 200 times the other",
                          size.width, size.height));
}

// What no count reaches, with room left for sums.
constexpr std::int64_t kLargest = std::int64_t{1} << 61;

}  // namespace

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? kLargest : std::min(product, kLargest);
}

std::int64_t cut(double value) {
  if (!(std::fabs(value) < 9.0e18)) return value < 0 ? INT64_MIN : INT64_MAX;
  return static_cast<std::int64_t>(value);
}

std::int64_t round_half_even(double value) {
  return cut(std::nearbyint(value));
}

Result<PixelSize> fit_pixels(PixelSize size, const PixelBudget& budget) {
  PLIMSOLL_TRY_VOID(refuse_thin(size));
  const double height = real(size.height), width = real(size.width), factor = real(budget.factor);
  PixelSize fitted{round_half_even(height / factor) * budget.factor,
                   round_half_even(width / factor) * budget.factor};
  const std::int64_t pixels = times(fitted.height, fitted.width);
  if (pixels > budget.max_pixels) {
    const double beta = std::sqrt(height * width / real(budget.max_pixels));
    fitted.height = std::max(budget.factor, cut(std::floor(height / beta / factor)) * budget.factor);
    fitted.width = std::max(budget.factor, cut(std::floor(width / beta / factor)) * budget.factor);
  } else if (pixels < budget.min_pixels) {
    const double beta = std::sqrt(real(budget.min_pixels) / (height * width));
    fitted.height = times(cut(std::ceil(height * beta / factor)), budget.factor);
    fitted.width = times(cut(std::ceil(width * beta / factor)), budget.factor);
  }
  return fitted;
}

Result<PixelSize> fit_clip(PixelSize size, std::int64_t frames, std::int64_t temporal_factor,
                           const PixelBudget& budget) {
  if (frames < temporal_factor)
    return fail(
        ErrorCode::kNo,
        fmt::format("counting a clip's tokens: {} frames are fewer than the {} that the processor takes "
                    "together",
                    frames, temporal_factor));
  const double factor = real(budget.factor);
  if (size.height < budget.factor || size.width < budget.factor) {
    const double scale = std::max(factor / real(size.height), factor / real(size.width));
    size = {cut(real(size.height) * scale), cut(real(size.width) * scale)};
  }
  // Rounding may have lost a pixel of the shorter side, never the last one: a factor is at least 1.
  size = {std::max<std::int64_t>(size.height, 1), std::max<std::int64_t>(size.width, 1)};
  PLIMSOLL_TRY_VOID(refuse_thin(size));
  const double height = real(size.height), width = real(size.width);
  PixelSize fitted{round_half_even(height / factor) * budget.factor,
                   round_half_even(width / factor) * budget.factor};
  const std::int64_t time = round_half_even(real(frames) / real(temporal_factor)) * temporal_factor;
  const std::int64_t pixels = times(times(time, fitted.height), fitted.width);
  const double volume = real(frames) * height * width;
  if (pixels > budget.max_pixels) {
    const double beta = std::sqrt(volume / real(budget.max_pixels));
    fitted.height = std::max(budget.factor, cut(std::floor(height / beta / factor)) * budget.factor);
    fitted.width = std::max(budget.factor, cut(std::floor(width / beta / factor)) * budget.factor);
  } else if (pixels < budget.min_pixels) {
    const double beta = std::sqrt(real(budget.min_pixels) / volume);
    fitted.height = times(cut(std::ceil(height * beta / factor)), budget.factor);
    fitted.width = times(cut(std::ceil(width * beta / factor)), budget.factor);
  }
  return fitted;
}

std::optional<PixelSize> best_resolution(PixelSize size, const std::vector<PixelSize>& candidates) {
  std::optional<PixelSize> best;
  std::int64_t most_kept = 0, least_wasted = std::numeric_limits<std::int64_t>::max();
  for (const PixelSize& candidate : candidates) {
    const double scale =
        std::min(real(candidate.width) / real(size.width), real(candidate.height) / real(size.height));
    const std::int64_t kept = std::min(times(cut(real(size.width) * scale), cut(real(size.height) * scale)),
                                       times(size.width, size.height));
    const std::int64_t wasted = times(candidate.width, candidate.height) - kept;
    if (kept > most_kept || (kept == most_kept && wasted < least_wasted)) {
      most_kept = kept;
      least_wasted = wasted;
      best = candidate;
    }
  }
  return best;
}

PixelSize by_shortest_edge(PixelSize size, std::int64_t shortest) {
  if (size.width <= size.height)
    return {cut(real(times(shortest, size.height)) / real(size.width)), shortest};
  return {shortest, cut(real(times(shortest, size.width)) / real(size.height))};
}

PixelSize nearest_grid(PixelSize size, PixelSize tile, std::int64_t min_tiles, std::int64_t max_tiles) {
  struct Grid {
    std::int64_t columns, rows;
  };
  std::vector<Grid> grids;
  for (std::int64_t columns = 1; columns <= max_tiles; ++columns)
    for (std::int64_t rows = 1; columns * rows <= max_tiles; ++rows)
      if (columns * rows >= min_tiles) grids.push_back({columns, rows});
  std::stable_sort(grids.begin(), grids.end(),
                   [](const Grid& a, const Grid& b) { return a.columns * a.rows < b.columns * b.rows; });
  const double aspect = real(size.width) / real(size.height);
  const double area = real(size.width) * real(size.height);
  double least = std::numeric_limits<double>::infinity();
  Grid best{1, 1};
  for (const Grid& grid : grids) {
    const double difference = std::fabs(aspect - real(grid.columns) / real(grid.rows));
    if (difference < least) {
      least = difference;
      best = grid;
    } else if (difference == least &&
               area > 0.5 * real(tile.height) * real(tile.width) * real(grid.columns) * real(grid.rows)) {
      best = grid;
    }
  }
  return {best.rows, best.columns};
}

}  // namespace plimsoll::model
