// SPDX-License-Identifier: Apache-2.0
// Images that are cut into tiles of the encoder's one size, with the whole image beside them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "model/image_tokens_resize.h"
#include "model/image_tokens_rules.h"

namespace plimsoll::model {
namespace {

/// Tiles of an image, the small picture of the whole included, for processors with min_patches and
/// max_patches.
Result<std::int64_t> tiles_with_thumbnail(Processor& p, PixelSize size) {
  const std::int64_t least = p.image.integer("min_patches", 1, kMaxTiles, 1);
  const std::int64_t most = p.image.integer("max_patches", 1, kMaxTiles, 12);
  PLIMSOLL_TRY(const PixelSize tile, tile_of(p, 384));
  const PixelSize grid = nearest_grid(size, tile, least, most);
  const std::int64_t tiles = grid.height * grid.width;
  return tiles == 1 ? 1 : tiles + 1;
}

/// The canvas of Llama 4, in tiles. It compares in single precision, and so do we.
PixelSize llama4_canvas(PixelSize size, std::int64_t tile, std::int64_t max_tiles, bool fills_canvas) {
  struct Canvas {
    std::int64_t rows, columns;
    float scale;
  };
  std::vector<Canvas> canvases;
  for (std::int64_t tiles = max_tiles; tiles > 0; --tiles)
    for (std::int64_t rows = 1; rows <= tiles; ++rows)
      if (tiles % rows == 0) {
        const std::int64_t columns = tiles / rows;
        const float wide = static_cast<float>(columns * tile) / static_cast<float>(size.width);
        const float high = static_cast<float>(rows * tile) / static_cast<float>(size.height);
        canvases.push_back({rows, columns, std::min(wide, high)});
      }
  float chosen = 0;
  bool enlarges = false;
  for (const Canvas& canvas : canvases) {
    const bool does = canvas.scale >= 1;
    const bool is_better = does != enlarges        ? does
                           : does && !fills_canvas ? canvas.scale < chosen
                                                   : canvas.scale > chosen;
    if (is_better) {
      chosen = canvas.scale;
      enlarges = does;
    }
  }
  PixelSize best;
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Canvas& canvas : canvases)
    if (canvas.scale == chosen && canvas.rows * canvas.columns < least) {
      least = canvas.rows * canvas.columns;
      best = {canvas.rows, canvas.columns};
    }
  return best;
}

// Idefics 3: the longer side becomes `longest`, the shorter follows, made even.
PixelSize idefics_resize(PixelSize size, std::int64_t longest) {
  constexpr std::int64_t kLargest = 4'096;  // the processor's own bound
  const double aspect = real(size.width) / real(size.height);
  if (size.width >= size.height) {
    size = {cut(real(longest) / aspect), longest};
    size.height += size.height % 2;
  } else {
    size = {longest, cut(real(longest) * aspect)};
    size.width += size.width % 2;
  }
  size = {std::max<std::int64_t>(size.height, 1), std::max<std::int64_t>(size.width, 1)};
  const double shape = real(size.width) / real(size.height);
  if (size.width >= size.height && size.width > kLargest)
    size = {cut(real(kLargest) / shape), kLargest};
  else if (size.height > size.width && size.height > kLargest)
    size = {kLargest, cut(real(kLargest) * shape)};
  return {std::max<std::int64_t>(size.height, 1), std::max<std::int64_t>(size.width, 1)};
}

struct Lfm2Figures {
  std::int64_t down, least_tiles, most_tiles, least_tokens, most_tokens, patch, tile;
  double tolerance;
};

PixelSize lfm2_resize(PixelSize size, const Lfm2Figures& lfm) {
  const std::int64_t factor = lfm.patch * lfm.down;
  const double height = real(size.height), width = real(size.width), step = real(factor);
  const std::int64_t least = times(lfm.least_tokens, factor * factor);
  const std::int64_t most = times(lfm.most_tokens, factor * factor);
  PixelSize fitted{std::max(factor, round_half_even(height / step) * factor),
                   std::max(factor, round_half_even(width / step) * factor)};
  const std::int64_t pixels = times(fitted.height, fitted.width);
  if (pixels > most) {
    const double beta = std::sqrt(height * width / real(most));
    fitted = {std::max(factor, cut(std::floor(height / beta / step)) * factor),
              std::max(factor, cut(std::floor(width / beta / step)) * factor)};
  } else if (pixels < least) {
    const double beta = std::sqrt(real(least) / (height * width));
    fitted = {times(cut(std::ceil(height * beta / step)), factor),
              times(cut(std::ceil(width * beta / step)), factor)};
  }
  return fitted;
}

bool is_large_for_lfm2(PixelSize size, const Lfm2Figures& lfm) {
  const std::int64_t factor = lfm.patch * lfm.down;
  const double step = real(factor);
  const std::int64_t height = std::max(lfm.patch, round_half_even(real(size.height) / step) * factor);
  const std::int64_t width = std::max(lfm.patch, round_half_even(real(size.width) / step) * factor);
  return real(times(height, width)) > real(times(lfm.most_tokens, factor * factor)) * lfm.tolerance;
}

}  // namespace

