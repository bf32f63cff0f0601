// SPDX-License-Identifier: Apache-2.0
#include "inspect/context_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "text/chat.h"
#include "text/text.h"

namespace plimsoll::inspect {
namespace {

constexpr std::int64_t kLengthOfNone = 2048;  // vLLM 0.33: the default where no key states a length

constexpr std::int64_t kMaxLength = std::int64_t{1} << 40;  // no model is trained on 10^12 tokens
constexpr double kMaxFactor = 1e6;                          // extensions above it are damage, not intent

bool is_length(const Json& value) {
  const auto tokens = value.as_integer();
  return tokens && *tokens > 0 && *tokens <= kMaxLength;
}

std::optional<std::int64_t> length_in(const Json& value) {
  return is_length(value) ? value.as_integer() : std::nullopt;
}

// Keys that state a length, in the order in which vLLM asks for them.
constexpr std::array<const char*, 9> kLengthKeys{
    "max_position_embeddings", "n_positions",         "max_seq_len",    "seq_length", "model_max_length",
    "max_target_positions",    "max_sequence_length", "max_seq_length", "seq_len"};

struct Place {
  std::string file, pointer;
  const Json* value;
};

// Every place that states a length in tokens.
std::vector<Place> length_places(const Subject& subject) {
  std::vector<Place> places;
  const auto add = [&](const std::string& file, std::string pointer, const Json& value) {
    if (value.is_number()) places.push_back({file, std::move(pointer), &value});
  };
  const Json& figures = subject.figures;
  if (subject.is_gguf()) {
    for (const auto& [key, value] : figures.members())
      if (key.ends_with(".context_length") || key.ends_with("original_context_length"))
        add(subject.config_file, key, value);
    return places;
  }
  for (const char* key : kLengthKeys)
    add(subject.config_file, subject.figures_pointer + "/" + key, figures[key]);
  constexpr const char* kOriginal = "original_max_position_embeddings";
  add(subject.config_file, subject.figures_pointer + "/" + kOriginal, figures[kOriginal]);
  for (const char* scaling : {"rope_scaling", "rope_parameters"}) {
    const std::string pointer = fmt::format("{}/{}", subject.figures_pointer, scaling);
    add(subject.config_file, fmt::format("{}/{}", pointer, kOriginal), figures[scaling][kOriginal]);
    for (const auto& [kind, entry] : figures[scaling].members())
      add(subject.config_file, fmt::format("{}/{}/{}", pointer, kind, kOriginal), entry[kOriginal]);
  }
  add("tokenizer_config.json", "/model_max_length",
      subject.artifact.json_file("tokenizer_config.json")["model_max_length"]);
  return places;
}

// What the rotary dictionary says; several where each kind of layer has its own.
struct Scaling {
  std::string type = "default";
  std::optional<double> factor;
  std::optional<std::int64_t> original;
};

Scaling scaling_in(const Json& entry, const Json& figures) {
  Scaling scaling;
  for (const char* key : {"type", "rope_type"})
    if (const auto* type = entry[key].as_string()) scaling.type = *type;
  if (scaling.type == "su") scaling.type = "longrope";  // Phi-3's first name for it
  if (const auto factor = entry["factor"].as_double(); factor && *factor > 0 && *factor <= kMaxFactor)
    scaling.factor = factor;
  scaling.original = length_in(entry["original_max_position_embeddings"]);
  if (!scaling.original) scaling.original = length_in(figures["original_max_position_embeddings"]);
  return scaling;
}

std::vector<Scaling> scalings_of(const Json& figures) {
  const Json& dictionary =
      figures["rope_parameters"].is_object() ? figures["rope_parameters"] : figures["rope_scaling"];
  std::vector<Scaling> scalings;
  for (const auto& [kind, entry] : dictionary.members())
    if (entry.is_object()) scalings.push_back(scaling_in(entry, figures));
  if (scalings.empty() && dictionary.is_object()) scalings.push_back(scaling_in(dictionary, figures));
  return scalings;
}

std::int64_t times(std::int64_t tokens, double factor) {
  const double product = static_cast<double>(tokens) * factor;
  return product < static_cast<double>(kMaxLength) ? static_cast<std::int64_t>(product) : kMaxLength;
}

// The length that vLLM takes from the config before scaling: the smallest of the keys, but model_max_length
// goes before all.
std::optional<std::int64_t> stated_length(const Json& figures) {
  if (const auto tokens = length_in(figures["model_max_length"])) return tokens;
  std::optional<std::int64_t> smallest;
  for (const char* key : kLengthKeys)
    if (const auto tokens = length_in(figures[key])) smallest = std::min(smallest.value_or(*tokens), *tokens);
  return smallest;
}

// vLLM's default --max-model-len. Types whose stated length is already the extended one are not multiplied;
// longrope starts at its original length. Source: docs/formulas/context.md, section 3 (vLLM 0.33.0).
std::optional<std::int64_t> default_length(const Json& figures, std::optional<std::int64_t> stated) {
  if (!stated) return std::nullopt;
  constexpr std::array<std::string_view, 6> kAlreadyScaled{
      "longrope", "llama3", "yarn", "deepseek_yarn", "deepseek_llama_scaling", "su"};
  // Gemma 3 states the extended length beside a linear factor; vLLM asks for its name.
  const auto* type = figures["model_type"].as_string();
  const bool is_extended = type && type->find("gemma3") != std::string::npos;
  double factor = 1.0;
  bool is_longrope = false;
  for (const Scaling& scaling : scalings_of(figures)) {
    is_longrope |= scaling.type == "longrope";
    if (std::find(kAlreadyScaled.begin(), kAlreadyScaled.end(), scaling.type) == kAlreadyScaled.end())
      factor = scaling.factor.value_or(factor);
  }
  if (is_longrope)
    if (const auto original = length_in(figures["original_max_position_embeddings"])) return original;
  return is_extended ? *stated : times(*stated, factor);
}

// Native and extended length from the config alone, for architectures without a spec.
void read_lengths(const Json& figures, std::optional<std::int64_t> stated, Context& context) {
  context.native_tokens = stated;
  context.extended_tokens = stated;
  const auto* type = figures["model_type"].as_string();
  const bool is_extended = type && type->find("gemma3") != std::string::npos;
  for (const Scaling& scaling : scalings_of(figures)) {
    if (scaling.original) context.native_tokens = scaling.original;
    const auto base = scaling.original ? scaling.original : stated;
    if (!base || !scaling.factor || is_extended) continue;
    std::int64_t reached = stated.value_or(*base);
    if (scaling.type == "linear" && stated) reached = times(*stated, *scaling.factor);
    if (scaling.type == "yarn" || scaling.type == "deepseek_yarn" || scaling.type == "dynamic")
      reached = times(*base, *scaling.factor);
    context.extended_tokens = std::max(context.extended_tokens.value_or(0), reached);
  }
}

// yarn whose max_position_embeddings was not raised with the factor: engines differ in what they then allow.
void check_scaled_length(const Subject& subject, Report& report) {
  if (subject.is_gguf()) return;
  const auto stated = length_in(subject.figures["max_position_embeddings"]);
  const auto scalings = scalings_of(subject.figures);
  const auto yarn = std::find_if(scalings.begin(), scalings.end(), [](const Scaling& scaling) {
    return scaling.type == "yarn" || scaling.type == "deepseek_yarn";
  });
  if (!stated || yarn == scalings.end() || !yarn->factor) return;
  const std::int64_t base = yarn->original.value_or(*stated), reached = times(base, *yarn->factor);
  if (*stated >= reached) return;
  add_check(report.findings, "CFG_ROPE_CTX", FindingLevel::kWarning, subject.place("max_position_embeddings"),
            fmt::format("yarn reaches {} x {} = {} tokens, max_position_embeddings states {}, which vLLM "
                        "0.33.0 takes",
                        base, format_double(*yarn->factor), reached, *stated),
            "state the extended length, or remove rope_scaling");
}

// A tokenizer that was made for less than the model: transformers warns, clients that truncate cut.
void check_tokenizer_length(const Subject& subject, Report& report) {
  const auto tokenizer = length_in(subject.artifact.json_file("tokenizer_config.json")["model_max_length"]);
  const auto& longest = report.context.max_model_len;
  if (!tokenizer || !longest || *tokenizer >= *longest) return;
  const auto& native = report.context.native_tokens;
  if (native && *tokenizer >= *native) return;
  add_check(
      report.findings, "CTX_TOKENIZER", FindingLevel::kInfo, "tokenizer_config.json: /model_max_length",
      fmt::format("the tokenizer states {} tokens, the model {}: engines take the model's, clients that "
                  "truncate by the tokenizer cut earlier",
                  *tokenizer, *longest),
      "give --max-model-len if the shorter one is meant");
}

std::int64_t windowed_layers(const Report& report) {
  std::int64_t count = 0;
  for (const auto& layer : report.spec->layers) {
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer))
      count += attention->window_tokens || attention->chunk_tokens;
    else if (const auto* latent = std::get_if<model::Latent>(&layer.mixer))
      count += latent->window_tokens.has_value();
  }
  return count;
}

