// SPDX-License-Identifier: Apache-2.0
// Images that keep their shape: resized to whole patches under a budget, one token per merged patch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/image_tokens_resize.h"
#include "model/image_tokens_rules.h"

namespace plimsoll::model {
namespace {

struct GridDefaults {
  Sides size;
  bool reads_pixels = true;  // min_pixels and max_pixels beside `size`
  bool counts_time = false;  // the budget is for temporal_patch_size frames
  std::int64_t num_marks = 0;
  bool ignores_square = false;  // a `size` of [672, 672] stands for the default
};

Result<Expansion> grid_image(Processor& p, PixelSize size, const GridDefaults& defaults) {
  const std::int64_t patch = p.image.integer("patch_size", 1, kMaxPatch, 14);
  const std::int64_t merge = p.image.integer("merge_size", 1, kMaxMerge, 2);
  const std::int64_t time = p.image.integer("temporal_patch_size", 1, kMaxMerge, 2);
  const bool resizes = p.image.flag("do_resize", true);
  Sides sides = read_sides(p.image, "size", defaults.size, false);
  if (defaults.ignores_square && p.image["size"] == Json(Json::Array{672, 672})) sides = defaults.size;
  if (defaults.reads_pixels) {
    if (p.image.has("min_pixels")) sides.shortest = p.image.integer("min_pixels", 1, kMaxPixels);
    if (p.image.has("max_pixels")) sides.longest = p.image.integer("max_pixels", 1, kMaxPixels);
  }
  PLIMSOLL_TRY_VOID(p.status());
  const std::int64_t factor = patch * merge;
  if (resizes) {
    if (!sides.shortest || !sides.longest)
      return refuse("the processor's size needs shortest_edge and longest_edge, in pixels");
    const PixelBudget budget{factor, *sides.shortest, *sides.longest};
    PLIMSOLL_TRY(size, defaults.counts_time ? fit_clip(size, time, time, budget) : fit_pixels(size, budget));
  } else if (size.height % factor != 0 || size.width % factor != 0) {
    return refuse(fmt::format("with do_resize false, sides must be multiples of {}", factor));
  }
  return Expansion{times(size.height / patch, size.width / patch) / (merge * merge), defaults.num_marks, {}};
}

/// Kimi's sizes, by a limit of patches and one of patches per side; then padded to whole merged patches.
PixelSize fit_patches(PixelSize size, std::int64_t factor, std::int64_t patch, std::int64_t max_patches,
                      std::int64_t patches_per_side) {
  const double height = real(size.height), width = real(size.width);
  const double patches = std::max(1.0, real(size.height / patch)) * std::max(1.0, real(size.width / patch));
  const std::int64_t longest = times(patches_per_side, patch);
  const double scale =
      std::min({1.0, std::sqrt(real(max_patches) / patches), real(longest) / height, real(longest) / width});
  const auto fitted = [&](double side) {
    const std::int64_t kept = std::min(std::max<std::int64_t>(1, cut(side * scale)), longest);
    return times(divided_up(kept, factor), factor);
  };
  return {fitted(height), fitted(width)};
}

struct KimiFigures {
  std::int64_t patch, merge, max_patches;
  std::optional<std::int64_t> patches_per_side;
  bool resizes;
};

KimiFigures read_kimi(KeyReader& keys, std::int64_t default_patches) {
  const Sides sides = read_sides(keys, "size", {{}, {}, {}, {}, 512, 512}, true);
  KimiFigures figures{keys.integer("patch_size", 1, kMaxPatch, 14),
                      keys.integer("merge_size", 1, kMaxMerge, 2),
                      keys.integer("max_patches", 1, kMaxPixels, default_patches), sides.max_height,
                      keys.flag("do_resize", true)};
  if (sides.max_height != sides.max_width) figures.patches_per_side.reset();
  return figures;
}

/// Tokens of one image or frame.
Result<std::int64_t> kimi_tokens(const KimiFigures& kimi, PixelSize size) {
  if (!kimi.patches_per_side)
    return refuse("the processor's size needs max_height and max_width, both the same number of patches");
  if (kimi.resizes)
    size = fit_patches(size, kimi.patch * kimi.merge, kimi.patch, kimi.max_patches, *kimi.patches_per_side);
  else if (size.height % kimi.patch != 0 || size.width % kimi.patch != 0)
    return refuse(fmt::format("with do_resize false, sides must be multiples of {}", kimi.patch));
  return times(size.height / kimi.patch, size.width / kimi.patch) / (kimi.merge * kimi.merge);
}

/// Tokens of one image or frame of a reader of Gemma 4's.
Result<std::int64_t> gemma4_tokens(Processor& p, KeyReader& keys, std::int64_t default_tokens,
                                   PixelSize size) {
  const std::int64_t patch = keys.integer("patch_size", 1, kMaxPatch, 16);
  const std::int64_t pool = keys.integer("pooling_kernel_size", 1, kMaxMerge, 3);
  const std::int64_t most = keys.integer("max_soft_tokens", 1, kMaxPerImage, default_tokens);
  const bool resizes = keys.flag("do_resize", true);
  PLIMSOLL_TRY_VOID(p.status());
  constexpr std::array<std::int64_t, 5> kTaken{70, 140, 280, 560, 1120};
  if (std::find(kTaken.begin(), kTaken.end(), most) == kTaken.end())
    return refuse(fmt::format("max_soft_tokens is {}, the processor takes 70, 140, 280, 560 and 1120", most));
  if (!resizes) {
    if (size.height % patch != 0 || size.width % patch != 0)
      return refuse(fmt::format("with do_resize false, sides must be multiples of {}", patch));
    return times(size.height / patch, size.width / patch) / (pool * pool);
  }
  const std::int64_t max_patches = most * pool * pool, side = pool * patch;
  const double budget = real(times(max_patches, patch * patch));
  const double scale = std::sqrt(budget / (real(size.height) * real(size.width)));
  PixelSize fitted{cut(std::floor(scale * real(size.height) / real(side))) * side,
                   cut(std::floor(scale * real(size.width) / real(side))) * side};
  const std::int64_t longest = most * side;
  if (fitted.height == 0 && fitted.width == 0) return refuse("the image shrinks to nothing");
  if (fitted.height == 0)
    fitted = {side, std::min(times(size.width / size.height, side), longest)};
  else if (fitted.width == 0)
    fitted = {std::min(times(size.height / size.width, side), longest), side};
  if (real(times(fitted.height, fitted.width)) > budget)
    return refuse(fmt::format("{}x{} would take more than {} patches", size.width, size.height, max_patches));
  return times(fitted.height / patch, fitted.width / patch) / (pool * pool);
}

// "00:07": minutes and seconds.
std::string minutes_and_seconds(double seconds) {
  return fmt::format("{:02d}:{:02d}", cut(std::floor(seconds / 60)), cut(std::fmod(seconds, 60)));
}

// "00:00:07.250": hours modulo a day, and milliseconds cut.
std::string clock_time(double seconds) {
  const std::int64_t whole = cut(seconds);
  return fmt::format("{:02d}:{:02d}:{:02d}.{:03d}", whole / 3600 % 24, whole / 60 % 60, whole % 60,
                     cut(std::fmod(seconds, 1) * 1000));
}

}  // namespace

Result<Expansion> qwen2_vl_image(Processor& p, PixelSize size) {
  return grid_image(p, size, {.size = Sides::edges(56 * 56, 28 * 28 * 1280)});
}

Result<Expansion> glm4v_image(Processor& p, PixelSize size) {
  return grid_image(
      p, size,
      {.size = Sides::edges(112 * 112, 28 * 28 * 15000), .reads_pixels = false, .counts_time = true});
}

Result<Expansion> minimax_m3_image(Processor& p, PixelSize size) {
  return grid_image(p, size,
                    {.size = Sides::edges(4 * 28 * 28, 451'584), .num_marks = 2, .ignores_square = true});
}

Result<Expansion> kimi_k25_image(Processor& p, PixelSize size) {
  const KimiFigures kimi = read_kimi(p.image, 16'384);
  PLIMSOLL_TRY_VOID(p.status());
  PLIMSOLL_TRY(const std::int64_t tokens, kimi_tokens(kimi, size));
  return Expansion{tokens, 0, {}};
}

Result<Expansion> kimi_k25_video(Processor& p, const Clip& clip) {
  const KimiFigures kimi = read_kimi(p.video, 4'096);
  const std::int64_t together = p.video.integer("temporal_patch_size", 1, kMaxMerge, 4);
  p.default_fps = 2;
  PLIMSOLL_TRY(const Frames frames, sample_evenly(p, clip, true));
  PLIMSOLL_TRY(const std::int64_t tokens, kimi_tokens(kimi, clip.size));
  Expansion expansion;
  for (std::size_t at = 0; at < frames.size(); at += static_cast<std::size_t>(together)) {
    expansion.media_tokens += tokens;
    expansion.mark_tokens += 3;
    expansion.texts.push_back({clock_time(real(frames[at]) / clip.frames_per_second)});
  }
  expansion.texts.push_back({"video", static_cast<std::int64_t>(expansion.texts.size())});
  return expansion;
}

Result<Expansion> kimi_vl_image(Processor& p, PixelSize size) {
  const std::int64_t patch = p.image.integer("patch_size", 1, kMaxPatch, 14);
  const std::int64_t most = p.image.integer("in_token_limit", 1, kMaxPixels, 4'096);
  const bool pads = p.image.flag("pad_input", false);
  std::vector<double> merge = p.image.numbers("merge_kernel_size", 2);
  PLIMSOLL_TRY_VOID(p.status());
  if (merge.empty()) merge = {2, 2};
  for (const double side : merge)
    if (merge.size() != 2 || side < 1 || side > real(kMaxMerge) || side != std::floor(side))
      return fail(ErrorCode::kMalformed,
                  "reading the model's figures: merge_kernel_size is not a pair of sides");
  const PixelSize merged{cut(merge[0]), cut(merge[1])};
  const std::int64_t patches = (size.height / patch) * (size.width / patch);
  if (patches > most) {
    const double scale = std::sqrt(real(most) / real(patches));
    size = {cut(real(size.height) * scale), cut(real(size.width) * scale)};
  }
  if (pads)
    size = {divided_up(size.height, merged.height * patch) * merged.height * patch,
            divided_up(size.width, merged.width * patch) * merged.width * patch};
  if (size.height / patch >= 512 || size.width / patch >= 512)
    return refuse("a side has more than the 511 patches that the encoder has places for");
  return Expansion{(size.height / patch) * (size.width / patch) / (merged.height * merged.width), 0, {}};
}

Result<Expansion> pixtral_image(Processor& p, PixelSize size) {
  const std::int64_t patch =
      p.top.integer("patch_size", 1, kMaxPatch, 16) * p.top.integer("spatial_merge_size", 1, kMaxMerge, 1);
  const bool resizes = p.image.flag("do_resize", true);
  Sides sides = read_sides(p.image, "size", {{}, 1024, {}, {}, {}, {}}, true);
  PLIMSOLL_TRY_VOID(p.status());
  if (resizes) {
    if (sides.longest) sides.height = sides.width = sides.longest;
    if (!sides.height || !sides.width)
      return refuse("the processor's size needs longest_edge, or height and width");
    const double ratio =
        std::max(real(size.height) / real(*sides.height), real(size.width) / real(*sides.width));
    if (ratio > 1)
      size = {cut(std::floor(real(size.height) / ratio)), cut(std::floor(real(size.width) / ratio))};
    size = {divided_up(size.height, patch) * patch, divided_up(size.width, patch) * patch};
  }
  const std::int64_t rows = size.height / patch, columns = size.width / patch;
  if (rows == 0 || (resizes && columns == 0)) return refuse("the image shrinks to nothing");
  return Expansion{times(rows, columns), rows, {}};  // each row ends in a break, the last in the end token
}

Result<Expansion> gemma4_image(Processor& p, PixelSize size) {
  PLIMSOLL_TRY(const std::int64_t tokens, gemma4_tokens(p, p.image, 280, size));
  return Expansion{tokens, 2, {}};
}

Result<Expansion> gemma4_video(Processor& p, const Clip& clip) {
  PLIMSOLL_TRY(const std::int64_t tokens, gemma4_tokens(p, p.video, 70, clip.size));
  p.default_num_frames = 32;
  PLIMSOLL_TRY(const Frames frames, sample_evenly(p, clip, true));
  Expansion expansion;
  for (const std::int64_t frame : frames) {
    expansion.media_tokens += tokens;
    expansion.mark_tokens += 2;
    const std::string time = minutes_and_seconds(real(frame) / clip.frames_per_second);
    expansion.texts.push_back({(expansion.texts.empty() ? "" : " ") + time + " "});
  }
  return expansion;
}

}  // namespace plimsoll::model