Result<Expansion> llama4_image(Processor& p, PixelSize size) {
  const std::int64_t patch = p.top.integer("patch_size", 1, kMaxPatch, 14);
  const double ratio = p.top.positive("pixel_shuffle_ratio", 0.5);
  const std::int64_t max_tiles = p.image.integer("max_patches", 1, kMaxTiles, 16);
  const bool fills_canvas = p.image.flag("resize_to_max_canvas", false);
  const bool resizes = p.image.flag("do_resize", true);
  PLIMSOLL_TRY(const PixelSize tile, tile_of(p, 336));
  const std::int64_t merged = round_half_even(1.0 / (ratio * ratio));
  if (merged < 1) return refuse("pixel_shuffle_ratio leaves no token");
  if (tile.height != tile.width) return refuse("the processor's size must be square");
  if (!resizes) return refuse("the processor does not take do_resize false");
  const PixelSize canvas = llama4_canvas(size, tile.height, max_tiles, fills_canvas);
  const std::int64_t tiles = canvas.height * canvas.width;
  const std::int64_t per_tile = (tile.height / patch) * (tile.width / patch) / merged;
  if (tiles == 1) return Expansion{per_tile, 3, {}};
  // A separator after each tile of a row but the last, one after each row; then start, whole image and end.
  return Expansion{(tiles + 1) * per_tile, tiles + 3, {}};
}

Result<Expansion> internvl_image(Processor& p, PixelSize size) {
  const std::int64_t per_tile = p.top.integer("image_seq_length", 1, kMaxPerImage, 256);
  PLIMSOLL_TRY(const std::int64_t tiles, tiles_with_thumbnail(p, size));
  return Expansion{tiles * per_tile, 2, {}};
}

Result<Expansion> internvl_video(Processor& p, const Clip& clip) {
  const std::int64_t per_frame = p.top.integer("image_seq_length", 1, kMaxPerImage, 256);
  const bool samples = p.video.flag("do_sample_frames", false);
  const std::int64_t fixed = p.video.integer("num_frames", 1, kMaxFrames, 1);
  const double rate = p.video.positive("fps", 1);
  const Json& shift = p.video["initial_shift"];
  PLIMSOLL_TRY_VOID(p.status());
  std::int64_t frames = clip.frames;
  if (samples) {
    if (!p.video.has("num_frames") && !p.video.has("fps")) return refuse("sampling needs num_frames or fps");
    frames = p.video.has("num_frames") ? fixed : cut(real(clip.frames) / clip.frames_per_second * rate);
    if (frames < 1 || frames > clip.frames)
      return refuse(fmt::format("{} frames of {} would be taken", frames, clip.frames));
    const double step = real(clip.frames) / real(frames);
    const double first = shift.is_null() || shift == Json(true) ? step / 2 : shift.as_double().value_or(0);
    frames = cut(std::ceil((real(clip.frames) - first) / step));
    if (frames < 1 || first < 0) return refuse("initial_shift passes all frames");
  }
  Expansion expansion{times(frames, per_frame), 2 * frames, {}};
  for (std::int64_t frame = 1; frame <= frames; ++frame)
    expansion.texts.push_back({fmt::format("{}Frame{}: ", frame == 1 ? "" : "\n", frame)});
  return expansion;
}