// Whether the stated window limits anything, and why not.
void read_window(const Subject& subject, Report& report) {
  const Json& figures = subject.figures;
  for (const char* key : {"sliding_window", "attention_chunk_size"}) {
    const auto tokens = length_in(figures[key]);
    if (!tokens || report.context.window) continue;
    Window window{*tokens, std::nullopt, std::nullopt, {}};
    if (report.spec) {
      window.layers = windowed_layers(report);
      window.in_effect = *window.layers > 0;
    }
    const auto use = figures["use_sliding_window"].as_bool();
    const auto from = figures["max_window_layers"].as_integer(),
               layers = figures["num_hidden_layers"].as_integer();
    if (use && !*use) {
      window.in_effect = false;
      window.reason = "use_sliding_window is false";
    } else if (use && *use && from && layers && *from >= *layers && figures["layer_types"].is_null()) {
      window.in_effect = false;
      window.reason = fmt::format("max_window_layers {} leaves none of the {} layers", *from, *layers);
    } else if (const auto& longest = report.context.max_model_len; longest && *tokens >= *longest) {
      window.in_effect = false;
      window.reason = fmt::format("{} tokens are no less than the context of {}", *tokens, *longest);
    } else if (window.in_effect == false) {
      window.reason = "no layer of this architecture uses it";
    }
    report.context.window = window;
  }
}

