// SPDX-License-Identifier: Apache-2.0
#include "inspect/vocabulary.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

namespace plimsoll::inspect {
namespace {

constexpr const char* kFile = "tokenizer.json";

void malformed(Findings& findings, std::string id, std::string where, std::string message) {
  findings.push_back({std::move(id), FindingLevel::kError, FindingKind::kMalformed, std::move(where),
                      std::move(message), "download the tokenizer again"});
}

// No token has another id; one that claims it is left out.
bool is_id(std::int64_t number) {
  return number >= 0 && number < INT32_MAX;
}

class Reader {
 public:
  Reader(const Subject& subject, Findings& findings) : subject_(subject), findings_(findings) {}

  Vocabulary read() {
    if (subject_.is_gguf())
      read_gguf();
    else
      read_folder();
    return std::move(vocabulary_);
  }

 private:
  void add(std::string_view text, std::int64_t id) {
    vocabulary_.ids.insert_or_assign(text, id);
    vocabulary_.size = std::max(vocabulary_.size, id + 1);
    const auto [known, is_new] = vocabulary_.texts.emplace(id, text);
    if (!is_new && known->second != text && !has_doubled_) {
      has_doubled_ = true;
      malformed(findings_, "TOK_DUP_ID", fmt::format("{}: /model/vocab", kFile),
                fmt::format("id {} stands for both \"{}\" and \"{}\"", id, known->second, text));
    }
  }

  void read_gguf() {
    const Json& tokens = subject_.figures["tokenizer.ggml.tokens"];
    if (!tokens.is_array()) return tell_no_tokens();
    // Kinds of tokens as GGUF numbers them.
    constexpr std::int64_t kControl = 3, kUserDefined = 4;
    const auto& kinds = subject_.figures["tokenizer.ggml.token_type"].items();
    vocabulary_.ids.reserve(tokens.size());
    vocabulary_.texts.reserve(tokens.size());
    std::int64_t id = 0;
    for (const Json& token : tokens.items()) {
      const std::string* text = token.as_string();
      if (text) {
        vocabulary_.ids.emplace(*text, id);
        vocabulary_.texts.emplace(id, *text);
        const auto index = static_cast<std::size_t>(id);
        const auto kind = index < kinds.size() ? kinds[index].as_integer() : std::nullopt;
        if (kind == kControl || kind == kUserDefined) vocabulary_.added.push_back(*text);
      }
      ++id;
    }
    vocabulary_.size = id;
    vocabulary_.is_known = true;
    if (const auto* kind = subject_.figures["tokenizer.ggml.model"].as_string()) vocabulary_.kind = *kind;
  }

  // Projectors and adapters have none; of a file that cannot be read, or a list passed over, nothing is
  // known.
  void tell_no_tokens() {
    const auto& figures = subject_.figures;
    const auto is_read = [](const Finding& finding) {
      return finding.level != FindingLevel::kError && finding.id != "GGUF_VALUE_LONG";
    };
    const std::string* type = figures["general.type"].as_string();
    const std::string* architecture = figures["general.architecture"].as_string();
    const std::string* kind = figures["tokenizer.ggml.model"].as_string();
    const bool needs_none = !architecture || *architecture == "clip" || (type && *type != "model") ||
                            (kind && (*kind == "none" || *kind == "no_vocab"));
    const Findings& of_file = subject_.artifact.findings();
    if (needs_none || !std::all_of(of_file.begin(), of_file.end(), is_read)) return;
    add_check(findings_, "TOK_MISSING", FindingLevel::kError, subject_.place("tokenizer.ggml.tokens"),
              "there is no tokenizer: llama.cpp refuses the file, other engines can serve token ids, no text",
              "convert the model again with its tokenizer files beside it");
  }

  void read_folder() {
    const auto& files = subject_.artifact.files();
    const bool has_json = subject_.has_file(kFile);
    const bool has_any = std::any_of(files.begin(), files.end(), [](const auto& file) {
      return file.role == artifact::FileRole::kTokenizer && file.path != "tokenizer_config.json" &&
             file.path != "special_tokens_map.json" && file.path != "added_tokens.json";
    });
    if (!has_any) {
      if (subject_.artifact.form() == artifact::Form::kSafetensors)
        add_check(findings_, "TOK_MISSING", FindingLevel::kError, kFile,
                  "there is no tokenizer: the weights can be served token ids, no text",
                  "download the tokenizer files");
      return;
    }
    if (!has_json) return;
    const Json& json = subject_.artifact.json_file(kFile);
    if (!json.is_object()) {
      const auto error = subject_.artifact.json_file_error(kFile);
      malformed(findings_, "TOK_JSON", error && !error->where.empty() ? error->where : std::string(kFile),
                "tokenizer.json is not a JSON object" + (error ? ": " + error->message : std::string()));
      return;
    }
    const Json& model = json["model"];
    if (!model.is_object()) {
      malformed(findings_, "TOK_JSON", fmt::format("{}: /model", kFile),
                "tokenizer.json has no model: no library reads it");
      return;
    }
    if (const auto* type = model["type"].as_string())
      vocabulary_.kind = *type;
    else if (!model["merges"].is_null())
      vocabulary_.kind = "BPE";
    check_kind();
    read_model(model["vocab"]);
    check_merges(model);
    for (const Json& token : json["added_tokens"].items()) {
      const auto id = token["id"].as_integer();
      if (const auto* text = token["content"].as_string(); text && id && is_id(*id)) {
        add(*text, *id);
        vocabulary_.added.push_back(*text);
      }
    }
    vocabulary_.is_known = vocabulary_.size > 0;
    if (!vocabulary_.is_known)
      malformed(findings_, "TOK_JSON", fmt::format("{}: /model/vocab", kFile),
                "tokenizer.json has no vocabulary: nothing in it stands for an id");
  }