// The checkpoints with code of their own: all figures stand in config.json.
Result<Expansion> internvl_chat_image(Processor& p, PixelSize size) {
  const std::int64_t side = p.config.has("force_image_size")
                                ? p.config.integer("force_image_size", 1, kMaxSide)
                                : p.vision.integer("image_size", 1, kMaxSide);
  const std::int64_t patch = p.vision.integer("patch_size", 1, kMaxPatch);
  const double ratio = p.config.positive("downsample_ratio", 0.5);
  const std::int64_t least = p.config.integer("min_dynamic_patch", 1, kMaxTiles, 1);
  const std::int64_t most = p.config.integer("max_dynamic_patch", 1, kMaxTiles, 12);
  const bool tiles_images = p.config.flag("dynamic_image_size", true);
  const bool has_thumbnail = p.config.flag("use_thumbnail", true);
  PLIMSOLL_TRY_VOID(p.status());
  const std::int64_t patches = side / patch;
  const std::int64_t per_tile = cut(real(patches * patches) * (ratio * ratio));
  std::int64_t tiles = 1;
  if (tiles_images) {
    const PixelSize grid = nearest_grid(size, {side, side}, least, most);
    tiles = grid.height * grid.width;
    if (has_thumbnail && tiles > 1) ++tiles;
  }
  return Expansion{times(tiles, per_tile), 2, {}};
}

Result<Expansion> aya_vision_image(Processor& p, PixelSize size) {
  const std::int64_t patch =
      p.top.integer("patch_size", 1, kMaxPatch, 28) * p.top.integer("downsample_factor", 1, kMaxMerge, 1);
  const std::int64_t side = p.top.integer("img_size", 1, kMaxSide, 364);
  PLIMSOLL_TRY(const std::int64_t tiles, tiles_with_thumbnail(p, size));
  // Each tile opens with its name; start and end around all.
  return Expansion{times(tiles, (side / patch) * (side / patch)), tiles + 2, {}};
}

Result<Expansion> cohere2_vision_image(Processor& p, PixelSize size) {
  const std::int64_t patch = p.image.integer("patch_size", 1, kMaxPatch, 16);
  const std::int64_t most = p.image.integer("max_patches", 1, kMaxTiles, 12);
  const bool cuts = p.image.flag("crop_to_patches", true);
  PLIMSOLL_TRY(const PixelSize tile, tile_of(p, 512));
  std::int64_t tiles = 1;
  // The smallest enlargement that holds the image, else the least reduction; few tiles first.
  double best = -1;
  for (std::int64_t count = 1; cuts && count <= most; ++count)
    for (std::int64_t columns = 1; columns <= count; ++columns) {
      if (count % columns != 0) continue;
      const double scale = std::min(real(columns * tile.height) / real(size.width),
                                    real(count / columns * tile.height) / real(size.height));
      if (best >= 1 ? scale >= 1 && scale < best : scale > best) {
        best = scale;
        tiles = count == 1 ? 1 : count + 1;
      }
    }
  return Expansion{times(tiles, patch * patch), tiles + 2, {}};  // a break after each tile
}

Result<Expansion> idefics3_image(Processor& p, PixelSize size) {
  const std::int64_t per_tile = p.top.integer("image_seq_len", 1, kMaxPerImage, 169);
  const bool splits = p.image.flag("do_image_splitting", true), resizes = p.image.flag("do_resize", true);
  const Sides sides = read_sides(p.image, "size", {{}, 4 * 364, {}, {}, {}, {}}, true);
  const Sides largest = read_sides(p.image, "max_image_size", {{}, 364, {}, {}, {}, {}}, true);
  PLIMSOLL_TRY_VOID(p.status());
  if (!largest.longest) return refuse("the processor's max_image_size needs longest_edge");
  const std::int64_t tile = *largest.longest;
  if (resizes) {
    if (sides.longest)
      size = idefics_resize(size, *sides.longest);
    else if (sides.height && sides.width)
      size = {*sides.height, *sides.width};
    else
      return refuse("the processor's size needs longest_edge, or height and width");
  }
  const Expansion whole{per_tile, 3, {}};
  if (!splits) return whole;
  const double aspect = real(size.width) / real(size.height);
  if (size.width >= size.height) {
    size.width = divided_up(size.width, tile) * tile;
    size.height = divided_up(cut(real(size.width) / aspect), tile) * tile;
  } else {
    size.height = divided_up(size.height, tile) * tile;
    size.width = divided_up(cut(real(size.height) * aspect), tile) * tile;
  }
  if (size.height <= tile && size.width <= tile) return whole;
  const std::int64_t rows = size.height / tile, columns = size.width / tile;
  if (rows == 0 || columns == 0) return refuse("a side shrinks to nothing");
  Expansion expansion{times(times(rows, columns) + 1, per_tile), 2 * rows * columns + 3, {}};
  if (rows > 1) expansion.texts.push_back({"\n", rows - 1});
  expansion.texts.push_back({"\n\n"});
  return expansion;
}

