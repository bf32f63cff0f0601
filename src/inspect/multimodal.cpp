// SPDX-License-Identifier: Apache-2.0
#include "inspect/multimodal.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "model/image_tokens.h"
#include "text/text.h"

namespace plimsoll::inspect {
namespace {

using model::Clip;
using model::Expansion;
using model::PixelSize;
using model::ProcessorFiles;

constexpr std::int64_t kClipSeconds = 60, kSoundSeconds = 30;

class Multimodal {
 public:
  Multimodal(const Subject& subject, Report& report)
      : subject_(subject),
        report_(report),
        files_{subject.artifact.config(), subject.artifact.json_file("processor_config.json"),
               subject.artifact.json_file("preprocessor_config.json"),
               subject.artifact.json_file("video_preprocessor_config.json")} {}

  void read() {
    const bool has_image = takes("vision_config", model::takes_image(files_));
    const bool has_video =
        has_image && (model::takes_video(files_) || config()["video_token_id"].is_number() ||
                      config()["video_token_index"].is_number());
    const bool has_audio = takes("audio_config", false) || is_audio_model();
    Json inputs = Json::array();
    inputs.push_back("text");
    if (has_image) inputs.push_back("image");
    if (has_video) inputs.push_back("video");
    if (has_audio) inputs.push_back("audio");
    if (inputs.size() > 1) say_if_unreadable();
    if (has_image)
      for (const PixelSize size : {PixelSize{224, 224}, PixelSize{1024, 1024}, PixelSize{1080, 1920}})
        add("image", fmt::format("{}x{}", size.width, size.height), model::expand_image(files_, size));
    if (has_video)
      for (const double rate : {30.0, 2.0}) {
        const Clip clip{{1080, 1920}, static_cast<std::int64_t>(rate) * kClipSeconds, rate};
        add("video", fmt::format("{}s 1920x1080@{}fps", kClipSeconds, rate),
            model::expand_video(files_, clip));
      }
    if (has_audio)
      add("audio", fmt::format("{}s", kSoundSeconds),
          model::expand_audio(files_, kSoundSeconds * model::sampling_rate(files_)));
    const bool is_text_only = inputs.size() == 1;
    report_.multimodal =
        Json::object({{"inputs", std::move(inputs)},
                      {"examples", std::move(examples_)},
                      {"processor_known", is_text_only ? Json() : Json(is_known_ && !is_missing_)}});
  }

 private:
  const Json& config() const { return files_.config; }

  /// The encoder's config, also within Qwen omni's thinker; or a rule's word where the config has no such
  /// key.
  bool takes(std::string_view key, bool otherwise) const {
    for (const Json* where : {&config(), &config()["thinker_config"]})
      if (where->contains(key)) return (*where)[key].is_object();
    return otherwise;
  }

  bool is_audio_model() const { return !model::takes_image(files_) && model::takes_audio(files_); }

  /// A processor file that stands in the folder and is no JSON object.
  void say_if_unreadable() {
    const std::pair<std::string_view, const Json*> named[] = {
        {"processor_config.json", &files_.processor},
        {"preprocessor_config.json", &files_.image},
        {"video_preprocessor_config.json", &files_.video}};
    for (const auto& [name, json] : named) {
      if (subject_.has_file(name) && !json->is_object())
        add_check(report_.findings, "PROCESSOR_FIGURES", FindingLevel::kWarning, std::string(name),
                  fmt::format("{} does not hold a JSON object, so it is taken for absent", name),
                  "download the file again");
    }
  }

  void add(std::string_view kind, std::string size, const Result<Expansion>& expansion) {
    Json tokens, media;
    if (expansion) {
      tokens = tokens_of(*expansion);
      media = expansion->media_tokens;
    } else {
      explain(expansion.error());
    }
    examples_.push_back(Json::object({{"kind", kind},
                                      {"size", std::move(size)},
                                      {"tokens", std::move(tokens)},
                                      {"media_tokens", std::move(media)}}));
  }

  std::int64_t tokens_of(const Expansion& expansion) {
    std::int64_t tokens = expansion.media_tokens + expansion.mark_tokens;
    for (const model::TextRun& run : expansion.texts) tokens += run.times * text_tokens(run.text);
    return tokens;
  }

  std::int64_t text_tokens(const std::string& text) {
    if (!was_tokenizer_asked_) {
      was_tokenizer_asked_ = true;
      if (text::has_tokenizer(subject_.artifact))
        if (auto loaded = text::load_tokenizer(subject_.artifact)) tokenizer_ = std::move(*loaded);
    }
    if (!tokenizer_) return model::text_tokens_by_rule(files_, text);
    return static_cast<std::int64_t>(tokenizer_->encode(text, {.add_special_tokens = false}).size());
  }

  void explain(const Error& error) {
    Findings& findings = report_.findings;
    if (error.code == ErrorCode::kUnsupported) {
      if (model::processor_rule(files_).empty())
        is_known_ = false;
      else
        is_missing_ = true;
      if (std::exchange(was_explained_, true)) return;
      if (!is_known_)
        add_check(
            findings, "PROCESSOR_UNKNOWN", FindingLevel::kInfo, place_of_class(),
            "no rule is known for this model's processor, so the tokens of its images, videos and sounds "
            "are not counted",
            "measure with the engine's own processor");
      else
        add_check(
            findings, "PROCESSOR_ABSENT", FindingLevel::kInfo, subject_.config_file + ": /vision_config",
            "neither processor_config.json nor preprocessor_config.json is there, and they decide the tokens "
            "of images, videos and sounds",
            "download the processor files too");
      return;
    }
    const bool is_figure = error.code == ErrorCode::kMalformed;
    const std::string where = error.where.empty() ? place_of_class() : error.where;
    const bool is_told = std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
      return finding.where == where && finding.message == error.message;
    });
    if (is_told) return;
    if (is_figure)
      add_check(findings, "PROCESSOR_FIGURES", FindingLevel::kWarning, where, error.message,
                std::string(kCorrect));
    else
      add_check(findings, "PROCESSOR_REFUSES", FindingLevel::kInfo, where, error.message,
                "bring the input to a size that the processor takes");
  }

  std::string place_of_class() const {
    if (files_.processor["processor_class"].is_string()) return "processor_config.json: /processor_class";
    if (files_.image["processor_class"].is_string()) return "preprocessor_config.json: /processor_class";
    return subject_.config_file + ": /model_type";
  }

  const Subject& subject_;
  Report& report_;
  const ProcessorFiles files_;
  Json examples_ = Json::array();
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  bool was_tokenizer_asked_ = false, was_explained_ = false;
  bool is_known_ = true, is_missing_ = false;
};

}  // namespace

void read_multimodal(const Subject& subject, Report& report) {
  if (subject.is_gguf()) {
    Json inputs = Json::array();
    inputs.push_back("text");
    report.multimodal = Json::object(
        {{"inputs", std::move(inputs)}, {"examples", Json::array()}, {"processor_known", Json()}});
    return;
  }
  Multimodal(subject, report).read();
}

}  // namespace plimsoll::inspect
