// SPDX-License-Identifier: Apache-2.0
// Finds the family of a config or a GGUF file and lets it read the spec.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <vector>

#include "artifact/given_path.h"
#include "model/declarations.h"
#include "model/families/families.h"
#include "model/families/gguf_any.h"
#include "model/families/spec_writer.h"
#include "model/families/towers.h"
#include "model/model.h"
#include "model/nearest_names.h"

namespace plimsoll::model {
namespace {

// Keys under which wrappers keep the language model, outermost first.
constexpr std::array<std::string_view, 6> kLanguageKeys{"text_config",    "llm_config", "language_config",
                                                        "thinker_config", "text_model", "decoder_config"};
// Where a config of its own keeps its figures; one that has them is no wrapper of what stands below.
constexpr std::array<std::string_view, 3> kOwnFigures{"num_hidden_layers", "hidden_size",
                                                      "num_attention_heads"};

// What stands behind an architecture's stem: another head on the same model.
constexpr std::array<std::string_view, 11> kHeads{"ForCausalLM",
                                                  "ForConditionalGeneration",
                                                  "LMHeadModel",
                                                  "ForImageTextToText",
                                                  "ForSequenceClassification",
                                                  "ForTokenClassification",
                                                  "ForRewardModel",
                                                  "ForProcessRewardModel",
                                                  "ForQuestionAnswering",
                                                  "TextModel",
                                                  "Model"};

std::string_view stem_of(std::string_view architecture, std::string_view& head) {
  for (const std::string_view ending : kHeads)
    if (architecture.size() > ending.size() && architecture.ends_with(ending)) {
      head = ending;
      return architecture.substr(0, architecture.size() - ending.size());
    }
  head = {};
  return architecture;
}

const Family* family_of_type(std::string_view model_type) {
  for (const Family& family : families())
    if (!model_type.empty() && family.model_type == model_type) return &family;
  return nullptr;
}

// A config's family, and the head that its architecture names where that is not the family's own.
struct Match {
  const Family* family = nullptr;
  std::string shown;  // the name the config gives itself
  std::string_view other_head;
};

// By the first of architectures[] that is known, with any head; else, where the config names none, by its
// model_type: an architecture that is named and not known is another model.
Match family_of(const Json& config) {
  Match match;
  const std::string* type = config["model_type"].as_string();
  for (const Json& item : config["architectures"].items()) {
    const std::string* name = item.as_string();
    if (!name) continue;
    if (match.shown.empty()) match.shown = *name;
    for (const Family& family : families())
      if (family.architecture == *name) {
        // Kimi K2 calls itself DeepseekV3ForCausalLM: the model_type is the finer name where both are known.
        const Family* finer = type ? family_of_type(*type) : nullptr;
        match.family = finer && finer->architecture.empty() ? finer : &family;
        return match;
      }
    std::string_view head, own_head;
    const std::string_view stem = stem_of(*name, head);
    for (const Family& family : families())
      if (!head.empty() && !family.architecture.empty() && stem_of(family.architecture, own_head) == stem) {
        match.family = &family;
        match.other_head = head;
        return match;
      }
  }
  if (!type) return match;
  const Family* named = family_of_type(*type);
  // Gemma3TextModel and Gemma3TextForSequenceClassification: the text half of a class with an encoder.
  std::string_view head;
  const bool has_text_stem = stem_of(match.shown, head).ends_with("Text") && head != "ForCausalLM";
  const bool is_bare = match.shown.ends_with("TextModel");
  const bool is_text_class = named && type->ends_with("_text") && (is_bare || has_text_stem);
  if (!match.shown.empty() && !is_text_class) return match;
  if (is_text_class) match.other_head = is_bare ? "TextModel" : head;
  if (match.shown.empty()) match.shown = *type;
  match.family = named;
  return match;
}

// A language model that its library has without a head alone: a bare config of it is of that class.
bool is_headless_type(const Family& family, const Json& config) {
  return family.architecture.empty() && family.model_type.ends_with("_text") &&
         config["architectures"].items().empty();
}

// The head that a classifier or an embedding model has instead of the family's.
void replace_head(std::string_view head, const Json& config, ModelSpec& spec) {
  if (head.empty() || head == "ForConditionalGeneration" || head == "ForImageTextToText") return;
  std::erase_if(spec.weights, [](const Weight& weight) { return weight.group == WeightGroup::kHead; });
  if (head == "Model" || head == "TextModel") return;
  constexpr std::int64_t kDefaultLabels = 2;  // transformers'
  const auto named = static_cast<std::int64_t>(config["id2label"].size());
  const std::int64_t stated = config["num_labels"].as_integer().value_or(named > 0 ? named : kDefaultLabels);
  const std::int64_t labels = std::clamp<std::int64_t>(stated, 1, kMaxVocab);
  SpecWriter writer(spec);
  writer.enter("");
  // OPT's layers may be wider than what goes into them and comes out.
  const std::int64_t stated_width = config["word_embed_proj_dim"].as_integer().value_or(writer.width());
  const std::int64_t width = std::clamp<std::int64_t>(stated_width, 1, kMaxWidth);
  const bool is_encoder_decoder =
      std::find(spec.traits.begin(), spec.traits.end(), Trait::kEncoderDecoder) != spec.traits.end();
  if (head.ends_with("RewardModel")) {
    // Qwen's: two layers, and one reward, or right and wrong for each step.
    writer.linear(WeightGroup::kHead, "score.0", writer.width(), writer.width(), true);
    writer.linear(WeightGroup::kHead, "score.2", head == "ForRewardModel" ? 1 : 2, writer.width(), true);
  } else if (head == "ForQuestionAnswering") {
    writer.linear(WeightGroup::kHead, "qa_outputs", 2, width, true);  // where it begins and ends
  } else if (is_encoder_decoder && head == "ForSequenceClassification") {
    writer.linear(WeightGroup::kHead, "classification_head.dense", width, width, true);
    writer.linear(WeightGroup::kHead, "classification_head.out_proj", labels, width, true);
  } else {
    writer.linear(WeightGroup::kHead, "score", labels, width, head == "ForTokenClassification");
  }
}

bool is_spelling(std::string_view key, std::string_view of) {
  const auto others = other_spellings(of);
  return key == of || std::find(others.begin(), others.end(), key) != others.end();
}

bool has_heads(const Layer& layer, std::int64_t heads) {
  if (const auto* attention = std::get_if<Attention>(&layer.mixer)) return attention->q_heads == heads;
  const auto* latent = std::get_if<Latent>(&layer.mixer);
  return latent && latent->q_heads == heads;
}

// A figure of its class that the spec shows nowhere was not counted: the family has keys of its own for it.
bool is_counted(const AssumedFigure& figure, const ModelSpec& spec) {
  const auto has_layer = [&](const auto& shows) {
    return std::any_of(spec.layers.begin(), spec.layers.end(), shows);
  };
  if (is_spelling(figure.key, "num_hidden_layers"))
    return figure.value == static_cast<std::int64_t>(spec.layers.size());
  if (is_spelling(figure.key, "num_attention_heads"))
    return has_layer([&](const Layer& layer) { return has_heads(layer, figure.value); });
  if (is_spelling(figure.key, "intermediate_size"))
    return has_layer([&](const Layer& layer) {
      return layer.ffn.kind == FfnKind::kDense && layer.ffn.intermediate_size == figure.value;
    });
  return true;
}

tl::unexpected<Error> unknown(std::string_view shown, std::string where) {
  std::vector<std::string_view> known;
  for (const Family& family : families())
    if (!family.architecture.empty()) known.push_back(family.architecture);
  std::string nearest;
  for (const std::string_view name : nearest_names(shown, known, 3))
    nearest += (nearest.empty() ? "" : ", ") + std::string(name);
  return fail(ErrorCode::kUnsupported,
              fmt::format("reading the model: architecture \"{}\" is none of the {} known here; the nearest "
                          "names are {}",
                          shown.substr(0, 200), known.size(), nearest),
              std::move(where), "serve it with another engine");
}

Result<ModelSpec> read_gguf_spec(const artifact::Artifact& artifact) {
  const auto& files = artifact.files();
  const auto file =
      std::find_if(files.begin(), files.end(), [](const auto& f) { return f.path.ends_with(".gguf"); });
  const std::string source = file == files.end() ? artifact.root() : file->path;
  const std::string* architecture = artifact.config()["general.architecture"].as_string();
  if (!architecture)
    return fail(ErrorCode::kMalformed, "reading the model: the key general.architecture is absent",
                source + ": general.architecture");
  for (const Family& family : families()) {
    if (family.gguf_architecture.empty() || family.gguf_architecture != *architecture) continue;
    KeyReader keys = KeyReader::of_gguf(artifact.config(), source, *architecture);
    ModelSpec spec = family.from_gguf(keys, artifact);
    PLIMSOLL_TRY_VOID(keys.status());
    if (spec.architecture.empty()) {
      spec.architecture = family.architecture;
      spec.model_type = family.model_type;
    }
    return spec;
  }
  if (*architecture == "clip")
    return fail(
        ErrorCode::kUnsupported,
        "reading the model: this is the projector of a vision or audio encoder (mmproj), no language model",
        source + ": general.architecture", "give the GGUF file of the model that it goes with");
  if (!is_gguf_architecture(*architecture)) return unknown(*architecture, source + ": general.architecture");
  KeyReader keys = KeyReader::of_gguf(artifact.config(), source, *architecture);
  ModelSpec spec = read_any_gguf(keys, artifact, *architecture);
  PLIMSOLL_TRY_VOID(keys.status());
  spec.architecture = spec.model_type = *architecture;
  return spec;
}

}  // namespace

namespace {

// The objects from the whole config down to the language model's, each with its pointer.
struct Level {
  const Json* object;
  std::string pointer;
};
// A decoder by itself, whatever stands beside its figures under a wrapper's key.
bool is_plain_decoder(const Json& object) {
  for (const std::string_view figure : kOwnFigures) {
    bool is_there = !object[figure].is_null();
    for (const std::string_view other : other_spellings(figure)) is_there |= !object[other].is_null();
    if (!is_there) return false;
  }
  const auto& names = object["architectures"].items();
  const std::string* name = names.empty() ? nullptr : names[0].as_string();
  return name && (name->ends_with("ForCausalLM") || name->ends_with("LMHeadModel")) &&
         std::any_of(families().begin(), families().end(),
                     [&](const Family& family) { return family.architecture == *name; });
}

std::vector<Level> levels_of(const Json& config) {
  std::vector<Level> levels{{&config, ""}};
  while (!is_plain_decoder(*levels.back().object)) {  // as deep as JSON may be nested
    const Level& outer = levels.back();
    const auto key =
        std::find_if(kLanguageKeys.begin(), kLanguageKeys.end(), [&](std::string_view candidate) {
          return (*outer.object)[candidate].is_object() && (*outer.object)[candidate].size() > 0;
        });
    if (key == kLanguageKeys.end()) break;
    levels.push_back({&(*outer.object)[*key], fmt::format("{}/{}", outer.pointer, *key)});
  }
  return levels;
}

// The row for the encoders of a wrapper, by its own model_type or an outer one's.
const Tower* tower_of(const std::vector<Level>& levels) {
  for (auto level = levels.rbegin(); level != levels.rend(); ++level)
    if (const std::string* type = (*level->object)["model_type"].as_string())
      for (const Tower& tower : towers())
        if (tower.model_type == *type) return &tower;
  return nullptr;
}

constexpr std::array<std::string_view, 2> kEncoderKeys{"vision_config", "audio_config"};

// Parts beside the language model that no tower lists: talkers, other encoders, projectors.
bool has_unknown_part(const std::vector<Level>& levels, const Tower* tower) {
  const auto is_read = [&](std::string_view key) {
    return tower && std::find(tower->parts.begin(), tower->parts.end(), key) != tower->parts.end();
  };
  for (std::size_t i = 0; i + 1 < levels.size(); ++i)
    for (const auto& [key, value] : levels[i].object->members()) {
      const bool is_model = value.is_object() && value["model_type"].is_string();
      const bool is_known = std::find(kEncoderKeys.begin(), kEncoderKeys.end(), key) != kEncoderKeys.end() ||
                            std::find(kLanguageKeys.begin(), kLanguageKeys.end(), key) != kLanguageKeys.end();
      if (is_model && !is_known && !is_read(key)) return true;
    }
  return false;
}

// Lists the encoders; where their kind, or one part of it, is not known, says that weights are missing.
Status add_encoders(const std::vector<Level>& levels, const Tower* tower, std::string_view source,
                    ModelSpec& spec) {
  if (!spec.encoders.empty()) return {};  // the family lists its own
  for (const Level& level : levels)
    for (const std::string_view key : kEncoderKeys)
      if ((*level.object)[key].is_object()) spec.encoders.emplace_back(key);
  // A wrapper that leaves its vision_config out has the encoder that its class assumes.
  const bool is_wrapper = tower && levels.size() > 1;
  const bool is_bare = (*levels.front().object)["architectures"].items().empty();
  if (is_wrapper && is_bare && tower->is_text_when_bare) {
    spec.encoders.clear();
    return {};
  }
  if (spec.encoders.empty() && !is_wrapper && !has_unknown_part(levels, tower)) return {};
  if (spec.encoders.empty())
    spec.encoders.emplace_back(tower && !tower->parts[0].empty() ? tower->parts[0] : "vision_config");
  if (!tower || has_unknown_part(levels, tower)) {
    spec.has_all_weights = false;
    return {};
  }
  const Level& holder = levels[levels.size() > 1 ? levels.size() - 2 : 0];
  KeyReader wrapper = KeyReader::of_config(*holder.object, source, holder.pointer);
  SpecWriter writer(spec);
  writer.override_group(WeightGroup::kEncoder);
  tower->write(wrapper, writer);
  const Status status = wrapper.status();
  if (status || status.error().code != ErrorCode::kUnsupported) return status;
  spec.has_all_weights = false;
  std::erase_if(spec.weights, [](const Weight& weight) { return weight.group == WeightGroup::kEncoder; });
  return {};
}

// What stands at any level: the outermost that says it counts.
void read_shared(const std::vector<Level>& levels, ModelSpec& spec) {
  for (const Level& level : levels)
    for (const char* key : {"dtype", "torch_dtype"})
      if (const auto* text = (*level.object)[key].as_string(); text && !spec.declared_dtype)
        spec.declared_dtype = dtype_from_config(*text);
}

// The name by which people know the model: a hub's id, or the folder's name, but no commit of a cache.
std::string name_of(const artifact::Artifact& artifact) {
  if (const artifact::HubFacts* hub = artifact.hub(); hub && !hub->id.empty()) return hub->id;
  if (auto repository = artifact::repository_of_snapshot(artifact.root())) return std::move(*repository);
  const std::filesystem::path root(artifact.root());
  return (root.filename().empty() ? root.parent_path() : root).filename().string();
}

}  // namespace

const Json& language_config(const Json& config, std::string& pointer) {
  const Level level = levels_of(config).back();
  pointer = level.pointer;
  return *level.object;
}

namespace {

Result<ModelSpec> read_config_spec(const Json& config, const std::optional<Quantization>& declared,
                                   std::string_view source) {
  if (!config.is_object())
    return fail(ErrorCode::kMalformed, "reading the model: the config is not a JSON object",
                std::string(source));
  const std::vector<Level> levels = levels_of(config);
  const Level& inner = levels.back();
  const Tower* tower = tower_of(levels);
  Match match = family_of(*inner.object);
  // An inner object without a name is the model that the object around it names.
  for (auto level = levels.rbegin() + 1; level < levels.rend() && match.shown.empty() && !tower; ++level)
    match = family_of(*level->object);
  if (!match.family && tower) match.family = family_of_type(tower->text_family);
  if (!match.family) {
    if (match.shown.empty()) match.shown = family_of(config).shown;
    return unknown(match.shown, fmt::format("{}: {}/architectures", source, inner.pointer));
  }
  KeyReader keys = KeyReader::of_config(*inner.object, source, inner.pointer);
  const Tower::Ties ties = tower ? tower->ties : Tower::Ties::kByWrapper;
  for (auto level = levels.rbegin() + 1; level < levels.rend() && ties == Tower::Ties::kByWrapper; ++level)
    keys.inherit(*level->object);
  if (ties == Tower::Ties::kNever) keys.untie();
  ModelSpec spec = match.family->from_config(keys);
  PLIMSOLL_TRY_VOID(keys.status());
  if (match.other_head.empty() && levels.size() == 1 && is_headless_type(*match.family, config))
    match.other_head = "TextModel";
  replace_head(match.other_head, *inner.object, spec);
  PLIMSOLL_TRY_VOID(add_encoders(levels, tower, source, spec));
  const auto& names = config["architectures"].items();
  const std::string* outer = names.empty() ? nullptr : names[0].as_string();
  spec.architecture = outer ? *outer : std::string(match.family->architecture);
  const std::string* type = config["model_type"].as_string();
  spec.model_type = type ? *type : std::string(match.family->model_type);
  spec.pooling = pooling_of_class(spec.architecture,
                                  outer && (match.other_head == "Model" || match.other_head == "TextModel"));
  std::erase_if(spec.assumed, [&](const AssumedFigure& figure) { return !is_counted(figure, spec); });
  read_shared(levels, spec);
  if (declared) spec.quantization = declared->method.empty() ? "an unnamed method" : declared->method;
  return spec;
}

}  // namespace

Result<ModelSpec> read_spec(const Json& config, std::string_view source) {
  return read_config_spec(config, read_quantization(config, Json()), source);
}

Result<ModelSpec> read_spec(const artifact::Artifact& artifact) {
  if (artifact.form() == artifact::Form::kGguf) {
    PLIMSOLL_TRY(ModelSpec spec, read_gguf_spec(artifact));
    read_pooling_files(artifact, spec);
    return spec;
  }
  const bool is_lone = artifact::is_lone_file(artifact);
  if (artifact.config().is_null())
    return fail(ErrorCode::kMalformed, "reading the model: there is no config that can be read",
                artifact.root(), "give a folder with a config.json");
  PLIMSOLL_TRY(ModelSpec spec, read_config_spec(artifact.config(), declared_quantization(artifact),
                                                is_lone ? artifact.files().front().path : "config.json"));
  if (!is_lone) spec.name = name_of(artifact);
  if (!is_lone) read_pooling_files(artifact, spec);
  return spec;
}

}  // namespace plimsoll::model
