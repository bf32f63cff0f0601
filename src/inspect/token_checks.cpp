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
        generation_config_(subject.artifact.json_file("generation_config.json")) {}

  void run() {
    collect_stops();
    check_vocabulary_size();
    check_stops();
    Json special = Json::object();
    for (const char* name : {"bos", "eos", "pad", "unk"}) special.set(name, special_token(name));
    report_.tokenizer = Json::object({{"kind", vocabulary_.kind.empty() ? Json() : Json(vocabulary_.kind)},
                                      {"vocab_size", vocabulary_.is_known ? Json(vocabulary_.size) : Json()},
                                      {"special", std::move(special)},
                                      {"stop_ids", stops_json()},
                                      {"chat_template", check_templates(subject_, report_.findings)}});
  }

 private:
  Json shown(std::int64_t id) const {
    const auto text = vocabulary_.text_of(id);
    return Json::object({{"id", id}, {"text", text ? Json(*text) : Json()}});
  }

  Json special_token(const std::string& name) const {
    if (subject_.is_gguf()) {
      const std::string key = name == "pad" ? "padding" : name == "unk" ? "unknown" : name;
      const auto id = subject_.figures["tokenizer.ggml." + key + "_token_id"].as_integer();
      return id ? shown(*id) : Json();
    }
    if (const auto* text = token_text(tokenizer_config_[name + "_token"])) {
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
      return;
    }
    for (const auto id : ids_in(subject_.figures["eos_token_id"])) add_stop(id, subject_.config_file);
    for (const auto id : ids_in(generation_config_["eos_token_id"])) add_stop(id, "generation_config.json");
    if (const auto* text = token_text(tokenizer_config_["eos_token"]))
      if (const auto id = vocabulary_.id_of(*text)) add_stop(*id, "tokenizer_config.json");
    // A template that ends turns with a token of its own means generation to stop there too.
    for (const char* text : {"<|im_end|>", "<|eot_id|>", "<end_of_turn>", "<|end|>", "<|eom_id|>", "<turn|>"})
      if (const auto id = vocabulary_.id_of(text); id && template_mentions(subject_, text))
        add_stop(*id, "chat_template");
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

  void check_vocabulary_size() {
    if (!vocabulary_.is_known || !report_.spec) return;
    std::int64_t rows = report_.spec->vocab_size;
    if (const auto* embedding =
            subject_.artifact.find(subject_.is_gguf() ? "token_embd.weight" : "model.embed_tokens.weight");
        embedding && embedding->shape.size() == 2)
      rows = embedding->shape[0];
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
              vocabulary_.size, rows, rows - vocabulary_.size));
  }

  void check_stops() {
    if (subject_.is_gguf()) return;
    if (const auto* text = token_text(tokenizer_config_["eos_token"]);
        text && vocabulary_.is_known && !vocabulary_.id_of(*text))
      add_check(
          report_.findings, "TOK_EOS_UNKNOWN", FindingLevel::kWarning, "tokenizer_config.json: /eos_token",
          fmt::format("eos_token \"{}\" is not in the vocabulary: generation would never stop on it", *text),
          "name a token of the vocabulary");
    const Ids config = ids_in(subject_.figures["eos_token_id"]),
              generation = ids_in(generation_config_["eos_token_id"]);
    if (!config.empty() && !generation.empty() && config != generation)
      add_check(report_.findings, "EOS_CONFLICT", FindingLevel::kInfo,
                "generation_config.json: /eos_token_id",
                fmt::format("generation_config stops on {}, config on {}; generation_config wins",
                            fmt::join(generation, ", "), fmt::join(config, ", ")));
    if (!report_.spec) return;
    for (const auto& [id, sources] : stops_)
      if (id < 0 || id >= report_.spec->vocab_size)
        add_check(report_.findings, "EOS_RANGE", FindingLevel::kWarning, sources.front() + ": /eos_token_id",
                  fmt::format("stop id {} can never be produced: the vocabulary has {} ids", id,
                              report_.spec->vocab_size),
                  "correct the id");
  }

  const Subject& subject_;
  Report& report_;
  Vocabulary vocabulary_;
  const Json& tokenizer_config_;
  const Json& generation_config_;
  std::map<std::int64_t, std::vector<std::string>> stops_;
};

}  // namespace

void check_tokens(const Subject& subject, Report& report) {
  Tokens(subject, report).run();
}

}  // namespace plimsoll::inspect
