// SPDX-License-Identifier: Apache-2.0
#include "inspect/token_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "inspect/templates.h"
#include "inspect/vocabulary.h"
#include "text/text.h"

namespace plimsoll::inspect {
namespace {

using Ids = std::set<std::int64_t>;

// One id or a list of ids.
Ids ids_in(const Json& value) {
  Ids ids;
  if (const auto id = value.as_integer()) ids.insert(*id);
  for (const Json& item : value.items())
    if (const auto id = item.as_integer()) ids.insert(*id);
  return ids;
}

// tokenizer_config states a token as text or as {"content": text, ...}.
const std::string* token_text(const Json& value) {
  return value.is_object() ? value["content"].as_string() : value.as_string();
}

class Tokens {
 public:
  Tokens(const Subject& subject, Report& report)
      : subject_(subject),
        report_(report),
        vocabulary_(read_vocabulary(subject, report.findings)),
        tokenizer_config_(subject.artifact.json_file("tokenizer_config.json")),
        special_map_(subject.artifact.json_file("special_tokens_map.json")),
        generation_config_(subject.artifact.json_file("generation_config.json")) {}

  void run() {
    collect_stops();
    check_vocabulary_size();
    check_stops();
    if (subject_.options.is_deep) check_loading();
    Json special = Json::object();
    for (const char* name : {"bos", "eos", "pad", "unk"}) special.set(name, special_token(name));
    report_.tokenizer =
        Json::object({{"kind", vocabulary_.kind.empty() ? Json() : Json(vocabulary_.kind)},
                      {"vocab_size", vocabulary_.is_known ? Json(vocabulary_.size) : Json()},
                      {"special", std::move(special)},
                      {"stop_ids", stops_json()},
                      {"chat_template", check_templates(subject_, report_, report_.findings)}});
  }

 private:
  Json shown(std::int64_t id) const {
    const auto text = vocabulary_.text_of(id);
    return Json::object({{"id", id}, {"text", text ? Json(*text) : Json()}});
  }

  // A special token as the tokenizer's files name it; tokenizer_config.json goes first.
  const std::string* special_text(const std::string& name) const {
    const std::string key = name + "_token";
    const auto* text = token_text(tokenizer_config_[key]);
    return text ? text : token_text(special_map_[key]);
  }
  std::string special_file(const std::string& name) const {
    return token_text(tokenizer_config_[name + "_token"]) ? "tokenizer_config.json"
                                                          : "special_tokens_map.json";
  }

  Json special_token(const std::string& name) const {
    if (subject_.is_gguf()) {
      const std::string key = name == "pad" ? "padding" : name == "unk" ? "unknown" : name;
      const auto id = subject_.figures["tokenizer.ggml." + key + "_token_id"].as_integer();
      return id ? shown(*id) : Json();
    }
    if (const auto* text = special_text(name)) {
      const auto id = vocabulary_.id_of(*text);
      return Json::object({{"id", id}, {"text", *text}});
    }
    for (const Json* config : {&generation_config_, &subject_.figures})
      if (const Ids ids = ids_in((*config)[name + "_token_id"]); !ids.empty()) return shown(*ids.begin());
    return {};
  }

  void add_stop(std::int64_t id, std::string source) {
    auto& sources = stops_[id];
    if (std::find(sources.begin(), sources.end(), source) == sources.end())
      sources.push_back(std::move(source));
  }

  void collect_stops() {
    if (subject_.is_gguf()) {
      for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
        if (const auto id = subject_.figures[std::string("tokenizer.ggml.") + key].as_integer())
          add_stop(*id, std::string("tokenizer.ggml.") + key);
      add_template_stop();
      return;
    }
    for (const Json* config : {&subject_.figures, &subject_.artifact.config()})
      for (const auto id : ids_in((*config)["eos_token_id"])) add_stop(id, subject_.config_file);
    for (const auto id : ids_in(generation_config_["eos_token_id"])) add_stop(id, "generation_config.json");
    if (const auto* text = special_text("eos"))
      if (const auto id = vocabulary_.id_of(*text)) add_stop(*id, special_file("eos"));
    add_template_stop();
  }

  // What the template writes behind an answer ends the turn. Engines do not look there: unless another source
  // names the token too, generation runs past it.
  void add_template_stop() {
    const auto rest = after_answer(subject_);
    const std::string_view text = rest ? vocabulary_.added_at_start(*rest) : std::string_view();
    const auto id = text.empty() ? std::nullopt : vocabulary_.id_of(text);
    if (!id) return;
    if (!stops_.contains(*id))
      add_check(
          report_.findings, "STOP_TEMPLATE", FindingLevel::kWarning, template_place(),
          fmt::format("the template ends an answer with \"{}\" (id {}), which no other source names as a "
                      "stop: engines stop on {} and generate past it",
                      text, *id, stops_.empty() ? "nothing" : fmt::format("{}", fmt::join(stop_ids(), ", "))),
          fmt::format("add {} to eos_token_id of generation_config.json, or send stop_token_ids", *id));
    add_stop(*id, "chat_template");
  }