  void check_kind() {
    constexpr std::array<std::string_view, 4> kKinds{"BPE", "Unigram", "WordPiece", "WordLevel"};
    if (vocabulary_.kind.empty() || std::find(kKinds.begin(), kKinds.end(), vocabulary_.kind) != kKinds.end())
      return;
    findings_.push_back({"TOK_KIND", FindingLevel::kError, FindingKind::kUnsupported,
                         fmt::format("{}: /model/type", kFile),
                         fmt::format("the tokenizer is of the kind \"{}\"; {} are known", vocabulary_.kind,
                                     fmt::join(kKinds, ", ")),
                         "convert the tokenizer to a known kind"});
  }

  // BPE and WordPiece map text to id; Unigram lists [text, score] in the order of the ids.
  void read_model(const Json& vocab) {
    vocabulary_.ids.reserve(vocab.size());
    vocabulary_.texts.reserve(vocab.size());
    for (const auto& [text, id] : vocab.members())
      if (const auto number = id.as_integer(); number && is_id(*number))
        add(text, *number);
      else
        tell_no_id(text, id);
    std::int64_t id = 0;
    for (const Json& piece : vocab.items()) {
      if (piece.size() == 2)
        if (const auto* text = piece.items()[0].as_string()) add(*text, id);
      ++id;
    }
  }

  void tell_no_id(std::string_view text, const Json& id) {
    if (std::exchange(has_no_id_, true)) return;
    malformed(findings_, "TOK_ID", fmt::format("{}: /model/vocab", kFile),
              fmt::format("token \"{}\" has {} for an id, not a whole number from 0 up", text.substr(0, 60),
                          dump(id).substr(0, 60)));
  }

  // Merges are "a b" or ["a", "b"]; both sides must be tokens, and so must what they make.
  void check_merges(const Json& model) {
    const Json& merges = model["merges"];
    const std::string* prefix = model["continuing_subword_prefix"].as_string();
    std::string whole;
    for (std::size_t number = 0; number < merges.items().size(); ++number) {
      const Json& merge = merges.items()[number];
      std::string_view left, right;
      if (const auto* text = merge.as_string()) {
        const std::size_t space = text->find(' ');
        if (space == std::string::npos) continue;  // a merge of nothing: libraries skip it
        left = std::string_view(*text).substr(0, space);
        right = std::string_view(*text).substr(space + 1);
      } else if (merge.size() == 2 && merge.items()[0].is_string() && merge.items()[1].is_string()) {
        left = *merge.items()[0].as_string();
        right = *merge.items()[1].as_string();
      } else {
        malformed(findings_, "TOK_MERGE", fmt::format("{}: /model/merges/{}", kFile, number),
                  fmt::format("merge number {} is neither \"a b\" nor a pair of texts", number));
        return;
      }
      if (!vocabulary_.ids.contains(left) || !vocabulary_.ids.contains(right)) {
        malformed(findings_, "TOK_MERGE", fmt::format("{}: /model/merges/{}", kFile, number),
                  fmt::format("merge number {} \"{} {}\" names a token that is not in the vocabulary", number,
                              left, right));
        return;
      }
      whole = left;
      whole += right.substr(prefix ? std::min(prefix->size(), right.size()) : 0);
      if (!vocabulary_.ids.contains(whole)) {
        malformed(findings_, "TOK_MERGE", fmt::format("{}: /model/merges/{}", kFile, number),
                  fmt::format("merge number {} \"{} {}\" makes \"{}\", which is not in the vocabulary",
                              number, left, right, whole));
        return;
      }
    }
  }

  const Subject& subject_;
  Findings& findings_;
  Vocabulary vocabulary_;
  bool has_doubled_ = false, has_no_id_ = false;
};

}  // namespace

std::optional<std::int64_t> Vocabulary::id_of(std::string_view text) const {
  const auto found = ids.find(text);
  return found == ids.end() ? std::nullopt : std::optional(found->second);
}

std::optional<std::string_view> Vocabulary::text_of(std::int64_t id) const {
  const auto found = texts.find(id);
  return found == texts.end() ? std::nullopt : std::optional(found->second);
}

std::string_view Vocabulary::added_at_start(std::string_view text) const {
  text.remove_prefix(std::min(text.find_first_not_of(" \t\r\n"), text.size()));
  std::string_view longest;
  for (const std::string_view token : added)
    if (token.size() > longest.size() && text.starts_with(token)) longest = token;
  return longest;
}

Vocabulary read_vocabulary(const Subject& subject, Findings& findings) {
  return Reader(subject, findings).read();
}

}  // namespace plimsoll::inspect
