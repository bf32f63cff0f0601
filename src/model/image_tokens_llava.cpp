// SPDX-License-Identifier: Apache-2.0
// LLaVA-NeXT and OneVision: the best of a list of resolutions is cut into tiles, and what pads the image to
// it is taken out again.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/image_tokens_resize.h"
#include "model/image_tokens_rules.h"

namespace plimsoll::model {
namespace {

std::vector<PixelSize> read_pinpoints(KeyReader& keys, std::vector<PixelSize> otherwise) {
  const Json& value = keys["image_grid_pinpoints"];
  if (value.is_null()) return otherwise;
  std::vector<PixelSize> pinpoints;
  for (const Json& pair : value.items()) {
    // 0 stands for what is no number; it is refused below.
    const PixelSize pinpoint = pair.size() == 2 ? PixelSize{pair.items()[0].as_integer().value_or(0),
                                                            pair.items()[1].as_integer().value_or(0)}
                                                : PixelSize{};
    if (pinpoint.height < 1 || pinpoint.width < 1 || pinpoint.height > kMaxSide ||
        pinpoint.width > kMaxSide || pinpoints.size() >= static_cast<std::size_t>(kMaxTiles)) {
      keys.add_error(ErrorCode::kMalformed, "image_grid_pinpoints",
                     "reading the model's figures: image_grid_pinpoints holds more than pairs of sides");
      return otherwise;
    }
    pinpoints.push_back(pinpoint);
  }
  if (pinpoints.empty())
    keys.add_error(ErrorCode::kMalformed, "image_grid_pinpoints",
                   "reading the model's figures: image_grid_pinpoints is not a list of pairs");
  return pinpoints;
}

/// Patches of the tiles together, without those that only pad the image to them.
struct Unpadded {
  std::int64_t height, width;
};

Result<Unpadded> unpad(PixelSize size, PixelSize patches, PixelSize scale) {
  Unpadded kept{patches.height * scale.height, patches.width * scale.width};
  if (kept.height == 0 || kept.width == 0)
    return refuse("the best of image_grid_pinpoints is smaller than one tile");
  // Seven decimals, as the reference rounds before it cuts.
  const auto rounded = [](double value) { return cut(std::nearbyint(value * 1e7) / 1e7); };
  if (real(size.width) / real(size.height) > real(kept.width) / real(kept.height)) {
    const std::int64_t used = rounded(real(size.height) * (real(kept.width) / real(size.width)));
    kept.height -= (kept.height - used) / 2 * 2;
  } else {
    const std::int64_t used = rounded(real(size.width) * (real(kept.height) / real(size.height)));
    kept.width -= (kept.width - used) / 2 * 2;
  }
  return kept;
}

/// LLaVA-NeXT's tile: what cropping leaves, or what resizing makes; and the side that images are cut by.
struct LlavaTile {
  PixelSize size;
  std::int64_t cut_side;
  bool makes_one_size;  // out of pieces of any shape
};

Result<LlavaTile> llava_tile(Processor& p) {
  const Sides sides = read_sides(p.image, "size", {224, {}, {}, {}, {}, {}}, false);
  const Sides crop = read_sides(p.image, "crop_size", Sides::square(224), true);
  const bool crops = p.image.flag("do_center_crop", true);
  PLIMSOLL_TRY_VOID(p.status());
  const bool has_both = sides.height && sides.width;
  if (!has_both && !sides.shortest)
    return refuse("the processor's size needs height and width, or shortest_edge");
  LlavaTile tile{
      has_both ? PixelSize{*sides.height, *sides.width} : PixelSize{*sides.shortest, *sides.shortest}, 0,
      has_both};
  tile.cut_side = crop.height.value_or(tile.size.height);
  if (crops && crop.height && crop.width) {
    tile.size = {*crop.height, *crop.width};
    tile.makes_one_size = true;
  }
  return tile;
}

}  // namespace

Result<Expansion> llava_next_image(Processor& p, PixelSize size) {
  const std::int64_t patch = p.top.has("patch_size") ? p.top.integer("patch_size", 1, kMaxPatch)
                                                     : p.vision.integer("patch_size", 1, kMaxPatch);
  const std::int64_t more = p.top.integer("num_additional_image_tokens", 0, kMaxPatch, 0);
  const bool drops_one = p.top.text("vision_feature_select_strategy",
                                    p.config.text("vision_feature_select_strategy", "")) == "default";
  const std::vector<PixelSize> pinpoints =
      read_pinpoints(p.image, {{336, 672}, {672, 336}, {672, 672}, {1008, 336}, {336, 1008}});
  PLIMSOLL_TRY(const LlavaTile llava, llava_tile(p));
  const PixelSize tile = llava.size;
  const auto best = best_resolution(size, pinpoints);
  if (!best) return refuse("no entry of image_grid_pinpoints keeps a pixel of it");
  if (!llava.makes_one_size && (best->height % llava.cut_side != 0 || best->width % llava.cut_side != 0))
    return refuse(fmt::format("{}x{} is cut into tiles of {} and pieces that nothing brings to their size",
                              best->width, best->height, llava.cut_side));
  const PixelSize patches{tile.height / patch, tile.width / patch};
  PLIMSOLL_TRY(const Unpadded kept,
               unpad(size, patches, {best->height / tile.height, best->width / tile.width}));
  return Expansion{
      times(kept.height, kept.width + 1) + patches.height * patches.width + more - (drops_one ? 1 : 0),
      0,
      {}};
}

Result<Expansion> llava_onevision_image(Processor& p, PixelSize size) {
  const std::int64_t whole = p.top.integer("num_image_tokens", 1, kMaxPerImage);
  const bool drops_one = p.top.text("vision_feature_select_strategy", "") == "default";
  const std::string aspect = p.top.text("vision_aspect_ratio", "anyres_max_9");
  std::vector<PixelSize> pinpoints;
  for (std::int64_t rows = 1; rows <= 6; ++rows)
    for (std::int64_t columns = 1; columns <= 6; ++columns) pinpoints.push_back({384 * rows, 384 * columns});
  pinpoints = read_pinpoints(p.image, std::move(pinpoints));
  PLIMSOLL_TRY(const PixelSize tile, tile_of(p, 384));
  std::int64_t most = 0;
  for (const char c : aspect.substr(std::min(aspect.find_first_of("0123456789"), aspect.size())))
    most = c >= '0' && c <= '9' && most < kMaxTiles ? most * 10 + (c - '0') : most;
  if (most < 1) return refuse("vision_aspect_ratio names no number of tiles");
  const auto best = best_resolution(size, pinpoints);
  if (!best) return refuse("no entry of image_grid_pinpoints keeps a pixel of it");
  const std::int64_t side = cut(std::sqrt(real(whole)));
  PLIMSOLL_TRY(Unpadded kept,
               unpad(size, {side, side}, {best->height / tile.height, best->width / tile.width}));
  const double ratio = std::sqrt(real(times(kept.height, kept.width)) / real(most * side * side));
  if (ratio > 1.1)
    kept = {cut(std::floor(real(kept.height) / ratio)), cut(std::floor(real(kept.width) / ratio))};
  return Expansion{times(kept.height, kept.width + 1) + whole - (drops_one ? 1 : 0), 0, {}};
}

Result<Expansion> llava_onevision_video(Processor& p, const Clip& clip) {
  const std::int64_t whole = p.top.integer("num_image_tokens", 1, kMaxPerImage);
  PLIMSOLL_TRY(const Frames frames, sample_evenly(p, clip, false));
  const std::int64_t side = divided_up(cut(std::sqrt(real(whole))), 2);
  return Expansion{times(static_cast<std::int64_t>(frames.size()), side * side) + 1, 0, {}};
}

}  // namespace plimsoll::model
