// SPDX-License-Identifier: Apache-2.0
#include "inspect/config_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "artifact/given_path.h"
#include "base/dtype.h"
#include "model/rope.h"

namespace plimsoll::inspect {
namespace {

struct Figure {
  std::string_view key;
  std::int64_t most;
};

// Figures that every family counts by, and the largest value that is believed.
constexpr std::array<Figure, 8> kFigures{{
    {"hidden_size", std::int64_t{1} << 20},
    {"num_hidden_layers", 4096},
    {"num_attention_heads", 4096},
    {"num_key_value_heads", 4096},
    {"head_dim", 8192},
    {"intermediate_size", std::int64_t{1} << 20},
    {"vocab_size", std::int64_t{1} << 28},
    {"num_experts", 65'536},
}};

void malformed(Findings& findings, std::string id, std::string where, std::string message) {
  findings.push_back({std::move(id), FindingLevel::kError, FindingKind::kMalformed, std::move(where),
                      std::move(message), std::string(kCorrect)});
}

void check_figures(const Subject& subject, Findings& findings) {
  for (const Figure& figure : kFigures) {
    const Json& value = subject.figures[figure.key];
    if (value.is_null() || value.is_array()) continue;  // some families state one value per layer
    if (!value.is_number()) {
      malformed(findings, "CFG_TYPE", subject.place(figure.key),
                fmt::format("{} is {}, an integer is wanted", figure.key, dump(value).substr(0, 60)));
      continue;
    }
    const auto number = value.as_integer();
    if (!number || *number < 1 || *number > figure.most)
      malformed(findings, "CFG_RANGE", subject.place(figure.key),
                fmt::format("{} is {}, outside 1 to {}", figure.key, dump(value), figure.most));
  }
}

bool is_ids(const Json& value) {
  const auto& items = value.items();
  return value.as_integer() ||
         (value.is_array() && std::all_of(items.begin(), items.end(),
                                          [](const Json& id) { return id.as_integer().has_value(); }));
}

/// Keys whose value readers pass over where it has another type; null is always allowed.
struct Typed {
  std::string_view key, wanted;
  bool (*is_right)(const Json&);
};
constexpr std::array<Typed, 9> kTyped{{
    {"max_position_embeddings", "a number", [](const Json& value) { return value.is_number(); }},
    {"sliding_window", "a number",
     [](const Json& value) { return value.is_number() || value.is_array() || value.is_bool(); }},
    {"layer_types", "a list", [](const Json& value) { return value.is_array(); }},
    {"rope_scaling", "an object", [](const Json& value) { return value.is_object(); }},
    {"rope_parameters", "an object", [](const Json& value) { return value.is_object(); }},
    {"eos_token_id", "an id or a list of ids", is_ids},
    {"torch_dtype", "a text", [](const Json& value) { return value.is_string(); }},
    {"dtype", "a text", [](const Json& value) { return value.is_string(); }},
    {"architectures", "a list", [](const Json& value) { return value.is_array(); }},
}};

void check_types(const Subject& subject, Findings& findings) {
  for (const Typed& typed : kTyped) {
    const Json& value = subject.figures[typed.key];
    if (value.is_null() || typed.is_right(value)) continue;
    malformed(findings, "CFG_TYPE", subject.place(typed.key),
              fmt::format("{} is {}, {} is wanted", typed.key, dump(value).substr(0, 60), typed.wanted));
  }
}

// Words that no library knows: transformers refuses the activation, engines guess the type.
void check_words(const Subject& subject, Findings& findings) {
  const Json& config = subject.artifact.config();
  for (const char* key : {"dtype", "torch_dtype"}) {
    const std::string* word = subject.figures[key].as_string();
    if (!word || *word == "auto") continue;
    const std::string_view plain =
        std::string_view(*word).substr(word->starts_with("torch.") ? std::string_view("torch.").size() : 0);
    if (!dtype_from_config(plain))
      add_check(findings, "CFG_DTYPE_UNKNOWN", FindingLevel::kWarning, subject.place(key),
                fmt::format("{} is \"{}\", which is no dtype that is known here", key, word->substr(0, 60)),
                "state the stored type");
  }
  // transformers' table of activations, and gated ones that classes build in; code that comes with a model
  // has its own.
  constexpr std::array<std::string_view, 27> kActivations{"swigluoai",
                                                          "swiglu",
                                                          "geglu",
                                                          "gelu",
                                                          "gelu_10",
                                                          "gelu_accurate",
                                                          "gelu_fast",
                                                          "gelu_new",
                                                          "gelu_python",
                                                          "linear",
                                                          "gelu_python_tanh",
                                                          "gelu_pytorch_tanh",
                                                          "hardswish",
                                                          "laplace",
                                                          "leaky_relu",
                                                          "mish",
                                                          "prelu",
                                                          "quick_gelu",
                                                          "relu",
                                                          "relu2",
                                                          "relu6",
                                                          "silu",
                                                          "sigmoid",
                                                          "sqrtsoftplus",
                                                          "swish",
                                                          "tanh",
                                                          "xielu"};
  const std::string* activation = subject.figures["hidden_act"].as_string();
  if (activation && !config.contains("auto_map") &&
      std::find(kActivations.begin(), kActivations.end(), *activation) == kActivations.end())
    add_check(findings, "CFG_ACTIVATION", FindingLevel::kWarning, subject.place("hidden_act"),
              fmt::format("the activation \"{}\" is none that transformers knows", activation->substr(0, 60)),
              "correct the name");
}

// These kinds stretch by a factor, which transformers wants stated.
void check_rope_factor(const Subject& subject, Findings& findings) {
  for (const char* dict : {"rope_scaling", "rope_parameters"}) {
    const Json& scaling = subject.figures[dict];
    const std::string* kind = scaling[scaling.contains("rope_type") ? "rope_type" : "type"].as_string();
    const bool wants_factor =
        kind && (*kind == "linear" || *kind == "dynamic" || *kind == "yarn" || *kind == "llama3");
    if (wants_factor && scaling["factor"].is_null())
      add_check(
          findings, "CFG_ROPE_FACTOR", FindingLevel::kWarning, subject.place(dict),
          fmt::format("rotary embedding of the kind {} without a factor: transformers wants one", *kind),
          "state the factor");
  }
}

// The figure of a layer: GGUF has one for all, or a list.
std::optional<std::int64_t> of_layer(const Json& value, std::size_t layer) {
  return value.is_array() && layer < value.size() ? value.items()[layer].as_integer() : value.as_integer();
}

void check_heads(const Subject& subject, Findings& findings) {
  std::string heads_key = "num_attention_heads", kv_heads_key = "num_key_value_heads";
  if (subject.is_gguf()) {
    const std::string* architecture = subject.figures["general.architecture"].as_string();
    if (!architecture) return;
    heads_key = *architecture + ".attention.head_count";
    kv_heads_key = heads_key + "_kv";
  }
  const Json &all_heads = subject.figures[heads_key], &all_kv_heads = subject.figures[kv_heads_key];
  const std::size_t layers = std::max({std::size_t{1}, all_heads.size(), all_kv_heads.size()});
  for (std::size_t layer = 0; layer < layers; ++layer) {
    const auto heads = of_layer(all_heads, layer), kv_heads = of_layer(all_kv_heads, layer);
    if (!heads || !kv_heads || *heads < 1 || *kv_heads < 1 || *heads % *kv_heads == 0) continue;
    return add_check(findings, "CFG_KV_HEADS", FindingLevel::kError, subject.place(kv_heads_key),
                     fmt::format("{} attention heads cannot share {} KV heads evenly", *heads, *kv_heads),
                     "correct the value");
  }
}

void check_rope(const Subject& subject, Findings& findings) {
  for (const char* dict : {"rope_scaling", "rope_parameters"}) {
    for (const char* key : {"rope_type", "type"}) {
      const std::string* type = subject.figures[dict][key].as_string();
      if (!type || model::is_known_rope_kind(*type)) continue;
      findings.push_back(
          {"CFG_ROPE_TYPE", FindingLevel::kError, FindingKind::kUnsupported,
           subject.place(fmt::format("{}/{}", dict, key)),
           fmt::format("unknown rotary kind \"{}\"; ignoring it would give wrong output", *type),
           "correct the kind, or add it"});
    }
  }
}

// "2" for 2: the value is there, and is of another type than the reader wants.
bool is_of_wrong_type(const Subject& subject, const Error& error) {
  const std::size_t at = error.where.rfind(": /");
  if (at == std::string::npos || !error.message.ends_with(" is wanted")) return false;
  const bool wants_number = error.message.find(" number ") != std::string::npos;
  return !(wants_number && subject.artifact.config().at_pointer(error.where.substr(at + 2)).is_number());
}

// The reason why there is no spec, unless a check has told it.
void add_spec_error(const Subject& subject, const Error& error, Findings& findings) {
  for (const Finding& finding : findings)
    if (finding.level == FindingLevel::kError && finding.where == error.where) return;
  const bool is_unsupported = error.code == ErrorCode::kUnsupported;
  const bool is_unknown =
      error.where.ends_with("/architectures") || error.where.ends_with("general.architecture");
  findings.push_back({is_unknown && is_unsupported       ? "ARCH_UNKNOWN"
                      : is_unsupported                   ? "CFG_UNSUPPORTED"
                      : is_of_wrong_type(subject, error) ? "CFG_TYPE"
                                                         : "CFG_VALUE",
                      FindingLevel::kError,
                      is_unsupported ? FindingKind::kUnsupported : FindingKind::kMalformed, error.where,
                      error.message,
                      !error.fix.empty() ? error.fix
                      : is_unsupported   ? "use an engine that runs this model"
                                         : std::string(kCorrect)});
}

bool has_error(const Findings& findings, std::initializer_list<std::string_view> ids) {
  return std::any_of(findings.begin(), findings.end(), [&](const Finding& finding) {
    return std::find(ids.begin(), ids.end(), finding.id) != ids.end();
  });
}

}  // namespace

void check_config(const Subject& subject, const std::optional<Error>& spec_error, Findings& findings) {
  if (!subject.is_gguf() && subject.artifact.config().is_object()) {
    check_figures(subject, findings);
    check_types(subject, findings);
    check_rope(subject, findings);
    check_rope_factor(subject, findings);
    check_words(subject, findings);
    const Json& ends = subject.artifact.json_file("generation_config.json")["eos_token_id"];
    if (!ends.is_null() && !is_ids(ends))
      malformed(
          findings, "CFG_TYPE", "generation_config.json: /eos_token_id",
          fmt::format("eos_token_id is {}, an id or a list of ids is wanted", dump(ends).substr(0, 60)));
  }
  check_heads(subject, findings);
  // Where the config or the header is unreadable, that is the fault, and it is told.
  const bool is_told = has_error(findings, {"CFG_JSON", "CFG_MISSING", "GGUF_NO_ARCH"}) ||
                       (subject.is_gguf() && worst_level(findings) == FindingLevel::kError &&
                        !subject.artifact.config()["general.architecture"].is_string());
  // A lone tokenizer file is a whole input of its own.
  const bool is_lone_tokenizer =
      subject.artifact.form() == artifact::Form::kTokenizerOnly && artifact::is_lone_file(subject.artifact);
  if (is_lone_tokenizer)
    add_check(findings, "TOKENIZER_ALONE", FindingLevel::kInfo, subject.artifact.files().front().path,
              "this is a tokenizer alone: nothing is known of a model",
              "give the folder that it lies in for everything else");
  else if (spec_error && !is_told)
    add_spec_error(subject, *spec_error, findings);
}

void check_assumed(const Subject& subject, const model::ModelSpec& spec, Findings& findings) {
  std::string absent;
  for (const model::AssumedFigure& figure : spec.assumed) {
    if (figure.is_null)
      findings.push_back(
          {"CFG_NULL", FindingLevel::kWarning, FindingKind::kCheckFailed, subject.place(figure.key),
           fmt::format("{} is null, which transformers refuses; {} is counted, as where it is absent",
                       figure.key, figure.value),
           "write the figure, or leave the key out"});
    else
      absent += fmt::format("{}{} {}", absent.empty() ? "" : ", ", figure.key, figure.value);
  }
  if (!absent.empty())
    findings.push_back({"CFG_DEFAULT", FindingLevel::kInfo, FindingKind::kCheckFailed,
                        subject.config_file + ": " + subject.figures_pointer,
                        "the config does not state all figures; those of its class are counted: " + absent,
                        "state them in the config"});
}

}  // namespace plimsoll::inspect
