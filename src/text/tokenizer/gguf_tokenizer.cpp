// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/gguf_tokenizer.h"

#include <algorithm>

namespace plimsoll::text {
namespace {

constexpr const char* kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kO200k =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr const char* kDeepSeekCjk = R"([一-龥぀-ゟ゠-ヿ]+)";
constexpr const char* kDeepSeek3 =
    R"([!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+|[^\r\n\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

// How the pieces are cut: expressions, then digits, then GPT-2's own expression where it is wanted.
struct Rules {
  std::string_view name;
  const char* patterns[3] = {};
  bool digits_first = false;  // every digit alone, before GPT-2's expression
  bool is_falcon = false;     // punctuation, GPT-2, digit runs, groups of three
  bool nfc = false;
  bool ignore_merges = false;
  bool adds_bos = false;  // when the file does not say
};

// Source: the pre-tokenizer names of llama.cpp (gguf key tokenizer.ggml.pre) and the tokenizer.json files
// that its converter takes them from; normal forms as in the latter.
constexpr Rules kRules[] = {
    {.name = "gpt-2"},
    {.name = "gpt2"},
    {.name = "phi-2"},
    {.name = "mpt"},
    {.name = "olmo"},
    {.name = "jais"},
    {.name = "trillion"},
    {.name = "roberta-bpe"},
    {.name = "gigachat"},
    {.name = "smollm", .digits_first = true},
    {.name = "starcoder", .digits_first = true},
    {.name = "refact", .digits_first = true},
    {.name = "codeshell", .digits_first = true},
    {.name = "exaone", .digits_first = true},
    {.name = "minerva-7b", .digits_first = true},
    {.name = "command-r", .digits_first = true, .nfc = true},
    {.name = "default", .is_falcon = true},
    {.name = "falcon", .is_falcon = true},
    {.name = "llama-bpe", .patterns = {kLlama3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .patterns = {kLlama3}, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .patterns = {kLlama3}, .ignore_merges = true, .adds_bos = true},
    {.name = "falcon3", .patterns = {kLlama3}, .ignore_merges = true, .adds_bos = true},
    {.name = "dbrx", .patterns = {kLlama3}},
    {.name = "smaug-bpe", .patterns = {kLlama3}},
    {.name = "chatglm-bpe", .patterns = {kLlama3}},
    {.name = "glm4", .patterns = {kLlama3}},
    {.name = "qwen2", .patterns = {kQwen2}, .nfc = true},
    {.name = "deepseek-r1-qwen", .patterns = {kQwen2}},
    {.name = "stablelm2", .patterns = {kQwen2}},
    {.name = "megrez", .patterns = {kQwen2}},
    {.name = "hunyuan", .patterns = {kQwen2}},
    {.name = "qwen35", .patterns = {kQwen35}},
    {.name = "gpt-4o", .patterns = {kO200k}},
    {.name = "llama4", .patterns = {kO200k}},
    {.name = "tekken", .patterns = {kTekken}, .ignore_merges = true, .adds_bos = true},
    {.name = "deepseek-v3", .patterns = {R"(\p{N}{1,3})", kDeepSeekCjk, kDeepSeek3}},
};

std::string at(std::string_view key) {
  return "tokenizer.ggml." + std::string(key);
}

const Json& get(const Json& metadata, std::string_view key) {
  return metadata[at(key)];
}

Result<PreTokenizer> make_pre_tokenizer(const Rules& rules) {
  using Behavior = PreTokenizer::Behavior;
  PreTokenizer made;
  if (rules.is_falcon) {
    PLIMSOLL_TRY_VOID(made.add_punctuation(Behavior::kContiguous));
    PLIMSOLL_TRY_VOID(made.add_byte_level(false, true));
    PLIMSOLL_TRY_VOID(made.add_digits(false));
    PLIMSOLL_TRY_VOID(made.add_split("[0-9][0-9][0-9]"));
    return made;
  }
  for (const char* pattern : rules.patterns)
    if (pattern) PLIMSOLL_TRY_VOID(made.add_split(pattern));
  if (rules.digits_first) PLIMSOLL_TRY_VOID(made.add_digits(true));
  PLIMSOLL_TRY_VOID(made.add_byte_level(false, rules.patterns[0] == nullptr));
  return made;
}

Result<std::vector<AddedToken>> read_added(const Json& tokens, const Json& types) {
  constexpr std::int64_t kControl = 3, kUserDefined = 4;  // llama_token_type
  std::vector<AddedToken> added;
  for (std::size_t i = 0; i < tokens.size() && i < types.size(); ++i) {
    const auto type = types.items()[i].as_integer();
    if (type != kControl && type != kUserDefined) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(i);
    token.content = *tokens.items()[i].as_string();
    token.is_special = type == kControl;
    added.push_back(std::move(token));
  }
  return added;
}

Result<std::vector<BpeModel::Merge>> read_merges(const Json& json) {
  std::vector<BpeModel::Merge> merges;
  merges.reserve(json.size());
  for (const Json& item : json.items()) {
    const std::string* line = item.as_string();
    // Token characters are never blank, but a token may start with what looks like one: search from 1.
    const std::size_t space = line ? line->find(' ', 1) : std::string::npos;
    if (space == std::string::npos || space + 1 >= line->size())
      return fail(ErrorCode::kMalformed,
                  "merge number " + std::to_string(merges.size()) + " is no pair: " + dump(item),
                  at("merges"));
    merges.push_back({std::string_view(*line).substr(0, space), std::string_view(*line).substr(space + 1)});
  }
  return merges;
}

std::optional<TokenId> token_id(const Json& metadata, std::string_view key, std::int64_t size) {
  const auto id = get(metadata, key).as_integer();
  if (!id || *id < 0 || *id >= size) return std::nullopt;
  return static_cast<TokenId>(*id);
}

void read_special(const Json& metadata, const Rules& rules, TokenizerParts& parts) {
  const std::int64_t size = parts.vocabulary->size();
  parts.bos = token_id(metadata, "bos_token_id", size);
  parts.eos = token_id(metadata, "eos_token_id", size);
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    if (const auto id = token_id(metadata, key, size)) parts.stop_ids.push_back(*id);
  if (get(metadata, "add_bos_token").as_bool().value_or(rules.adds_bos) && parts.bos)
    parts.post_processor.before.push_back(*parts.bos);
  if (get(metadata, "add_eos_token").as_bool().value_or(false) && parts.eos)
    parts.post_processor.after.push_back(*parts.eos);
}

}  // namespace

Result<TokenizerParts> read_gguf_tokenizer(const Json& metadata) {
  const std::string* kind = get(metadata, "model").as_string();
  if (!kind)
    return fail(ErrorCode::kMalformed, "no tokenizer: the GGUF file names no tokenizer model", at("model"));
  if (*kind != "gpt2")
    return fail(ErrorCode::kUnsupported, "GGUF tokenizer kind " + *kind + " is not supported", at("model"));
  const std::string* named = get(metadata, "pre").as_string();
  const std::string pre = named ? *named : "default";
  const auto* rules =
      std::find_if(std::begin(kRules), std::end(kRules), [&](const Rules& r) { return r.name == pre; });
  if (rules == std::end(kRules))
    return fail(ErrorCode::kUnsupported, "GGUF pre-tokenizer " + pre + " is not supported", at("pre"));

  const Json& tokens = get(metadata, "tokens");
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(tokens.size());
  for (const Json& token : tokens.items()) {
    if (!token.as_string())
      return fail(ErrorCode::kMalformed, "token " + std::to_string(entries.size()) + " is no string",
                  at("tokens"));
    entries.push_back({*token.as_string(), static_cast<std::int64_t>(entries.size())});
  }
  if (entries.empty()) return fail(ErrorCode::kMalformed, "no tokenizer: there are no tokens", at("tokens"));

  TokenizerParts parts;
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(entries, Spelling::kByteCharacters));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  parts.decoder = Decoder::byte_level();
  if (rules->nfc) parts.normalizer.add_nfc();
  PLIMSOLL_TRY(parts.pre_tokenizer, make_pre_tokenizer(*rules));
  PLIMSOLL_TRY(std::vector<AddedToken> added, read_added(tokens, get(metadata, "token_type")));
  PLIMSOLL_TRY(parts.added, AddedTokens::build(std::move(added), parts.normalizer));
  PLIMSOLL_TRY(const auto merges, read_merges(get(metadata, "merges")));
  BpeModel::Options options;
  options.ignore_merges = rules->ignore_merges;
  PLIMSOLL_TRY(parts.model, BpeModel::build(*parts.vocabulary, merges, std::move(options)));
  read_special(metadata, *rules, parts);
  return parts;
}

}  // namespace plimsoll::text
