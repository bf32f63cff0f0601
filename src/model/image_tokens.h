// SPDX-License-Identifier: Apache-2.0
// By how many tokens does an image, a video or a sound lengthen a prompt? Answers what the model's own
// processor would put in place of the placeholder, from the processor's configs and a size; no pixel is
// looked at. Leaves finding and reading the files, and counting the plain text between special tokens, to its
// callers. Pure; views the files, which must outlive the call; any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace plimsoll::model {

/// What a folder says about its processors; null where a file is absent.
struct ProcessorFiles {
  const Json& config;     // config.json
  const Json& processor;  // processor_config.json
  const Json& image;      // preprocessor_config.json
  const Json& video;      // video_preprocessor_config.json

  /// True when any file but config.json is there.
  bool are_present() const { return processor.is_object() || image.is_object() || video.is_object(); }
};

struct PixelSize {
  std::int64_t height = 0, width = 0;
};

/// Frames as they are handed to the processor, which may take only some of them.
struct Clip {
  PixelSize size;
  std::int64_t frames = 0;
  double frames_per_second = 0;
};

struct TextRun {
  std::string text;  // plain text between two special tokens
  std::int64_t times = 1;
};

/// What stands where the placeholder stood.
struct Expansion {
  std::int64_t media_tokens = 0;  // carry an encoder's output
  std::int64_t mark_tokens = 0;   // other special tokens: start, end, row breaks, tile names
  std::vector<TextRun> texts;     // text to be tokenized, each on its own
};

/// The largest side and number of frames that are looked at.
constexpr std::int64_t kMaxSide = std::int64_t{1} << 24;
constexpr std::int64_t kMaxFrames = std::int64_t{1} << 20;

/// The rule that these processors follow ("qwen2_vl", "llama4"), by processor_class, else by model_type;
/// empty when there is none for them.
std::string_view processor_rule(const ProcessorFiles& files);
/// Whether that rule takes such an input.
bool takes_image(const ProcessorFiles& files);
bool takes_video(const ProcessorFiles& files);
bool takes_audio(const ProcessorFiles& files);

/// Shapes: one image of `size` pixels; one clip; one sound of `samples` at the processor's sampling rate.
/// Errors: kUnsupported when no rule takes the input, or it needs a file that is absent; kMalformed when a
/// figure
///         of a config cannot be; kNo when the processor refuses this size.
/// Source: docs/formulas/image_tokens.md.
Result<Expansion> expand_image(const ProcessorFiles& files, PixelSize size);
Result<Expansion> expand_video(const ProcessorFiles& files, const Clip& clip);
Result<Expansion> expand_audio(const ProcessorFiles& files, std::int64_t samples);

/// Samples per second that the processor's sounds have; 16,000 when it does not say.
std::int64_t sampling_rate(const ProcessorFiles& files);

/// Tokens of the plain texts where no tokenizer is at hand: each word, run of punctuation, run of blanks is
/// one, and so is each digit, or each three of them where the rule's published tokenizers keep three
/// together.
std::int64_t text_tokens_by_rule(const ProcessorFiles& files, std::string_view text);

}  // namespace plimsoll::model
