// SPDX-License-Identifier: Apache-2.0
#include "model/pooling.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "model/model.h"

namespace plimsoll::model {
namespace {

constexpr std::array<std::pair<std::string_view, PoolingKind>, 6> kKinds{{
    {"lasttoken", PoolingKind::kLast},
    {"cls", PoolingKind::kFirst},
    {"mean", PoolingKind::kMean},
    {"mean_sqrt_len_tokens", PoolingKind::kMeanOfRoot},
    {"weightedmean", PoolingKind::kWeightedMean},
    {"max", PoolingKind::kMax},
}};

// Older files have a flag for each.
constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kFlags{{
    {"pooling_mode_cls_token", "cls"},
    {"pooling_mode_max_tokens", "max"},
    {"pooling_mode_mean_tokens", "mean"},
    {"pooling_mode_mean_sqrt_len_tokens", "mean_sqrt_len_tokens"},
    {"pooling_mode_weightedmean_tokens", "weightedmean"},
    {"pooling_mode_lasttoken", "lasttoken"},
}};

// Files in which a folder states its longest input, the first there is.
constexpr std::array<std::string_view, 7> kLengthFiles{
    "sentence_bert_config.json",      "sentence_roberta_config.json", "sentence_distilbert_config.json",
    "sentence_camembert_config.json", "sentence_albert_config.json",  "sentence_xlm-roberta_config.json",
    "sentence_xlnet_config.json",
};

void note(Pooling& pooling, std::string problem, std::string where) {
  if (!pooling.problem.empty()) return;
  pooling.problem = std::move(problem);
  pooling.where = std::move(where);
}

std::string_view last_part(std::string_view dotted) {
  return dotted.substr(dotted.rfind('.') + 1);
}

// The modes that a pooling file asks for, by Sentence Transformers' names.
std::vector<std::string> modes_of(const Json& config) {
  std::vector<std::string> modes;
  const Json& stated = config["pooling_mode"];
  if (const std::string* mode = stated.as_string()) return {*mode};
  for (const Json& item : stated.items()) modes.push_back(item.as_string() ? *item.as_string() : dump(item));
  if (!stated.is_null()) return modes;
  for (const auto& [flag, mode] : kFlags)
    if (config[flag] == Json(true)) modes.emplace_back(mode);
  if (modes.empty()) modes.emplace_back("mean");
  return modes;
}

void read_mode(const artifact::Artifact& artifact, const std::string& file, std::int64_t width,
               Pooling& pooling) {
  const Json& config = artifact.json_file(file);
  if (!config.is_object())
    return note(pooling, "how hidden states are pooled is not said: the file is no JSON object", file);
  for (const auto& [flag, mode] : kFlags)
    if (!config[flag].is_null() && !config[flag].as_bool())
      note(pooling, fmt::format("{} is neither true nor false", flag), file);
  const std::vector<std::string> modes = modes_of(config);
  if (modes.empty()) return note(pooling, "pooling_mode names no mode", file);
  if (modes.size() > 1)
    return note(pooling, fmt::format("{} pooling modes side by side are not computed", modes.size()), file);
  const auto known = std::ranges::find(kKinds, modes[0], [](const auto& row) { return row.first; });
  if (known == kKinds.end())
    return note(pooling, fmt::format("the pooling mode {} is not computed", modes[0].substr(0, 100)), file);
  pooling.kind = known->second;
  for (const char* key : {"embedding_dimension", "word_embedding_dimension"})
    if (const Json& stated = config[key]; !stated.is_null() && stated.as_integer() != width)
      note(pooling,
           fmt::format("{} is {}, but the model's hidden states have {} dimensions", key,
                       dump(stated).substr(0, 100), width),
           file);
}

// Transformer, Pooling, and perhaps Normalize, in this order; Dropout does nothing here.
void read_modules(const artifact::Artifact& artifact, std::int64_t width, Pooling& pooling) {
  constexpr const char* kFile = "modules.json";
  if (const auto error = artifact.json_file_error(kFile))
    return note(pooling, "how hidden states are pooled is not said: " + error->message, kFile);
  const auto& modules = artifact.json_file(kFile).items();
  pooling.is_normalized = false;
  bool has_pooling = false;
  for (std::size_t i = 0; i < modules.size(); ++i) {
    const std::string where = fmt::format("{}: /{}", kFile, i);
    const std::string* type = modules[i]["type"].as_string();
    const std::string* path = modules[i]["path"].as_string();
    const std::string_view kind = type ? last_part(*type) : std::string_view();
    if (i == 0) {
      if (kind != "Transformer" || (path && !path->empty()))
        note(pooling, "the first module is no transformer that lies in the folder itself", where);
    } else if (kind == "Pooling" && !has_pooling) {
      has_pooling = true;
      if (path) read_mode(artifact, *path + "/config.json", width, pooling);
      if (!path) note(pooling, "the pooling module names no folder", where);
    } else if (kind == "Normalize" && has_pooling && !pooling.is_normalized) {
      pooling.is_normalized = true;
    } else if (kind != "Dropout") {
      note(pooling, fmt::format("the module {} is not computed at this place", type ? *type : "without type"),
           where);
    }
  }
  if (!has_pooling) note(pooling, "the modules of this folder pool no hidden states", kFile);
}

// Beyond the table of positions nothing is embedded, whatever a file states.
std::int64_t positions_of(const ModelSpec& spec) {
  for (const Weight& weight : spec.weights)
    if (weight.role == Role::kPositionEmbedding)
      return std::max<std::int64_t>(weight.shape.front() - spec.first_position, 0);
  return spec.context_tokens() > 0 ? spec.context_tokens() : INT64_MAX;
}

void read_length(const artifact::Artifact& artifact, Pooling& pooling, ModelSpec& spec) {
  std::int64_t length = positions_of(spec);
  const bool has_table = std::ranges::any_of(
      spec.weights, [](const Weight& weight) { return weight.role == Role::kPositionEmbedding; });
  const auto of_tokenizer = artifact.json_file("tokenizer_config.json")["model_max_length"].as_integer();
  if (has_table && of_tokenizer && *of_tokenizer > 0) length = std::min(length, *of_tokenizer);
  for (const std::string_view file : kLengthFiles) {
    const Json& config = artifact.json_file(file);
    if (!config.is_object()) continue;
    if (config["do_lower_case"] == Json(true))
      note(pooling, "text in lower case beside what the tokenizer does is not made here", std::string(file));
    const Json& stated = config["max_seq_length"];
    if (!stated.is_null()) {
      const auto tokens = stated.as_integer();
      if (!tokens || *tokens < 1)
        note(pooling, "max_seq_length is no number of tokens: " + dump(stated).substr(0, 100),
             std::string(file) + ": /max_seq_length");
      else
        length = std::min(positions_of(spec), *tokens);
    }
    break;
  }
  if (length < 1) return note(pooling, "the table of positions has no row for a token", "config.json");
  if (length < INT64_MAX) pooling.longest_tokens = length;
}

void read_shorter_ones(const Json& config, Pooling& pooling) {
  const Json& dimensions = config["matryoshka_dimensions"];
  pooling.has_shorter_ones = dimensions.size() > 0 || config["is_matryoshka"] == Json(true);
  for (const Json& item : dimensions.items())
    if (const auto count = item.as_integer(); count && *count > 0) pooling.dimensions.push_back(*count);
}

// Causal classes that were trained to see what stands behind, too.
void read_direction(const Json& config, Pooling& pooling) {
  for (const auto& [key, value] :
       {std::pair("is_causal", false), std::pair("use_bidirectional_attention", true)})
    if (config[key] == Json(value))
      note(pooling, "a decoder that sees what stands behind a token is not computed",
           std::string("config.json: /") + key);
}

// A base model's checkpoint leaves out the prefix that the class with a head has, or the other way round.
void match_names(const artifact::Artifact& artifact, ModelSpec& spec) {
  const auto embedding = std::ranges::find(spec.weights, Role::kTokenEmbedding, &Weight::role);
  if (embedding == spec.weights.end() || artifact.find(embedding->hf_name)) return;
  const std::string name = embedding->hf_name;
  const auto rename = [&](const auto& change) {
    for (Weight& weight : spec.weights)
      if (weight.role != Role::kNone && !weight.hf_name.empty()) weight.hf_name = change(weight.hf_name);
  };
  for (const std::string_view prefix : {"model.", "bert.", "roberta."}) {
    if (name.starts_with(prefix) && artifact.find(name.substr(prefix.size())))
      return rename(
          [&](const std::string& old) { return old.starts_with(prefix) ? old.substr(prefix.size()) : old; });
    if (artifact.find(std::string(prefix) + name))
      return rename([&](const std::string& old) { return std::string(prefix) + old; });
  }
}

// GGUF's numbers: 0 none, 1 mean, 2 first, 3 last, 4 a ranking head.
std::optional<Pooling> pooling_of_gguf(const Json& metadata) {
  const std::string* architecture = metadata["general.architecture"].as_string();
  const std::string key = (architecture ? *architecture : "") + ".pooling_type";
  const auto number = metadata[key].as_integer();
  if (!number || *number == 0) return std::nullopt;
  constexpr std::array kOfNumber{PoolingKind::kMean, PoolingKind::kFirst, PoolingKind::kLast};
  Pooling pooling;
  if (*number >= 1 && *number <= std::ssize(kOfNumber))
    pooling.kind = kOfNumber[static_cast<std::size_t>(*number - 1)];
  else
    note(pooling, fmt::format("pooling type {} is not computed", *number), key);
  return pooling;
}

}  // namespace

std::string_view to_string(PoolingKind kind) {
  return std::ranges::find(kKinds, kind, [](const auto& row) { return row.second; })->first;
}

std::optional<Pooling> pooling_of_class(std::string_view architecture, bool is_decoder_without_head) {
  constexpr std::array<std::string_view, 5> kEncoders{"BertModel", "RobertaModel", "RobertaForMaskedLM",
                                                      "XLMRobertaModel", "ModernBertModel"};
  if (std::ranges::find(kEncoders, architecture) != kEncoders.end())
    return Pooling{.kind = PoolingKind::kFirst};
  return is_decoder_without_head ? std::optional(Pooling{}) : std::nullopt;
}

void read_pooling_files(const artifact::Artifact& artifact, ModelSpec& spec) {
  const bool is_gguf = artifact.form() == artifact::Form::kGguf;
  if (is_gguf) {
    spec.pooling = pooling_of_gguf(artifact.config());
  } else if (!artifact.json_file("modules.json").is_null() || artifact.json_file_error("modules.json")) {
    spec.pooling.emplace();
    read_modules(artifact, spec.hidden_size, *spec.pooling);
  }
  if (!spec.pooling) return;
  Pooling& pooling = *spec.pooling;
  // The output matrix is not read, whether or not the checkpoint has it.
  std::erase_if(spec.weights, [](const Weight& weight) {
    return weight.role == Role::kOutputHead || weight.role == Role::kOutputHeadBias;
  });
  if (is_gguf) return;
  read_shorter_ones(artifact.config(), pooling);
  std::string pointer;
  read_direction(language_config(artifact.config(), pointer), pooling);
  read_length(artifact, pooling, spec);
  match_names(artifact, spec);
}

}  // namespace plimsoll::model
