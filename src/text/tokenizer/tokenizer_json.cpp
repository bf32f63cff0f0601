// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/tokenizer_json.h"

#include <algorithm>

#include "base/json_view.h"
#include "text/tokenizer/unigram_model.h"
#include "text/tokenizer/word_level_model.h"
#include "text/tokenizer/wordpiece_model.h"

namespace plimsoll::text {
namespace {

std::string at(std::string_view pointer) {
  return "tokenizer.json: " + std::string(pointer);
}

// {"token": id, ...}
Result<std::vector<Vocabulary::Entry>> read_vocabulary(const JsonView& vocab) {
  if (!vocab.is_object())
    return fail(ErrorCode::kMalformed, "the model has no vocabulary object", at("/model/vocab"));
  std::vector<Vocabulary::Entry> entries;
  PLIMSOLL_TRY_VOID(vocab.for_each_member([&](std::string_view text, JsonView id) -> Status {
    const auto number = id.as_integer();
    if (!number)
      return fail(ErrorCode::kMalformed,
                  "token \"" + std::string(text) + "\" has no whole id: " + dump(id.to_json()),
                  at("/model/vocab"));
    entries.push_back({text, *number});
    return {};
  }));
  return entries;
}

// "a b" or ["a", "b"]; empty views for anything else.
BpeModel::Merge read_merge(const JsonView& item) {
  if (const auto line = item.as_string()) {
    const std::size_t space = line->find(' ');
    if (space == std::string_view::npos || line->find(' ', space + 1) != std::string_view::npos) return {};
    return {line->substr(0, space), line->substr(space + 1)};
  }
  std::string_view parts[2];
  std::size_t count = 0;
  const Status walked = item.for_each_item([&](JsonView part) -> Status {
    if (count < 2) parts[count] = part.as_string().value_or(std::string_view());
    ++count;
    return {};
  });
  return walked && count == 2 ? BpeModel::Merge{parts[0], parts[1]} : BpeModel::Merge{};
}

Result<std::vector<BpeModel::Merge>> read_merges(const JsonView& json) {
  std::vector<BpeModel::Merge> merges;
  PLIMSOLL_TRY_VOID(json.for_each_item([&](JsonView item) -> Status {
    merges.push_back(read_merge(item));
    if (!merges.back().left.empty() && !merges.back().right.empty()) return {};
    return fail(ErrorCode::kMalformed,
                "merge number " + std::to_string(merges.size() - 1) +
                    " is not a pair of tokens: " + dump(item.to_json()),
                at("/model/merges"));
  }));
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

// A token that the vocabulary has keeps the vocabulary's id, whatever the list says, as in the reference.
Status check_added(std::vector<AddedToken>& added, const Vocabulary& vocabulary) {
  const std::int64_t highest = vocabulary.size() + static_cast<std::int64_t>(added.size()) * 8 + 100'000;
  for (std::size_t i = 0; i < added.size(); ++i) {
    if (const auto id = vocabulary.find_text(added[i].content)) added[i].id = *id;
    if (added[i].id > highest)
      return fail(ErrorCode::kMalformed,
                  "token id " + std::to_string(added[i].id) + " is out of range for a vocabulary of " +
                      std::to_string(vocabulary.size()) + " ids",
                  at("/added_tokens/" + std::to_string(i)));
  }
  return {};
}

Status read_bpe(const JsonView& model, TokenizerParts& parts) {
  const bool is_byte_level = parts.pre_tokenizer.is_byte_level();
  PLIMSOLL_TRY(const auto entries, read_vocabulary(model["vocab"]));
  PLIMSOLL_TRY(Vocabulary vocabulary,
               Vocabulary::build(entries, is_byte_level ? Spelling::kByteCharacters : Spelling::kPlain));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  PLIMSOLL_TRY(const auto merges, read_merges(model["merges"]));
  BpeModel::Options options;
  options.ignore_merges = model["ignore_merges"].as_bool().value_or(false);
  options.byte_fallback = model["byte_fallback"].as_bool().value_or(false);
  options.fuse_unknown = model["fuse_unk"].as_bool().value_or(false);
  options.continuing_prefix = model["continuing_subword_prefix"].as_string().value_or("");
  options.end_suffix = model["end_of_word_suffix"].as_string().value_or("");
  if (is_byte_level && !(options.continuing_prefix.empty() && options.end_suffix.empty()))
    return fail(ErrorCode::kUnsupported, "tokenizer kind byte-level BPE with affixes is not supported",
                at("/model/continuing_subword_prefix"));
  if (const auto unknown = model["unk_token"].as_string())
    options.unknown_id = parts.vocabulary->find_text(*unknown);
  PLIMSOLL_TRY(parts.model, BpeModel::build(*parts.vocabulary, merges, std::move(options)));
  return {};
}

// [["token", score], ...], ids in order
Status read_unigram(const JsonView& model, TokenizerParts& parts) {
  std::vector<Vocabulary::Entry> entries;
  std::vector<double> scores;
  PLIMSOLL_TRY_VOID(model["vocab"].for_each_item([&](JsonView pair) -> Status {
    std::optional<std::string_view> text;
    std::optional<double> score;
    std::size_t count = 0;
    const Status walked = pair.for_each_item([&](JsonView part) -> Status {
      if (count == 0) text = part.as_string();
      if (count == 1) score = part.as_double();
      ++count;
      return {};
    });
    if (!walked || count != 2 || !text || !score)
      return fail(ErrorCode::kMalformed,
                  "token number " + std::to_string(entries.size()) +
                      " is not a text with a score: " + dump(pair.to_json()),
                  at("/model/vocab"));
    entries.push_back({*text, static_cast<std::int64_t>(entries.size())});
    scores.push_back(*score);
    return {};
  }));
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(entries, Spelling::kPlain));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  UnigramModel::Options options;
  if (const auto id = model["unk_id"].as_integer()) {
    if (*id < 0 || *id >= parts.vocabulary->size())
      return fail(ErrorCode::kMalformed,
                  "the unknown id " + std::to_string(*id) + " is not a token of the vocabulary",
                  at("/model/unk_id"));
    options.unknown_id = static_cast<TokenId>(*id);
  }
  options.byte_fallback = model["byte_fallback"].as_bool().value_or(false);
  PLIMSOLL_TRY(parts.model, UnigramModel::build(*parts.vocabulary, std::move(scores), options));
  return {};
}

Status read_word_piece(const JsonView& model, TokenizerParts& parts) {
  PLIMSOLL_TRY(const auto entries, read_vocabulary(model["vocab"]));
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(entries, Spelling::kPlain));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  WordPieceModel::Options options;
  options.unknown_id = parts.vocabulary->find_text(model["unk_token"].as_string().value_or("[UNK]"));
  options.continuing_prefix = model["continuing_subword_prefix"].as_string().value_or("##");
  options.max_characters = static_cast<std::size_t>(
      std::clamp<std::int64_t>(model["max_input_chars_per_word"].as_integer().value_or(100), 0, 1 << 20));
  parts.model = std::make_unique<WordPieceModel>(*parts.vocabulary, options);
  return {};
}

Status read_word_level(const JsonView& model, TokenizerParts& parts) {
  PLIMSOLL_TRY(const auto entries, read_vocabulary(model["vocab"]));
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(entries, Spelling::kPlain));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  const auto unknown = parts.vocabulary->find_text(model["unk_token"].as_string().value_or("<unk>"));
  parts.model = std::make_unique<WordLevelModel>(*parts.vocabulary, unknown);
  return {};
}

