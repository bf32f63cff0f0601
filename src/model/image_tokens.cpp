// SPDX-License-Identifier: Apache-2.0
// Which rule is a folder's, and what does it read?
#include "model/image_tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/image_tokens_rules.h"

namespace plimsoll::model {
namespace {

struct Rule {
  std::string_view name;
  // Separated by blanks; processors as transformers names them, without "Processor".
  std::string_view processors, model_types;
  Result<Expansion> (*image)(Processor&, PixelSize) = nullptr;
  Result<Expansion> (*video)(Processor&, const Clip&) = nullptr;
  Result<Expansion> (*audio)(Processor&, std::int64_t) = nullptr;
  bool needs_files = true;   // false where config.json alone can decide
  int digits_per_token = 1;  // of the published tokenizers
};

// Source: transformers 5.24.0's processors, one section each in docs/formulas/image_tokens.md.
constexpr std::array kRules{
    Rule{"qwen2_vl", "Qwen2VL Qwen2_5_VL", "qwen2_vl qwen2_5_vl", qwen2_vl_image, qwen2_vl_video},
    Rule{"qwen3_vl", "Qwen3VL", "qwen3_vl qwen3_vl_moe qwen3_5 qwen3_5_moe", qwen2_vl_image, qwen3_vl_video},
    Rule{"qwen2_5_omni", "Qwen2_5Omni", "qwen2_5_omni", qwen2_vl_image, qwen2_omni_video, qwen2_audio},
    Rule{"qwen3_omni", "Qwen3OmniMoe", "qwen3_omni_moe", qwen2_vl_image, qwen3_omni_video, qwen3_omni_audio},
    Rule{"qwen2_audio", "Qwen2Audio", "qwen2_audio", nullptr, nullptr, qwen2_audio},
    Rule{.name = "glm4v",
         .processors = "Glm4v",
         .model_types = "glm4v glm4v_moe",
         .image = glm4v_image,
         .video = glm4v_video,
         .digits_per_token = 3},
    Rule{.name = "glm46v",
         .processors = "Glm46V",
         .model_types = "glm46v",
         .image = glm4v_image,
         .video = glm46v_video,
         .digits_per_token = 3},
    Rule{"minimax_m3", "MiniMaxM3VL", "minimax_m3_vl", minimax_m3_image, minimax_m3_video},
    Rule{.name = "kimi_k25",
         .processors = "Kimi_K25 KimiK25",
         .model_types = "kimi_k25",
         .image = kimi_k25_image,
         .video = kimi_k25_video,
         .digits_per_token = 3},
    Rule{.name = "kimi_vl",
         .processors = "KimiVL",
         .model_types = "kimi_vl",
         .image = kimi_vl_image,
         .digits_per_token = 3},
    Rule{"pixtral", "Pixtral", "pixtral mistral3", pixtral_image},
    Rule{"gemma3", "Gemma3 ShieldGemma2", "gemma3 shieldgemma2 t5gemma2", gemma3_image, nullptr, nullptr,
         false},
    Rule{"gemma3n", "Gemma3n", "gemma3n", gemma3n_image, nullptr, gemma3n_audio, false},
    Rule{"gemma4", "Gemma4", "gemma4 diffusion_gemma", gemma4_image, gemma4_video, gemma4_audio},
    Rule{"llama4", "Llama4", "llama4", llama4_image},
    Rule{"llava", "Llava", "llava vipllava", llava_image, nullptr, nullptr, false},
    Rule{"llava_next", "LlavaNext", "llava_next", llava_next_image},
    Rule{"llava_onevision", "LlavaOnevision", "llava_onevision", llava_onevision_image,
         llava_onevision_video},
    Rule{"internvl", "InternVL", "internvl", internvl_image, internvl_video},
    Rule{"internvl_chat", "InternVLChat", "internvl_chat", internvl_chat_image, nullptr, nullptr, false},
    Rule{"aya_vision", "AyaVision", "aya_vision", aya_vision_image},
    Rule{"cohere2_vision", "Cohere2Vision", "cohere2_vision", cohere2_vision_image},
    Rule{"paligemma", "PaliGemma", "paligemma", paligemma_image, nullptr, nullptr, false},
    Rule{"idefics2", "Idefics2", "idefics2", idefics2_image},
    Rule{.name = "idefics3",
         .processors = "Idefics3",
         .model_types = "idefics3",
         .image = idefics3_image,
         .digits_per_token = 3},
    Rule{"smolvlm", "SmolVLM", "smolvlm", idefics3_image},
    Rule{"mllama", "Mllama", "mllama", mllama_image, nullptr, nullptr, false},
    Rule{"lfm2_vl", "Lfm2Vl", "lfm2_vl", lfm2_vl_image},
    Rule{"phi3_v", "Phi3V", "phi3_v", phi3_v_image},
};

bool names(std::string_view list, std::string_view name) {
  while (!name.empty() && !list.empty()) {
    const std::size_t end = std::min(list.find(' '), list.size());
    if (list.substr(0, end) == name) return true;
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return false;
}

std::string_view text_at(const Json& object, std::string_view key) {
  const std::string* text = object[key].as_string();
  return text ? std::string_view(*text) : std::string_view();
}

const Rule* rule_of(const ProcessorFiles& files) {
  for (const Json* file : {&files.processor, &files.image, &files.video}) {
    std::string_view name = text_at(*file, "processor_class");
    if (name.empty()) continue;
    if (name.ends_with("Processor")) name.remove_suffix(9);
    for (const Rule& rule : kRules)
      if (names(rule.processors, name)) return &rule;
    return nullptr;  // a processor of its own may do anything, whatever the model's type
  }
  const std::string_view type = text_at(files.config, "model_type");
  for (const Rule& rule : kRules)
    if (names(rule.model_types, type)) return &rule;
  return nullptr;
}

bool is_sound(PixelSize size) {
  return size.height >= 1 && size.width >= 1 && size.height <= kMaxSide && size.width <= kMaxSide;
}

/// The rule, when it can be asked about `what`.
Result<const Rule*> rule_for(const ProcessorFiles& files, bool (*takes)(const ProcessorFiles&),
                             std::string_view what) {
  const Rule* rule = rule_of(files);
  if (!rule || !takes(files))
    return fail(
        ErrorCode::kUnsupported,
        fmt::format("counting the tokens of one {}: no rule is known for this model's processor", what));
  if (rule->needs_files && !files.are_present())
    return fail(ErrorCode::kUnsupported,
                fmt::format("counting the tokens of one {}: neither processor_config.json nor "
                            "preprocessor_config.json is there, and they decide",
                            what));
  return rule;
}

/// Counts that no longer fit were made by figures that cannot be meant.
Result<Expansion> believed(Result<Expansion> expansion) {
  constexpr std::int64_t kMost = std::int64_t{1} << 60;
  if (!expansion) return expansion;
  if (expansion->media_tokens < 0 || expansion->media_tokens > kMost || expansion->mark_tokens > kMost)
    return fail(ErrorCode::kMalformed,
                "counting an input's tokens: the processor's figures give no count that "
                "can be meant");
  return expansion;
}

const Json& nested(const Json& processor, std::string_view key, const Json& otherwise) {
  return processor[key].is_object() ? processor[key] : otherwise;
}

KeyReader reader(const ProcessorFiles& files, std::string_view key, const Json& file, std::string_view name) {
  if (files.processor[key].is_object())
    return KeyReader::of_config(nested(files.processor, key, file), "processor_config.json",
                                "/" + std::string(key));
  return KeyReader::of_config(file, name, "");
}

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || static_cast<unsigned char>(c) >= 0x80;
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_line_end(char c) {
  return c == '\n' || c == '\r';
}
bool is_blank(char c) {
  return c == ' ' || c == '\t' || is_line_end(c);
}

/// Length of the pre-token at the front of `text`, by the pattern of GPT-4's line of tokenizers.
std::size_t pre_token(std::string_view text, std::size_t digits) {
  const auto run = [&](std::size_t from, auto belongs, std::size_t most = std::string_view::npos) {
    std::size_t end = from;
    while (end < text.size() && end - from < most && belongs(text[end])) ++end;
    return end;
  };
  const std::size_t prefix = !is_letter(text[0]) && !is_digit(text[0]) && !is_line_end(text[0]) ? 1 : 0;
  if (const std::size_t end = run(prefix, is_letter); end > prefix) return end;
  if (const std::size_t end = run(0, is_digit, digits); end > 0) return end;
  const std::size_t space = text[0] == ' ' ? 1 : 0;
  const auto is_mark = [](char c) { return !is_blank(c) && !is_letter(c) && !is_digit(c); };
  if (const std::size_t end = run(space, is_mark); end > space) return run(end, is_line_end);
  const std::size_t blanks = run(0, is_blank);
  for (std::size_t end = blanks; end > 0; --end)
    if (is_line_end(text[end - 1])) return end;
  return blanks < text.size() && blanks > 1 ? blanks - 1 : blanks;
}

}  // namespace

Processor::Processor(const ProcessorFiles& files)
    : top(KeyReader::of_config(files.processor, "processor_config.json", "")),
      image(reader(files, "image_processor", files.image, "preprocessor_config.json")),
      video(files.video.is_object()
                ? reader(files, "video_processor", files.video, "video_preprocessor_config.json")
                : reader(files, "video_processor", files.image, "preprocessor_config.json")),
      audio(reader(files, "feature_extractor", files.image, "preprocessor_config.json")),
      config(KeyReader::of_config(files.config, "config.json", "")),
      vision(config.child("vision_config")),
      has_files(files.are_present()) {}

Status Processor::status() const {
  for (const KeyReader* keys : {&top, &image, &video, &audio, &config, &vision})
    PLIMSOLL_TRY_VOID(keys->status());
  return {};
}

Sides read_sides(KeyReader& keys, std::string_view key, const Sides& otherwise, bool number_is_square) {
  const Json& value = keys[key];
  if (value.is_null()) return otherwise;
  if (value.is_number()) {
    const std::int64_t side = keys.integer(key, 1, kMaxSide);
    return number_is_square ? Sides::square(side) : Sides{side, {}, {}, {}, {}, {}};
  }
  if (value.is_array()) {
    const std::vector<double> sides = keys.numbers(key, 2);
    const auto is_side = [](double side) {
      return side >= 1 && side <= static_cast<double>(kMaxSide) && side == std::floor(side);
    };
    if (sides.size() == 2 && std::all_of(sides.begin(), sides.end(), is_side))
      return {{}, {}, static_cast<std::int64_t>(sides[0]), static_cast<std::int64_t>(sides[1]), {}, {}};
    keys.add_error(ErrorCode::kMalformed, key,
                   fmt::format("reading the model's figures: {} is not a pair of sides", key));
    return otherwise;
  }
  if (!value.is_object())
    keys.add_error(ErrorCode::kMalformed, key,
                   fmt::format("reading the model's figures: {} is not a size", key));
  KeyReader child = keys.child(key);
  const auto side = [&](std::string_view name, std::int64_t most) -> std::optional<std::int64_t> {
    if (!child.has(name)) return std::nullopt;
    return child.integer(name, 1, most);
  };
  // Edges may be counts of pixels.
  const Sides sides{side("shortest_edge", kMaxPixels), side("longest_edge", kMaxPixels),
                    side("height", kMaxSide),          side("width", kMaxSide),
                    side("max_height", kMaxSide),      side("max_width", kMaxSide)};
  keys.take_error(child);
  return sides;
}

Result<PixelSize> tile_of(Processor& p, std::int64_t otherwise) {
  const Sides sides = read_sides(p.image, "size", Sides::square(otherwise), true);
  PLIMSOLL_TRY_VOID(p.status());
  if (!sides.height || !sides.width) return refuse("the processor's size needs height and width");
  return PixelSize{*sides.height, *sides.width};
}

tl::unexpected<Error> refuse(std::string message) {
  return fail(ErrorCode::kNo, "counting an input's tokens: the processor refuses it: " + std::move(message));
}

std::string_view processor_rule(const ProcessorFiles& files) {
  const Rule* rule = rule_of(files);
  return rule ? rule->name : std::string_view();
}

bool takes_image(const ProcessorFiles& files) {
  const Rule* rule = rule_of(files);
  return rule && rule->image;
}

bool takes_video(const ProcessorFiles& files) {
  const Rule* rule = rule_of(files);
  return rule && rule->video;
}

bool takes_audio(const ProcessorFiles& files) {
  const Rule* rule = rule_of(files);
  return rule && rule->audio;
}

Result<Expansion> expand_image(const ProcessorFiles& files, PixelSize size) {
  PLIMSOLL_TRY(const Rule* rule, rule_for(files, takes_image, "image"));
  if (!is_sound(size)) return refuse("an image has at least one pixel, and a bounded number of them");
  Processor processor(files);
  return believed(rule->image(processor, size));
}

Result<Expansion> expand_video(const ProcessorFiles& files, const Clip& clip) {
  PLIMSOLL_TRY(const Rule* rule, rule_for(files, takes_video, "video"));
  if (!is_sound(clip.size) || clip.frames < 1 || clip.frames > kMaxFrames ||
      !(clip.frames_per_second > 0 && std::isfinite(clip.frames_per_second)))
    return refuse("a clip has at least one frame of at least one pixel, and a bounded number of them");
  Processor processor(files);
  return believed(rule->video(processor, clip));
}

Result<Expansion> expand_audio(const ProcessorFiles& files, std::int64_t samples) {
  PLIMSOLL_TRY(const Rule* rule, rule_for(files, takes_audio, "audio"));
  if (samples < 1 || samples > kMaxPixels) return refuse("a sound has at least one sample");
  Processor processor(files);
  return believed(rule->audio(processor, samples));
}

std::int64_t sampling_rate(const ProcessorFiles& files) {
  constexpr std::int64_t kUsual = 16'000, kMost = 1'000'000;
  const auto rate = Processor(files).audio["sampling_rate"].as_integer();
  return rate && *rate >= 1 && *rate <= kMost ? *rate : kUsual;
}

std::int64_t text_tokens_by_rule(const ProcessorFiles& files, std::string_view text) {
  const Rule* rule = rule_of(files);
  const std::size_t digits = rule ? static_cast<std::size_t>(rule->digits_per_token) : 1;
  std::int64_t tokens = 0;
  for (; !text.empty(); ++tokens) text.remove_prefix(pre_token(text, digits));
  return tokens;
}

}  // namespace plimsoll::model