Json message(const char* role, const std::string& content) {
  return Json::object({{"role", role}, {"content", content}});
}

// Tokens that the template puts around one user message.
std::optional<std::int64_t> template_overhead(const artifact::Artifact& artifact) {
  if (!text::has_tokenizer(artifact)) return std::nullopt;
  const auto source = text::chat_template_source(artifact);
  const auto chat = source ? text::ChatTemplate::parse(*source)
                           : tl::expected<std::shared_ptr<const text::ChatTemplate>, text::TemplateError>();
  if (!source || !chat) return std::nullopt;
  const std::string content = "Hello";
  const auto prompt =
      (*chat)->render(Json::object({{"messages", Json(Json::Array{message("user", content)})},
                                    {"tools", nullptr},
                                    {"documents", nullptr},
                                    {"add_generation_prompt", true},
                                    {"bos_token", text::special_token_text(artifact, "bos_token")},
                                    {"eos_token", text::special_token_text(artifact, "eos_token")}}),
                      "2026-01-15T09:30:00");
  if (!prompt) return std::nullopt;
  const auto tokenizer = text::load_tokenizer(artifact);
  if (!tokenizer) return std::nullopt;
  const auto all = (*tokenizer)->encode(*prompt, {false, true}).size();
  const auto words = (*tokenizer)->encode(content, {false, false}).size();
  return all >= words ? std::optional(static_cast<std::int64_t>(all - words)) : std::nullopt;
}

}  // namespace

