// SPDX-License-Identifier: Apache-2.0
// Images that all become the same number of tokens, and sounds.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/image_tokens_resize.h"
#include "model/image_tokens_rules.h"

namespace plimsoll::model {
namespace {

constexpr std::int64_t kMaxHop = std::int64_t{1} << 20;

/// Gemma 3's frame around an encoder's output: a blank line, start, tokens, end, a blank line.
Expansion between_blank_lines(std::int64_t tokens) {
  return {tokens, 2, {{"\n\n", 2}}};
}

/// Frames of a Whisper-like spectrogram.
Result<std::int64_t> mel_frames(Processor& p, std::int64_t samples, bool stops_at_chunk) {
  const std::int64_t hop = p.audio.integer("hop_length", 1, kMaxHop, 160);
  const std::int64_t rate = p.audio.integer("sampling_rate", 1, kMaxHop, 16'000);
  const std::int64_t seconds = p.audio.integer("chunk_length", 1, kMaxHop, 30);
  PLIMSOLL_TRY_VOID(p.status());
  if (stops_at_chunk) samples = std::min(samples, seconds * rate);
  return divided_up(samples, hop);
}

/// Two convolutions, the second and a pooling halving the frames.
std::int64_t pooled_twice(std::int64_t frames) {
  return std::max<std::int64_t>(0, ((frames - 1) / 2 + 1 - 2) / 2 + 1);
}

}  // namespace

Result<Expansion> gemma3_image(Processor& p, PixelSize) {
  // Pan and scan is switched off by the processor's call, whatever preprocessor_config.json says.
  std::int64_t tokens = 256;
  if (p.top.has("image_seq_length"))
    tokens = p.top.integer("image_seq_length", 1, kMaxPerImage);
  else if (!p.has_files)
    tokens = p.config.integer("mm_tokens_per_image", 1, kMaxPerImage, 256);
  PLIMSOLL_TRY_VOID(p.status());
  return between_blank_lines(tokens);
}

Result<Expansion> gemma3n_image(Processor& p, PixelSize) {
  std::int64_t tokens = 256;
  if (p.top.has("image_seq_length"))
    tokens = p.top.integer("image_seq_length", 1, kMaxPerImage);
  else if (!p.has_files)
    tokens = p.config.integer("vision_soft_tokens_per_image", 1, kMaxPerImage, 256);
  PLIMSOLL_TRY_VOID(p.status());
  return between_blank_lines(tokens);
}

Result<Expansion> llava_image(Processor& p, PixelSize size) {
  const std::int64_t patch = p.top.has("patch_size") ? p.top.integer("patch_size", 1, kMaxPatch)
                                                     : p.vision.integer("patch_size", 1, kMaxPatch, 14);
  const std::string strategy = p.top.text("vision_feature_select_strategy",
                                          p.config.text("vision_feature_select_strategy", "default"));
  if (!p.has_files) {
    const std::int64_t side = p.vision.integer("image_size", 1, kMaxSide, 336);
    PLIMSOLL_TRY_VOID(p.status());
    const std::int64_t patches = side / patch;
    // An encoder of CLIP's kind puts a class token before its patches, which "default" takes away again.
    return Expansion{patches * patches + (strategy == "default" ? 0 : 1), 0, {}};
  }
  const bool says_strategy = p.top.has("vision_feature_select_strategy");
  const std::int64_t more =
      p.top.integer("num_additional_image_tokens", 0, kMaxPatch, p.top.has("patch_size") ? 0 : 1);
  // Processors of SigLIP's line make a square and crop nothing; those of CLIP's the opposite.
  const bool is_square = p.image.text("image_processor_type", "").starts_with("Siglip");
  const bool resizes = p.image.flag("do_resize", true), crops = p.image.flag("do_center_crop", !is_square);
  const Sides sides =
      read_sides(p.image, "size", is_square ? Sides::square(224) : Sides{224, {}, {}, {}, {}, {}}, false);
  const Sides crop = read_sides(p.image, "crop_size", Sides::square(224), true);
  PLIMSOLL_TRY_VOID(p.status());
  if (crops && is_square && !p.image.has("crop_size")) return refuse("do_center_crop needs a crop_size");
  if (crops && crop.height && crop.width)
    size = {*crop.height, *crop.width};
  else if (resizes && sides.height && sides.width)
    size = {*sides.height, *sides.width};
  else if (resizes && sides.shortest)
    size = by_shortest_edge(size, *sides.shortest);
  else if (resizes)
    return refuse("the processor's size needs height and width, or shortest_edge");
  const bool drops_one = strategy == "default" && (says_strategy || !p.top.has("patch_size"));
  return Expansion{times(size.height / patch, size.width / patch) + more - (drops_one ? 1 : 0), 0, {}};
}

Result<Expansion> paligemma_image(Processor& p, PixelSize) {
  std::int64_t tokens = 0;
  if (p.has_files) {
    tokens = p.image.integer("image_seq_length", 1, kMaxPerImage);
  } else {
    const std::int64_t patches =
        p.vision.integer("image_size", 1, kMaxSide, 224) / p.vision.integer("patch_size", 1, kMaxPatch);
    tokens =
        p.vision.integer("num_image_tokens", 1, kMaxPerImage, std::max<std::int64_t>(1, patches * patches));
  }
  PLIMSOLL_TRY_VOID(p.status());
  return Expansion{tokens, 0, {}};
}

Result<Expansion> idefics2_image(Processor& p, PixelSize) {
  const std::int64_t tokens = p.top.integer("image_seq_len", 1, kMaxPerImage, 64);
  const bool splits = p.image.flag("do_image_splitting", false);
  PLIMSOLL_TRY_VOID(p.status());
  // Four quarters and the whole; one mark between neighbours, one at each end.
  const std::int64_t parts = splits ? 5 : 1;
  return Expansion{parts * tokens, parts + 1, {}};
}

// Its images are read by cross-attention: the prompt holds the placeholder alone.
Result<Expansion> mllama_image(Processor&, PixelSize) {
  return Expansion{0, 1, {}};
}

Result<Expansion> gemma3n_audio(Processor& p, std::int64_t) {
  const std::int64_t tokens = p.top.integer("audio_seq_length", 1, kMaxPerImage, 188);
  PLIMSOLL_TRY_VOID(p.status());
  return between_blank_lines(tokens);
}

Result<Expansion> gemma4_audio(Processor& p, std::int64_t samples) {
  constexpr std::int64_t kMost = 480'000, kPadding = 128;  // where the extractor cuts, and what it pads to
  const double rate = static_cast<double>(p.audio.integer("sampling_rate", 1, kMaxHop, 16'000));
  const std::int64_t length = round_half_even(rate * p.audio.positive("frame_length_ms", 20) / 1000);
  const std::int64_t hop = round_half_even(rate * p.audio.positive("hop_length_ms", 10) / 1000);
  PLIMSOLL_TRY_VOID(p.status());
  if (hop < 1 || length < 1 || length > kMaxHop) return refuse("frames of the spectrogram hold no sample");
  samples = std::min(samples, kMost);
  const std::int64_t before = length / 2, reach = length - before;
  const std::int64_t all = (divided_up(samples, kPadding) * kPadding + before - length - 1) / hop + 1;
  const std::int64_t heard = samples > reach ? (samples - 1 - reach) / hop + 1 : 0;
  const std::int64_t frames = std::max<std::int64_t>(0, std::min(all, heard));
  return Expansion{divided_up(divided_up(frames, 2), 2), 2, {}};  // two convolutions, each halving
}

Result<Expansion> qwen2_audio(Processor& p, std::int64_t samples) {
  PLIMSOLL_TRY(const std::int64_t frames, mel_frames(p, samples, /*stops_at_chunk=*/true));
  return Expansion{pooled_twice(frames), 0, {}};
}

Result<Expansion> qwen3_omni_audio(Processor& p, std::int64_t samples) {
  PLIMSOLL_TRY(const std::int64_t frames, mel_frames(p, samples, /*stops_at_chunk=*/false));
  const std::int64_t chunk = 2 * p.top.integer("n_window", 1, kMaxPatch, 50);
  PLIMSOLL_TRY_VOID(p.status());
  // Each chunk becomes 13 tokens; its rest is halved three times, rounded up.
  const std::int64_t rest = divided_up(divided_up(divided_up(frames % chunk, 2), 2), 2);
  return Expansion{frames / chunk * 13 + rest, 0, {}};
}

}  // namespace plimsoll::model