Result<Expansion> lfm2_vl_image(Processor& p, PixelSize size) {
  Lfm2Figures lfm{p.image.integer("downsample_factor", 1, kMaxMerge, 2),
                  p.image.integer("min_tiles", 1, kMaxTiles, 2),
                  p.image.integer("max_tiles", 1, kMaxTiles, 10),
                  p.image.integer("min_image_tokens", 1, kMaxPerImage, 64),
                  p.image.integer("max_image_tokens", 1, kMaxPerImage, 256),
                  p.image.integer("encoder_patch_size", 1, kMaxPatch, 16),
                  p.image.integer("tile_size", 1, kMaxSide, 512),
                  p.image.positive("max_pixels_tolerance", 2)};
  const bool splits = p.image.flag("do_image_splitting", true);
  const bool has_thumbnail = p.image.flag("use_thumbnail", true);
  PLIMSOLL_TRY_VOID(p.status());
  if (!splits) lfm.least_tiles = lfm.most_tiles = 1;
  if (lfm.least_tiles > lfm.most_tiles) return refuse("min_tiles is above max_tiles");
  const PixelSize fitted = lfm2_resize(size, lfm);
  const auto tokens = [&](PixelSize part) {
    return times(divided_up(part.height / lfm.patch, lfm.down), divided_up(part.width / lfm.patch, lfm.down));
  };
  PixelSize grid{1, 1};
  if (is_large_for_lfm2(size, lfm) && lfm.most_tiles > 1)
    grid = nearest_grid(size, {lfm.tile, lfm.tile}, lfm.least_tiles, lfm.most_tiles);
  const std::int64_t tiles = grid.height * grid.width;
  if (tiles == 1) return Expansion{tokens(fitted), 2, {}};
  if (lfm.tile % lfm.patch != 0)
    return refuse(
        fmt::format("tile_size {} is not a multiple of encoder_patch_size {}", lfm.tile, lfm.patch));
  Expansion expansion{times(tiles, tokens({lfm.tile, lfm.tile})), tiles + 2, {}};
  if (has_thumbnail) {
    expansion.media_tokens += tokens(fitted);
    ++expansion.mark_tokens;
  }
  return expansion;
}

// Phi-3 and 3.5 vision: tiles of 336 pixels and 144 tokens, a line end per row of 12, one token between.
Result<Expansion> phi3_v_image(Processor& p, PixelSize size) {
  constexpr std::int64_t kTile = 336;
  const std::int64_t most = p.image.integer("num_crops", 1, kMaxTiles, 1);
  const std::int64_t per_tile = p.image.integer("num_img_tokens", 1, kMaxPerImage, 144);
  PLIMSOLL_TRY_VOID(p.status());
  const auto [shorter, longer] = std::minmax(size.height, size.width);
  const double ratio = real(longer) / real(shorter);
  std::int64_t scale = 1;
  while (real(scale) * std::ceil(real(scale) / ratio) <= real(most)) ++scale;
  --scale;
  if (scale < 1) return refuse("no tile fits");
  const std::int64_t columns = scale;
  const std::int64_t rows = std::max<std::int64_t>(1, divided_up(cut(real(scale * kTile) / ratio), kTile));
  const std::int64_t high = size.width < size.height ? columns : rows;
  return Expansion{(rows * columns + 1) * per_tile + 1 + (high + 1) * 12, 0, {}};
}

}  // namespace plimsoll::model