  std::string template_place() const {
    const auto stored = artifact::stored_chat_template(subject_.artifact);
    if (!stored) return "chat_template";
    if (subject_.is_gguf()) return subject_.place(stored->file);
    return stored->file.ends_with(".json") ? stored->file + ": /chat_template" : stored->file;
  }

  std::vector<std::int64_t> stop_ids() const {
    std::vector<std::int64_t> ids;
    for (const auto& [id, sources] : stops_) ids.push_back(id);
    return ids;
  }

  Json stops_json() const {
    Json stops = Json::array();
    for (const auto& [id, sources] : stops_) {
      Json row = shown(id);
      Json list = Json::array();
      for (const std::string& source : sources) list.push_back(source);
      row.set("sources", std::move(list));
      stops.push_back(std::move(row));
    }
    return stops;
  }

  // Rows of the input embedding: as stored, else as the config says.
  std::optional<std::int64_t> embedding_rows() const {
    constexpr std::array<std::string_view, 10> kNames{"model.embed_tokens.weight",
                                                      "token_embd.weight",
                                                      "model.language_model.embed_tokens.weight",
                                                      "language_model.model.embed_tokens.weight",
                                                      "transformer.wte.weight",
                                                      "transformer.word_embeddings.weight",
                                                      "gpt_neox.embed_in.weight",
                                                      "model.tok_embeddings.weight",
                                                      "backbone.embeddings.weight",
                                                      "embed_tokens.weight"};
    for (const std::string_view name : kNames)
      if (const auto* embedding = subject_.artifact.find(name); embedding && embedding->shape.size() == 2)
        return embedding->shape[0];
    if (report_.spec) return report_.spec->vocab_size;
    return subject_.figures["vocab_size"].as_integer();
  }

  void check_vocabulary_size() {
    if (!vocabulary_.is_known) return;
    const auto known_rows = embedding_rows();
    if (!known_rows || *known_rows < 1) return;
    const std::int64_t rows = *known_rows;
    if (vocabulary_.size == rows) return;
    const std::string where =
        subject_.is_gguf() ? subject_.place("tokenizer.ggml.tokens") : "tokenizer.json: /model/vocab";
    if (vocabulary_.size > rows || subject_.is_gguf())
      add_check(report_.findings, "VOCAB_MISMATCH", FindingLevel::kError, where,
                fmt::format("the tokenizer has {} ids, the embedding {} rows", vocabulary_.size, rows),
                "use the tokenizer of these weights");
    else
      add_check(
          report_.findings, "VOCAB_PADDED", FindingLevel::kInfo, where,
          fmt::format(
              "the tokenizer has {} ids, the embedding {} rows: {} rows are unused; sampling must never "
              "choose them",
              vocabulary_.size, rows, rows - vocabulary_.size),
          "nothing need be done where the sampler masks ids without a token");
  }

  // transformers adds these to the vocabulary of tokenizer.json.
  bool is_added_by_config(const std::string& text) const {
    const auto& added = tokenizer_config_["added_tokens_decoder"].members();
    return std::any_of(added.begin(), added.end(), [&](const auto& entry) {
      const std::string* content = entry.second["content"].as_string();
      return content && *content == text;
    });
  }

  void check_special_texts() {
    if (!vocabulary_.is_known) return;
    for (const std::string name : {"eos", "bos", "pad"}) {
      const auto* text = special_text(name);
      if (!text || text->empty() || vocabulary_.id_of(*text) || is_added_by_config(*text)) continue;
      const bool is_eos = name == "eos";
      add_check(report_.findings, is_eos ? "TOK_EOS_UNKNOWN" : "TOK_SPECIAL_UNKNOWN",
                name == "pad" ? FindingLevel::kInfo : FindingLevel::kWarning,
                fmt::format("{}: /{}_token", special_file(name), name),
                fmt::format("{}_token \"{}\" is not in the vocabulary{}", name, *text,
                            is_eos ? ": generation would never stop on it" : ""),
                "name a token of the vocabulary");
    }
  }