// Files of old do not name their kind: it shows in their members.
std::string kind_of(const JsonView& model) {
  if (const auto type = model["type"].as_string()) return std::string(*type);
  if (!model["merges"].is_null()) return "BPE";
  if (!model["unk_id"].is_null()) return "Unigram";
  if (!model["continuing_subword_prefix"].is_null()) return "WordPiece";
  return "without type";
}

Status read_model(const JsonView& model, TokenizerParts& parts) {
  if (!model.is_object()) return fail(ErrorCode::kMalformed, "there is no model", at("/model"));
  const std::string kind = kind_of(model);
  if (kind == "BPE") return read_bpe(model, parts);
  if (parts.pre_tokenizer.is_byte_level())
    return fail(ErrorCode::kUnsupported, "tokenizer kind " + kind + " behind byte level is not supported",
                at("/model/type"));
  if (kind == "Unigram") return read_unigram(model, parts);
  if (kind == "WordPiece") return read_word_piece(model, parts);
  if (kind == "WordLevel") return read_word_level(model, parts);
  return fail(ErrorCode::kUnsupported, "tokenizer kind " + kind + " is not supported", at("/model/type"));
}

}  // namespace

Result<TokenizerParts> read_tokenizer_json(std::string text) {
  PLIMSOLL_TRY(const JsonDocument document, JsonDocument::parse(std::move(text), "tokenizer.json"));
  return read_tokenizer_json(document.root());
}

Result<TokenizerParts> read_tokenizer_json(const JsonView& root) {
  if (!root.is_object()) return fail(ErrorCode::kMalformed, "tokenizer.json holds no object", at("/"));
  TokenizerParts parts;
  PLIMSOLL_TRY(parts.decoder, Decoder::from_json(root["decoder"].to_json()));
  PLIMSOLL_TRY(parts.normalizer, Normalizer::from_json(root["normalizer"].to_json()));
  PLIMSOLL_TRY(parts.pre_tokenizer, PreTokenizer::from_json(root["pre_tokenizer"].to_json()));
  PLIMSOLL_TRY(parts.post_processor, PostProcessor::from_json(root["post_processor"].to_json()));
  PLIMSOLL_TRY(std::vector<AddedToken> added, read_added(root["added_tokens"].to_json()));
  PLIMSOLL_TRY_VOID(read_model(root["model"], parts));
  PLIMSOLL_TRY_VOID(check_added(added, *parts.vocabulary));
  PLIMSOLL_TRY(parts.added, AddedTokens::build(std::move(added), parts.normalizer));
  return parts;
}

}  // namespace plimsoll::text
