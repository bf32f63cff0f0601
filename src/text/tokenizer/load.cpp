// SPDX-License-Identifier: Apache-2.0
// From an artifact to its tokenizer and template text: which file counts, and which ids end a turn.
#include <algorithm>
#include <filesystem>

#include "base/json_view.h"
#include "base/mapped_file.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "text/tokenizer/ranked_tokenizer.h"
#include "text/tokenizer/sentencepiece_tokenizer.h"
#include "text/tokenizer/tekken.h"
#include "text/tokenizer/tiktoken_file.h"
#include "text/tokenizer/tokenizer_json.h"

namespace plimsoll::text {
namespace {

constexpr std::int64_t kMaxFileBytes = std::int64_t{256} << 20;

using artifact::Artifact;
using artifact::Form;

// "eos_token": "</s>" or {"content": "</s>", ...}
const std::string* token_name(const Json& json) {
  if (const std::string* name = json.as_string()) return name;
  return json["content"].as_string();
}

void add_stop(TokenizerParts& parts, std::int64_t id) {
  if (id < 0 || id > INT32_MAX) return;
  const auto token = static_cast<TokenId>(id);
  if (std::find(parts.stop_ids.begin(), parts.stop_ids.end(), token) == parts.stop_ids.end())
    parts.stop_ids.push_back(token);
}

// eos_token_id is one id or a list of them.
void add_stops(TokenizerParts& parts, const Json& json) {
  if (const auto id = json.as_integer()) add_stop(parts, *id);
  for (const Json& item : json.items())
    if (const auto id = item.as_integer()) add_stop(parts, *id);
}

std::optional<TokenId> named_token(const TokenizerParts& parts, const Json& json) {
  const std::string* name = token_name(json);
  if (!name) return std::nullopt;
  if (const AddedToken* token = parts.added.find(std::string_view(*name))) return token->id;
  return parts.vocabulary->find_text(*name);
}

// Names that close a turn in the known chat formats, whatever the configs say.
constexpr std::string_view kTurnEnds[] = {"<|im_end|>",     "<|eot_id|>",    "<|eom_id|>",
                                          "<|end|>",        "<end_of_turn>", "<|endofturn|>",
                                          "<|return|>",     "<|call|>",      "<|END_OF_TURN_TOKEN|>",
                                          "<|end_of_text|>"};

void read_special(const Artifact& artifact, TokenizerParts& parts) {
  const Json& tokenizer = artifact.json_file("tokenizer_config.json");
  const Json& map = artifact.json_file("special_tokens_map.json");
  const Json& config = artifact.config();
  const Json& generation = artifact.json_file("generation_config.json");
  const auto named = [&](const char* name) {
    auto id = named_token(parts, tokenizer[name]);
    return id ? id : named_token(parts, map[name]);
  };
  const auto numbered = [&](const char* name) -> std::optional<TokenId> {
    for (const Json* file : {&generation, &config}) {
      const Json& value = (*file)[name];
      const auto id =
          value.is_array() && value.size() > 0 ? value.items()[0].as_integer() : value.as_integer();
      if (id && *id >= 0 && *id <= INT32_MAX) return static_cast<TokenId>(*id);
    }
    return std::nullopt;
  };
  if (const auto bos = named("bos_token")) parts.bos = bos;
  if (!parts.bos && tokenizer.is_null()) parts.bos = numbered("bos_token_id");
  if (const auto eos = named("eos_token")) parts.eos = eos;
  if (!parts.eos) parts.eos = numbered("eos_token_id");
  if (parts.eos) add_stop(parts, *parts.eos);
  add_stops(parts, generation["eos_token_id"]);
  add_stops(parts, config["eos_token_id"]);
  add_stops(parts, config["text_config"]["eos_token_id"]);
}

// What a tokenizer.json's post-processor says, the config says for the other forms.
void read_ends(const Json& config, TokenizerParts& parts) {
  const auto apply = [](std::optional<bool> wanted, std::optional<TokenId> id, std::vector<TokenId>& ends) {
    if (wanted) ends.clear();
    if (wanted == true && id) ends.push_back(*id);
  };
  apply(config["add_bos_token"].as_bool(), parts.bos, parts.post_processor.before);
  apply(config["add_eos_token"].as_bool(), parts.eos, parts.post_processor.after);
}

void add_turn_ends(TokenizerParts& parts) {
  for (const std::string_view name : kTurnEnds)
    if (const AddedToken* token = parts.added.find(name); token && token->is_special)
      add_stop(parts, token->id);
}

// The file that says most comes first; a folder may hold several.
int preference(const std::string& path) {
  if (path == "tokenizer.json") return 0;
  if (path.starts_with("tekken") && path.ends_with(".json")) return 1;
  if (path.ends_with(".tiktoken")) return 2;
  if (path.ends_with(".model")) return 3;
  return -1;  // no tokenizer by itself: vocab.json, tokenizer_config.json, ...
}

Result<std::string> tokenizer_file(const Artifact& artifact) {
  if (!std::filesystem::is_directory(artifact.root())) return artifact.root();
  const artifact::File* best = nullptr;
  for (const artifact::File& file : artifact.files())
    if (preference(file.path) >= 0 && (!best || preference(file.path) < preference(best->path))) best = &file;
  if (best) {
    // Of a whole hub cache the files are those of a snapshot below its root.
    std::string path = artifact.path_of(*best);
    return path.empty() ? artifact.root() + "/" + best->path : std::move(path);
  }
  for (const artifact::File& file : artifact.files())
    if (file.path == "vocab.json" || file.path == "vocab.txt")
      return fail(ErrorCode::kUnsupported, "the tokenizer lies in " + file.path + " in its old form",
                  file.path, "convert it to a tokenizer.json, for instance by saving it with transformers");
  return fail(ErrorCode::kMalformed, "no tokenizer: the model has no tokenizer.json", artifact.root(),
              "put its tokenizer.json into the folder");
}

// What is inside decides, not the name: Llama 3's tokenizer.model is a list of ranks, not SentencePiece's.
Result<TokenizerParts> read_parts(const std::string& path) {
  PLIMSOLL_TRY(std::string text, read_file(path, kMaxFileBytes));
  if (looks_like_tiktoken(text)) {
    PLIMSOLL_TRY(const RankedVocabulary ranked, read_tiktoken(text, path));
    return ranked_parts(ranked);
  }
  if (looks_like_sentencepiece(text)) {
    PLIMSOLL_TRY(const SentencePieceFile file, read_sentencepiece(text, path));
    return sentencepiece_parts(file);
  }
  if (!path.ends_with(".json"))
    return fail(ErrorCode::kUnsupported, "tokenizer file " + path + " is of a kind that is not supported",
                path, "give a folder with a tokenizer.json");
  PLIMSOLL_TRY(const JsonDocument document, JsonDocument::parse(std::move(text), path));
  const JsonView root = document.root();
  if (!root["vocab"].is_array() || !root["config"].is_object()) return read_tokenizer_json(root);
  PLIMSOLL_TRY(const RankedVocabulary ranked, read_tekken(root.to_json()));
  return ranked_parts(ranked);
}

}  // namespace

bool has_tokenizer(const Artifact& artifact) {
  if (artifact.form() == Form::kGguf) return !artifact.config()["tokenizer.ggml.tokens"].is_null();
  return std::any_of(artifact.files().begin(), artifact.files().end(),
                     [](const artifact::File& file) { return preference(file.path) >= 0; });
}

Result<std::shared_ptr<const Tokenizer>> load_tokenizer(const Artifact& artifact) {
  if (artifact.form() == Form::kGguf) {
    PLIMSOLL_TRY(TokenizerParts parts, read_gguf_tokenizer(artifact.config()));
    add_turn_ends(parts);
    return make_tokenizer(std::move(parts));
  }
  PLIMSOLL_TRY(const std::string path, tokenizer_file(artifact));
  PLIMSOLL_TRY(TokenizerParts parts, read_parts(path));
  read_special(artifact, parts);
  if (!path.ends_with("tokenizer.json")) read_ends(artifact.json_file("tokenizer_config.json"), parts);
  add_turn_ends(parts);
  return make_tokenizer(std::move(parts));
}

std::optional<std::string> chat_template_source(const Artifact& artifact, std::string_view name) {
  auto stored = artifact::stored_chat_template(artifact, name);
  if (!stored) return std::nullopt;
  return std::move(stored->text);
}

}  // namespace plimsoll::text