  // Whether the config's class has an end of its own no file tells: only one that is switched off, or a
  // tokenizer that names none, is a fault.
  void check_any_stop() {
    const Json& config = subject_.artifact.config();
    const bool is_off = config.contains("eos_token_id") && config["eos_token_id"].is_null();
    const bool writes_text = report_.architecture && (report_.architecture->ends_with("ForCausalLM") ||
                                                      report_.architecture->ends_with("LMHeadModel"));
    if (stops_.empty() && writes_text && is_off)
      add_check(report_.findings, "STOP_NONE", FindingLevel::kWarning, subject_.place("eos_token_id"),
                "no file names a token that ends an answer: generation runs until the length's limit",
                "name eos_token_id in generation_config.json, or send stop_token_ids");
  }

  void check_stops() {
    if (!subject_.is_gguf()) {
      check_any_stop();
      check_special_texts();
      check_stop_sources();
    }
    const auto rows = embedding_rows();
    if (!rows || *rows < 1) return;
    for (const auto& [id, sources] : stops_)
      if (id < 0 || id >= *rows)
        add_check(report_.findings, "EOS_RANGE", FindingLevel::kWarning,
                  sources.front() == "chat_template" ? template_place()
                  : subject_.is_gguf()               ? subject_.place(sources.front())
                                                     : sources.front() + ": /eos_token_id",
                  fmt::format("stop id {} can never be produced: the vocabulary has {} ids", id, *rows),
                  "correct the id");
  }

  // What no check above found wrong may still be refused by whoever encodes with it.
  void check_loading() {
    const bool is_told =
        std::any_of(report_.findings.begin(), report_.findings.end(), [](const Finding& finding) {
          return finding.level == FindingLevel::kError &&
                 (finding.id.starts_with("TOK_") || finding.id.starts_with("GGUF_"));
        });
    // llama.cpp takes merges of any text; a GGUF's are no reason to call it broken.
    const bool is_here = !subject_.is_gguf() && subject_.artifact.has_tensor_bytes();
    if (is_told || !is_here || !text::has_tokenizer(subject_.artifact)) return;
    const auto loaded = text::load_tokenizer(subject_.artifact);
    if (loaded) return;
    const Error& error = loaded.error();
    const bool is_unsupported = error.code == ErrorCode::kUnsupported;
    report_.findings.push_back(
        {"TOK_LOAD", is_unsupported ? FindingLevel::kWarning : FindingLevel::kError,
         is_unsupported ? FindingKind::kUnsupported : FindingKind::kMalformed, below_root(error.where),
         fmt::format("the tokenizer cannot be loaded{}: {}", is_unsupported ? " here" : "", error.message),
         error.fix.empty() ? "download the tokenizer again" : error.fix});
  }

  std::string below_root(std::string where) const {
    const std::string start = subject_.artifact.root() + "/";
    if (where.starts_with(start)) where.erase(0, start.size());
    return where.empty() ? "tokenizer.json" : where;
  }

  // Where generation_config names other ends than config and tokenizer. vLLM adds the tokenizer's end to
  // generation_config's; transformers takes generation_config's alone.
  void check_stop_sources() {
    const Ids config = ids_in(subject_.figures["eos_token_id"]),
              generation = ids_in(generation_config_["eos_token_id"]);
    if (generation.empty()) return;
    Ids others = config;
    const auto* text = special_text("eos");
    const auto tokenizer = text ? vocabulary_.id_of(*text) : std::nullopt;
    if (tokenizer) others.insert(*tokenizer);
    const bool is_left_out =
        !std::includes(generation.begin(), generation.end(), others.begin(), others.end());
    if (!is_left_out && (config.empty() || config == generation)) return;
    std::string others_text = config.empty() ? "" : fmt::format("config on {}", fmt::join(config, ", "));
    if (tokenizer && !config.contains(*tokenizer))
      others_text += fmt::format("{}the tokenizer on {}", others_text.empty() ? "" : ", ", *tokenizer);
    add_check(
        report_.findings, "EOS_CONFLICT", is_left_out ? FindingLevel::kWarning : FindingLevel::kInfo,
        "generation_config.json: /eos_token_id",
        fmt::format("generation_config stops on {}, {}; {}", fmt::join(generation, ", "), others_text,
                    is_left_out ? "engines that take generation_config alone run past the others, those "
                                  "that add the sources up stop on all"
                                : "generation_config wins"),
        is_left_out ? "name every end of a turn in generation_config.json"
                    : "nothing need be done; naming the same ends in both files is clearer");
  }

  const Subject& subject_;
  Report& report_;
  Vocabulary vocabulary_;
  const Json& tokenizer_config_;
  const Json& special_map_;
  const Json& generation_config_;
  std::map<std::int64_t, std::vector<std::string>> stops_;
};

}  // namespace

void check_tokens(const Subject& subject, Report& report) {
  Tokens(subject, report).run();
}

}  // namespace plimsoll::inspect
