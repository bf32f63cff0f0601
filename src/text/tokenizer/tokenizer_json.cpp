// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer_json.h"

namespace plimsoll::text {
namespace {

constexpr int kMaxDepth = 20;

std::string at(std::string_view pointer) {
  return "tokenizer.json: " + std::string(pointer);
}

Result<std::vector<Vocabulary::Entry>> read_vocabulary(const Json& vocab) {
  if (!vocab.is_object())
    return fail(ErrorCode::kMalformed, "the model has no vocabulary object", at("/model/vocab"));
  std::vector<Vocabulary::Entry> entries;
  entries.reserve(vocab.size());
  for (const auto& [text, id] : vocab.members()) {
    const auto number = id.as_integer();
    if (!number)
      return fail(ErrorCode::kMalformed, "token \"" + text + "\" has no whole id: " + dump(id),
                  at("/model/vocab"));
    entries.push_back({text, *number});
  }
  return entries;
}

Result<std::vector<BpeModel::Merge>> read_merges(const Json& json) {
  std::vector<BpeModel::Merge> merges;
  merges.reserve(json.size());
  for (const Json& item : json.items()) {
    std::string_view left, right;
    if (const std::string* line = item.as_string()) {
      const std::size_t space = line->find(' ');
      if (space != std::string::npos && line->find(' ', space + 1) == std::string::npos) {
        left = std::string_view(*line).substr(0, space);
        right = std::string_view(*line).substr(space + 1);
      }
    } else if (item.size() == 2 && item.items()[0].as_string() && item.items()[1].as_string()) {
      left = *item.items()[0].as_string();
      right = *item.items()[1].as_string();
    }
    if (left.empty() || right.empty())
      return fail(ErrorCode::kMalformed,
                  "merge number " + std::to_string(merges.size()) + " is no pair of tokens: " + dump(item),
                  at("/model/merges"));
    merges.push_back({left, right});
  }
  return merges;
}

Result<std::vector<AddedToken>> read_added(const Json& json) {
  std::vector<AddedToken> tokens;
  for (const Json& item : json.items()) {
    const std::string* content = item["content"].as_string();
    const auto id = item["id"].as_integer();
    if (!content || !id || *id < 0 || *id > INT32_MAX)
      return fail(ErrorCode::kMalformed, "added token " + dump(item) + " lacks content or id",
                  at("/added_tokens/" + std::to_string(tokens.size())));
    AddedToken token;
    token.id = static_cast<TokenId>(*id);
    token.content = *content;
    token.is_special = item["special"].as_bool().value_or(false);
    token.is_normalized = item["normalized"].as_bool().value_or(!token.is_special);
    token.is_single_word = item["single_word"].as_bool().value_or(false);
    token.strips_left = item["lstrip"].as_bool().value_or(false);
    token.strips_right = item["rstrip"].as_bool().value_or(false);
    tokens.push_back(std::move(token));
  }
  return tokens;
}

// Only the decoder that turns byte characters into bytes, alone or in a list.
Status check_decoder(const Json& json, int depth) {
  if (json.is_null()) return {};
  const std::string* type = json["type"].as_string();
  if (!type || depth > kMaxDepth)
    return fail(ErrorCode::kMalformed, "the decoder has no type", at("/decoder"));
  if (*type == "ByteLevel") return {};
  if (*type == "Sequence") {
    for (const Json& part : json["decoders"].items()) PLIMSOLL_TRY_VOID(check_decoder(part, depth + 1));
    return {};
  }
  return fail(ErrorCode::kUnsupported, "decoder kind " + *type + " is not supported", at("/decoder"));
}

Status check_model(const Json& model) {
  const std::string* type = model["type"].as_string();
  if (!model.is_object()) return fail(ErrorCode::kMalformed, "there is no model", at("/model"));
  if (type ? *type != "BPE" : !model.contains("merges"))
    return fail(ErrorCode::kUnsupported,
                "tokenizer kind " + (type ? *type : "without type") + " is not supported", at("/model/type"));
  if (model["byte_fallback"].as_bool().value_or(false))
    return fail(ErrorCode::kUnsupported,
                "tokenizer kind BPE with byte fallback (SentencePiece) is not supported",
                at("/model/byte_fallback"));
  for (const char* affix : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const std::string* text = model[affix].as_string(); text && !text->empty())
      return fail(ErrorCode::kUnsupported,
                  std::string("tokenizer kind BPE with ") + affix + " is not supported",
                  at(std::string("/model/") + affix));
  return {};
}

}  // namespace

Result<TokenizerParts> read_tokenizer_json(const Json& json) {
  if (!json.is_object()) return fail(ErrorCode::kMalformed, "tokenizer.json holds no object", at("/"));
  const Json& model = json["model"];
  PLIMSOLL_TRY_VOID(check_model(model));
  PLIMSOLL_TRY_VOID(check_decoder(json["decoder"], 0));

  TokenizerParts parts;
  PLIMSOLL_TRY(parts.normalizer, Normalizer::from_json(json["normalizer"]));
  PLIMSOLL_TRY(parts.pre_tokenizer, PreTokenizer::from_json(json["pre_tokenizer"]));
  if (!parts.pre_tokenizer.is_byte_level())
    return fail(ErrorCode::kUnsupported, "tokenizer kind BPE without byte level is not supported",
                at("/pre_tokenizer"));
  PLIMSOLL_TRY(parts.post_processor, PostProcessor::from_json(json["post_processor"]));
  PLIMSOLL_TRY(std::vector<AddedToken> added, read_added(json["added_tokens"]));
  PLIMSOLL_TRY(parts.added, AddedTokens::build(std::move(added), parts.normalizer));

  PLIMSOLL_TRY(const auto entries, read_vocabulary(model["vocab"]));
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(entries, Spelling::kByteCharacters));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  PLIMSOLL_TRY(const auto merges, read_merges(model["merges"]));
  BpeModel::Options options;
  options.ignore_merges = model["ignore_merges"].as_bool().value_or(false);
  options.fuse_unknown = model["fuse_unk"].as_bool().value_or(false);
  if (const std::string* unknown = model["unk_token"].as_string())
    options.unknown_id = parts.vocabulary->find_text(*unknown);
  PLIMSOLL_TRY(parts.model, BpeModel::build(*parts.vocabulary, merges, std::move(options)));
  return parts;
}

}  // namespace plimsoll::text
