// SPDX-License-Identifier: Apache-2.0
// To which size do processors bring an image, and into how many tiles do they cut it? The arithmetic that the
// rules of image_tokens_rules.h share; knows no config. Sides are positive and at most kMaxSide. Follows the
// reference's order of floating-point operations, so that halves fall on the same side. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/division.h"
#include "base/result.h"
#include "model/image_tokens.h"

namespace plimsoll::model {

constexpr double real(std::int64_t value) {
  return static_cast<double>(value);
}
/// a * b, at most 2^61, so that sums of a few still fit. For values that are not negative.
std::int64_t times(std::int64_t a, std::int64_t b);
/// Python's round(): halves go to the even neighbour.
std::int64_t round_half_even(double value);
/// Python's int(): cut towards zero; values that do not fit become the nearest that does.
std::int64_t cut(double value);

/// How sides are brought to multiples of `factor` under a budget of pixels.
struct PixelBudget {
  std::int64_t factor = 1;
  std::int64_t min_pixels = 1, max_pixels = 1;
};
/// Errors: kNo when one side is over 200 times the other.
Result<PixelSize> fit_pixels(PixelSize size, const PixelBudget& budget);
/// The same with the frames counted in: the budget is the clip's. Small sizes are scaled up to one factor
/// first. Errors: kNo as above, and when there are fewer frames than `temporal_factor`.
Result<PixelSize> fit_clip(PixelSize size, std::int64_t frames, std::int64_t temporal_factor,
                           const PixelBudget& budget);

/// The candidate that keeps most of the image and wastes least of itself. Empty when none keeps a pixel.
std::optional<PixelSize> best_resolution(PixelSize size, const std::vector<PixelSize>& candidates);
/// The shorter side becomes `shortest`, the longer follows and is cut.
PixelSize by_shortest_edge(PixelSize size, std::int64_t shortest);

/// Columns and rows of tiles, as width and height, whose shape comes nearest to the image's.
PixelSize nearest_grid(PixelSize size, PixelSize tile, std::int64_t min_tiles, std::int64_t max_tiles);

}  // namespace plimsoll::model