void read_context(const Subject& subject, Report& report) {
  Context& context = report.context;
  for (const Place& place : length_places(subject)) {
    if (is_length(*place.value)) {
      context.sources.push_back({place.file, place.pointer, *place.value});
      continue;
    }
    // Tokenizers write 10^30 for "no limit"; in a config it is damage.
    const bool is_tokenizer = place.file == "tokenizer_config.json";
    report.findings.push_back(
        {is_tokenizer ? "CONTEXT_UNBOUNDED" : "CFG_RANGE",
         is_tokenizer ? FindingLevel::kInfo : FindingLevel::kError,
         FindingKind::kMalformed,
         fmt::format("{}: {}", place.file, place.pointer),
         fmt::format("the length {} cannot be meant; it is skipped", dump(*place.value)),
         {}});
  }
  const auto stated = subject.is_gguf() ? std::nullopt : stated_length(subject.figures);
  if (!subject.is_gguf()) read_lengths(subject.figures, stated, context);
  if (report.spec) {
    if (report.spec->native_context_tokens > 0) context.native_tokens = report.spec->native_context_tokens;
    if (report.spec->extended_context_tokens > 0)
      context.extended_tokens = report.spec->extended_context_tokens;
  }
  // Where the config states none, the family's own default stands in the spec.
  context.max_model_len = stated ? default_length(subject.figures, stated) : context.extended_tokens;
  if (!context.max_model_len && report.spec && !subject.is_gguf()) {
    context.max_model_len = kLengthOfNone;
    add_check(report.findings, "CONTEXT_NOT_STATED", FindingLevel::kInfo, subject.config_file,
              fmt::format("no key states a length in tokens; vLLM takes {} then", kLengthOfNone),
              "give --max-model-len: layers with a state alone have no limit of their own");
  }
  check_scaled_length(subject, report);
  check_tokenizer_length(subject, report);
  read_window(subject, report);
}

void measure_maximum_input(const Subject& subject, Report& report) {
  Context& context = report.context;
  if (!context.max_model_len) return;
  MaximumInput room;
  room.template_overhead_tokens = template_overhead(subject.artifact);
  if (report.workload) {
    room.reserved_output_tokens = report.workload->output.value;
    room.reserved_by = "--workload";
  } else if (const auto limit = length_in(report.generation_defaults["max_new_tokens"])) {
    room.reserved_output_tokens = *limit;
    room.reserved_by = "generation_config.json";
  } else {
    room.reserved_output_tokens = 1;  // no engine takes a prompt that leaves no room for one token
    room.reserved_by = "one token";
  }
  if (room.template_overhead_tokens)
    room.tokens = std::max<std::int64_t>(
        0, *context.max_model_len - room.reserved_output_tokens - *room.template_overhead_tokens);
  context.maximum_input = room;
}

Json context_json(const Context& context) {
  Json sources = Json::array();
  for (const ContextSource& source : context.sources)
    sources.push_back(
        Json::object({{"file", source.file}, {"pointer", source.pointer}, {"value", source.value}}));
  Json window, room;
  if (context.window)
    window =
        Json::object({{"tokens", context.window->tokens},
                      {"in_effect", context.window->in_effect},
                      {"layers", context.window->layers},
                      {"reason", context.window->reason.empty() ? Json() : Json(context.window->reason)}});
  if (context.maximum_input)
    room = Json::object({{"tokens", context.maximum_input->tokens},
                         {"reserved_output_tokens", context.maximum_input->reserved_output_tokens},
                         {"reserved_by", context.maximum_input->reserved_by},
                         {"template_overhead_tokens", context.maximum_input->template_overhead_tokens}});
  return Json::object({{"native_tokens", context.native_tokens},
                       {"extended_tokens", context.extended_tokens},
                       {"max_model_len", context.max_model_len},
                       {"window", std::move(window)},
                       {"maximum_input", std::move(room)},
                       {"sources", std::move(sources)}});
}

}  // namespace plimsoll::inspect
