// SPDX-License-Identifier: Apache-2.0
// Which figures of the processor files does a rule read, and which rules are there? Private to
// image_tokens*.cpp: one function per rule and kind of input, listed in the table of image_tokens.cpp. A
// Processor views the files and keeps the first bad figure; a rule asks `status()` before it divides by one.
// Single thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "model/image_tokens.h"
#include "model/key_reader.h"

namespace plimsoll::model {

/// Bounds of what is believed: far above any published processor, low enough that products are checked
/// simply.
constexpr std::int64_t kMaxPatch = 8'192;  // pixels of a patch's side
constexpr std::int64_t kMaxMerge = 64;     // patches merged into one token, per side or in time
constexpr std::int64_t kMaxTiles = 1'024;
constexpr std::int64_t kMaxPixels = std::int64_t{1} << 53;
constexpr std::int64_t kMaxPerImage = std::int64_t{1} << 24;  // tokens of one image or frame

/// The readers of one folder's processors. Each prefers the nested object of processor_config.json.
struct Processor {
  explicit Processor(const ProcessorFiles& files);

  KeyReader top;    // processor_config.json itself
  KeyReader image;  // its image_processor, else preprocessor_config.json
  KeyReader video;  // its video_processor, else video_preprocessor_config.json, else preprocessor_config.json
  KeyReader audio;  // its feature_extractor, else preprocessor_config.json
  KeyReader config;  // config.json
  KeyReader vision;  // its vision_config
  bool has_files;    // whether any processor file is there
  // What a rule's video processor samples by when its file says nothing.
  std::optional<std::int64_t> default_num_frames;
  std::optional<double> default_fps;

  /// The first bad figure of any reader.
  Status status() const;
};

/// A `size` of a processor: a number, a list of two, or an object with some of these.
struct Sides {
  std::optional<std::int64_t> shortest, longest, height, width, max_height, max_width;

  static Sides square(std::int64_t side) { return {{}, {}, side, side, {}, {}}; }
  static Sides edges(std::int64_t shortest, std::int64_t longest) {
    return {shortest, longest, {}, {}, {}, {}};
  }
};
/// Reads `keys[key]`; `otherwise` where it is absent. A lone number means a square, or the shortest edge.
Sides read_sides(KeyReader& keys, std::string_view key, const Sides& otherwise, bool number_is_square);

/// The square or rectangular tile that the image reader's `size` names, or a square of `otherwise`.
/// Errors: the first bad figure; kNo without height and width.
Result<PixelSize> tile_of(Processor& processor, std::int64_t otherwise);

/// Indices of the frames that the processor takes.
using Frames = std::vector<std::int64_t>;
Frames all_frames(std::int64_t frames);
/// numpy's linspace from `first` to `last`, both kept.
std::vector<double> spread(double first, double last, std::int64_t count);
/// The way of processors without one of their own: `num_frames` or `fps` of the video reader, evenly.
Result<Frames> sample_evenly(Processor& processor, const Clip& clip, bool does_by_default);

/// Errors: kNo with the sentence.
tl::unexpected<Error> refuse(std::string message);

// Grids of merged patches (image_tokens_grid.cpp, image_tokens_video.cpp).
Result<Expansion> qwen2_vl_image(Processor&, PixelSize);
Result<Expansion> qwen2_vl_video(Processor&, const Clip&);
Result<Expansion> qwen3_vl_video(Processor&, const Clip&);
Result<Expansion> qwen2_omni_video(Processor&, const Clip&);
Result<Expansion> qwen3_omni_video(Processor&, const Clip&);
Result<Expansion> glm4v_image(Processor&, PixelSize);
Result<Expansion> glm4v_video(Processor&, const Clip&);
Result<Expansion> glm46v_video(Processor&, const Clip&);
Result<Expansion> minimax_m3_image(Processor&, PixelSize);
Result<Expansion> minimax_m3_video(Processor&, const Clip&);
Result<Expansion> kimi_k25_image(Processor&, PixelSize);
Result<Expansion> kimi_k25_video(Processor&, const Clip&);
Result<Expansion> kimi_vl_image(Processor&, PixelSize);
Result<Expansion> pixtral_image(Processor&, PixelSize);
Result<Expansion> gemma4_image(Processor&, PixelSize);
Result<Expansion> gemma4_video(Processor&, const Clip&);

// Tiles of one size (image_tokens_tiles.cpp).
Result<Expansion> llama4_image(Processor&, PixelSize);
Result<Expansion> internvl_image(Processor&, PixelSize);
Result<Expansion> internvl_video(Processor&, const Clip&);
Result<Expansion> internvl_chat_image(Processor&, PixelSize);
Result<Expansion> aya_vision_image(Processor&, PixelSize);
Result<Expansion> cohere2_vision_image(Processor&, PixelSize);
Result<Expansion> idefics3_image(Processor&, PixelSize);
Result<Expansion> lfm2_vl_image(Processor&, PixelSize);
Result<Expansion> phi3_v_image(Processor&, PixelSize);

// Tiles of the best resolution of a list (image_tokens_llava.cpp).
Result<Expansion> llava_next_image(Processor&, PixelSize);
Result<Expansion> llava_onevision_image(Processor&, PixelSize);
Result<Expansion> llava_onevision_video(Processor&, const Clip&);

// One number for every image, and sounds (image_tokens_fixed.cpp).
Result<Expansion> gemma3_image(Processor&, PixelSize);
Result<Expansion> gemma3n_image(Processor&, PixelSize);
Result<Expansion> llava_image(Processor&, PixelSize);
Result<Expansion> paligemma_image(Processor&, PixelSize);
Result<Expansion> idefics2_image(Processor&, PixelSize);
Result<Expansion> mllama_image(Processor&, PixelSize);
Result<Expansion> gemma3n_audio(Processor&, std::int64_t samples);
Result<Expansion> gemma4_audio(Processor&, std::int64_t samples);
Result<Expansion> qwen2_audio(Processor&, std::int64_t samples);
Result<Expansion> qwen3_omni_audio(Processor&, std::int64_t samples);

}  // namespace plimsoll::model
