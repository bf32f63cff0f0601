// SPDX-License-Identifier: Apache-2.0
#include "inspect/context_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "model/context_length.h"
#include "text/template_renderer.h"
#include "text/text.h"

namespace plimsoll::inspect {
namespace {

using model::length_in;
using model::RopeScaling;

constexpr std::int64_t kLengthOfNone = 2048;  // vLLM 0.33: the default where no key states a length

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
  for (const std::string_view key : model::length_keys())
    add(subject.config_file, fmt::format("{}/{}", subject.figures_pointer, key), figures[key]);
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

// Native and extended length from the config alone, for architectures without a spec.
void read_lengths(const Json& figures, std::optional<std::int64_t> stated, Context& context) {
  context.native_tokens = stated;
  context.extended_tokens = stated;
  for (const RopeScaling& scaling : model::rope_scalings(figures)) {
    if (scaling.original) context.native_tokens = scaling.original;
    const auto base = scaling.original ? scaling.original : stated;
    if (!base || !scaling.factor) continue;
    std::int64_t reached = stated.value_or(*base);
    if (scaling.type == "linear" && stated) reached = model::scaled_length(*stated, *scaling.factor);
    if (scaling.is_yarn() || scaling.type == "dynamic")
      reached = model::scaled_length(*base, *scaling.factor);
    context.extended_tokens = std::max(context.extended_tokens.value_or(0), reached);
  }
}

// yarn whose max_position_embeddings was not raised with the factor: engines differ in what they then allow.
void check_scaled_length(const Subject& subject, Report& report) {
  if (subject.is_gguf()) return;
  const auto stated = length_in(subject.figures["max_position_embeddings"]);
  const auto scalings = model::rope_scalings(subject.figures);
  const auto yarn = std::find_if(scalings.begin(), scalings.end(),
                                 [](const RopeScaling& scaling) { return scaling.is_yarn(); });
  if (!stated || yarn == scalings.end() || !yarn->factor) return;
  const std::int64_t base = yarn->original.value_or(*stated),
                     reached = model::scaled_length(base, *yarn->factor);
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

// What is asked for against what the model has: flags and traffic that engines would refuse.
void check_asked_length(const Subject& subject, Report& report) {
  const Context& context = report.context;
  const std::int64_t longest = *context.max_model_len;
  const auto& asked = subject.options.sequence_tokens;
  // longrope starts at its original length and may be asked to go on.
  const auto scalings =
      subject.is_gguf() ? std::vector<RopeScaling>() : model::rope_scalings(subject.figures);
  const bool is_longrope = std::any_of(scalings.begin(), scalings.end(),
                                       [](const RopeScaling& scaling) { return scaling.type == "longrope"; });
  const std::int64_t most = is_longrope ? std::max(longest, context.extended_tokens.value_or(0)) : longest;
  if (asked && *asked > most)
    add_check(report.findings, "CTX_ASKED", FindingLevel::kWarning, "--max-model-len",
              fmt::format("{} tokens are asked for, the model has {}: vLLM refuses to start", *asked, most),
              fmt::format("ask for at most {}", most));
  if (!report.workload) return;
  const std::int64_t limit = std::min(asked.value_or(longest), most);
  const auto request = checked_sum(report.workload->input.value, report.workload->output.value);
  if (!request || *request > limit)
    add_check(report.findings, "CTX_WORKLOAD", FindingLevel::kWarning, "--workload",
              fmt::format("requests of {} + {} tokens are longer than the {} of the context",
                          report.workload->input.value, report.workload->output.value, limit),
              "shorten the requests, or take a model with a longer context");
}

// Tokens that the template puts around one user message, counted as `serve` counts them.
std::optional<std::int64_t> template_overhead(const artifact::Artifact& artifact) {
  if (!text::has_tokenizer(artifact) || !text::chat_template_source(artifact)) return std::nullopt;
  const auto tokenizer = text::load_tokenizer(artifact);
  if (!tokenizer) return std::nullopt;
  // The artifact outlives the renderer, which wants to share it.
  text::TemplateRenderer renderer(
      {std::shared_ptr<const artifact::Artifact>(std::shared_ptr<void>(), &artifact), {}, {}});
  const Json user = Json::object({{"role", "user"}, {"content", "Hello"}});
  Json context = text::chat_context({Json(Json::Array{user}), {}, {}});
  context.set("now", "2026-01-15T09:30:00");
  const auto count = text::count_conversation(**tokenizer, renderer, std::move(context));
  return count ? std::optional(count->template_overhead.value) : std::nullopt;
}

}  // namespace

void read_context(const Subject& subject, Report& report) {
  Context& context = report.context;
  for (const Place& place : length_places(subject)) {
    if (length_in(*place.value)) {
      context.sources.push_back({place.file, place.pointer, *place.value});
      continue;
    }
    // Tokenizers write 10^30 for "no limit"; in a config it is damage.
    const bool is_tokenizer = place.file == "tokenizer_config.json";
    report.findings.push_back(
        {is_tokenizer ? "CONTEXT_UNBOUNDED" : "CFG_RANGE",
         is_tokenizer ? FindingLevel::kInfo : FindingLevel::kError, FindingKind::kMalformed,
         fmt::format("{}: {}", place.file, place.pointer),
         fmt::format("the length {} lies outside 1 to 2^40 tokens; it is skipped", dump(*place.value)),
         is_tokenizer ? std::string("nothing need be done; engines take the config's length")
                      : std::string(kCorrect)});
  }
  const auto stated = subject.is_gguf() ? std::nullopt : model::stated_length(subject.figures);
  if (!subject.is_gguf()) read_lengths(subject.figures, stated, context);
  if (report.spec) {
    if (report.spec->native_context_tokens > 0) context.native_tokens = report.spec->native_context_tokens;
    if (report.spec->extended_context_tokens > 0)
      context.extended_tokens = report.spec->extended_context_tokens;
  }
  const std::int64_t length = report.spec ? model::default_length(subject.artifact, *report.spec)
                              : stated    ? model::default_length(subject.figures, *stated)
                                          : 0;
  if (length > 0) context.max_model_len = length;
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
    if (*limit >= *context.max_model_len)
      add_check(report.findings, "GEN_LENGTH", FindingLevel::kInfo, "generation_config.json: /max_new_tokens",
                fmt::format("max_new_tokens {} leaves no input of the {} tokens; vLLM shortens the answer "
                            "instead",
                            *limit, *context.max_model_len),
                "send max_tokens with each request");
  } else {
    room.reserved_output_tokens = 1;  // no engine takes a prompt that leaves no room for one token
    room.reserved_by = "one token";
  }
  if (room.template_overhead_tokens)
    room.tokens = std::max<std::int64_t>(
        0, *context.max_model_len - room.reserved_output_tokens - *room.template_overhead_tokens);
  context.maximum_input = room;
  check_asked_length(subject, report);
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
