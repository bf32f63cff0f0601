// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/gguf_tokenizer.h"

#include <algorithm>
#include <cmath>

#include "text/tokenizer/gguf_pre_tokenizer.h"
#include "text/tokenizer/unigram_model.h"
#include "text/tokenizer/vocabulary_trie.h"
#include "text/tokenizer/word_mark.h"
#include "text/tokenizer/wordpiece_model.h"

namespace plimsoll::text {
namespace {

std::string at(std::string_view key) {
  return "tokenizer.ggml." + std::string(key);
}

const Json& get(const Json& metadata, std::string_view key) {
  return metadata[at(key)];
}

Result<std::vector<AddedToken>> read_added(const Json& tokens, const Json& types) {
  constexpr std::int64_t kUnknown = 2, kControl = 3, kUserDefined = 4;  // llama_token_type
  std::vector<AddedToken> added;
  for (std::size_t i = 0; i < tokens.size() && i < types.size(); ++i) {
    const auto type = types.items()[i].as_integer();
    if (type != kControl && type != kUserDefined && type != kUnknown) continue;
    AddedToken token;
    token.id = static_cast<TokenId>(i);
    token.content = *tokens.items()[i].as_string();
    token.is_special = type != kUserDefined;
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
                  "merge number " + std::to_string(merges.size()) + " is not a pair: " + dump(item),
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

// Tokens around every text: BOS before and EOS behind it, BERT's CLS and SEP.
void read_special(const Json& metadata, bool adds_bos, bool adds_eos, TokenizerParts& parts) {
  const std::int64_t size = parts.vocabulary->size();
  parts.bos = token_id(metadata, "bos_token_id", size);
  parts.eos = token_id(metadata, "eos_token_id", size);
  for (const char* key : {"eos_token_id", "eot_token_id", "eom_token_id"})
    if (const auto id = token_id(metadata, key, size)) parts.stop_ids.push_back(*id);
  const auto before = parts.bos ? parts.bos : token_id(metadata, "cls_token_id", size);
  const auto behind = parts.eos ? parts.eos : token_id(metadata, "seperator_token_id", size);
  if (get(metadata, "add_bos_token").as_bool().value_or(adds_bos) && before)
    parts.post_processor.before.push_back(*before);
  if (get(metadata, "add_eos_token").as_bool().value_or(adds_eos) && behind)
    parts.post_processor.after.push_back(*behind);
}

Result<std::vector<std::string>> read_tokens(const Json& metadata) {
  std::vector<std::string> tokens;
  for (const Json& token : get(metadata, "tokens").items()) {
    if (!token.as_string())
      return fail(ErrorCode::kMalformed, "token " + std::to_string(tokens.size()) + " is not a string",
                  at("tokens"));
    tokens.push_back(*token.as_string());
  }
  if (tokens.empty()) return fail(ErrorCode::kMalformed, "no tokenizer: there are no tokens", at("tokens"));
  return tokens;
}

Result<std::vector<double>> read_scores(const Json& metadata, std::size_t count) {
  std::vector<double> scores;
  for (const Json& score : get(metadata, "scores").items()) {
    scores.push_back(score.as_double().value_or(0));
    if (std::isnan(scores.back()))
      return fail(ErrorCode::kMalformed,
                  "the score of token " + std::to_string(scores.size() - 1) + " is not a number",
                  at("scores"));
  }
  if (scores.size() != count)
    return fail(ErrorCode::kMalformed,
                std::to_string(scores.size()) + " scores for " + std::to_string(count) + " tokens",
                at("scores"));
  return scores;
}

Status set_vocabulary(const std::vector<std::string>& tokens, Spelling spelling, TokenizerParts& parts) {
  std::vector<Vocabulary::Entry> entries;
  for (const std::string& token : tokens)
    entries.push_back({token, static_cast<std::int64_t>(entries.size())});
  PLIMSOLL_TRY(Vocabulary vocabulary, Vocabulary::build(entries, spelling));
  parts.vocabulary = std::make_unique<const Vocabulary>(std::move(vocabulary));
  return {};
}

Status set_added(const Json& metadata, TokenizerParts& parts) {
  PLIMSOLL_TRY(std::vector<AddedToken> added,
               read_added(get(metadata, "tokens"), get(metadata, "token_type")));
  PLIMSOLL_TRY(parts.added, AddedTokens::build(std::move(added), parts.normalizer));
  return {};
}

Status read_byte_level(const Json& metadata, TokenizerParts& parts) {
  const std::string* named = get(metadata, "pre").as_string();
  PLIMSOLL_TRY(GgufRules rules, gguf_rules(named ? *named : "default"));
  PLIMSOLL_TRY(const auto tokens, read_tokens(metadata));
  PLIMSOLL_TRY_VOID(set_vocabulary(tokens, Spelling::kByteCharacters, parts));
  parts.decoder = Decoder::byte_level();
  if (rules.nfc) parts.normalizer.add_nfc();
  parts.pre_tokenizer = std::move(rules.pre_tokenizer);
  PLIMSOLL_TRY_VOID(set_added(metadata, parts));
  PLIMSOLL_TRY(const auto merges, read_merges(get(metadata, "merges")));
  BpeModel::Options options;
  options.ignore_merges = rules.ignore_merges;
  PLIMSOLL_TRY(parts.model, BpeModel::build(*parts.vocabulary, merges, std::move(options)));
  read_special(metadata, rules.adds_bos, false, parts);
  return {};
}

// SentencePiece's BPE has scores instead of merges: every way to cut a token in two is one, the token with
// the highest score first. Longer tokens than any published one are not cut: that takes the square of their
// length. Source: transformers' converter.
std::vector<BpeModel::Merge> merges_of(const std::vector<std::string>& tokens,
                                       const std::vector<double>& scores, const Vocabulary& vocabulary) {
  struct Candidate {
    BpeModel::Merge merge;
    double score;
    TokenId left, right;
  };
  std::vector<Candidate> found;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view token = tokens[id];
    if (token.size() > kLongestToken) continue;
    const std::size_t first = found.size();
    for (std::size_t cut = 1; cut < token.size(); ++cut) {
      if ((static_cast<unsigned char>(token[cut]) & 0xC0u) == 0x80u) continue;
      const auto left = vocabulary.find_bytes(token.substr(0, cut));
      const auto right = left ? vocabulary.find_bytes(token.substr(cut)) : std::nullopt;
      if (right) found.push_back({{token.substr(0, cut), token.substr(cut)}, scores[id], *left, *right});
    }
    std::sort(
        found.begin() + static_cast<std::ptrdiff_t>(first), found.end(),
        [](const auto& a, const auto& b) { return std::pair(a.left, a.right) < std::pair(b.left, b.right); });
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.score > b.score; });
  std::vector<BpeModel::Merge> merges;
  for (const Candidate& each : found) merges.push_back(each.merge);
  return merges;
}

// Llama's (scores) and Gemma 4's (merges) way: blanks are marks, what has no token becomes its bytes.
Status read_marked_bpe(const Json& metadata, bool has_merges, TokenizerParts& parts) {
  PLIMSOLL_TRY(const auto tokens, read_tokens(metadata));
  PLIMSOLL_TRY_VOID(set_vocabulary(tokens, Spelling::kPlain, parts));
  const bool adds_prefix = get(metadata, "add_space_prefix").as_bool().value_or(!has_merges);
  if (adds_prefix) parts.normalizer.add_prepend(std::string(kWordMark));
  parts.normalizer.add_replace(Regex::literal(" "), std::string(kWordMark));
  parts.decoder = Decoder::marked(std::string(kWordMark), adds_prefix);
  PLIMSOLL_TRY_VOID(set_added(metadata, parts));
  std::vector<BpeModel::Merge> merges;
  if (has_merges) {
    PLIMSOLL_TRY(merges, read_merges(get(metadata, "merges")));
  } else {
    PLIMSOLL_TRY(const auto scores, read_scores(metadata, tokens.size()));
    merges = merges_of(tokens, scores, *parts.vocabulary);
  }
  BpeModel::Options options;
  options.byte_fallback = true;
  options.fuse_unknown = true;
  options.unknown_id = token_id(metadata, "unknown_token_id", parts.vocabulary->size());
  PLIMSOLL_TRY(parts.model, BpeModel::build(*parts.vocabulary, merges, std::move(options)));
  read_special(metadata, true, false, parts);
  return {};
}

// T5's way: charsmap, runs of blanks as one, a mark before every word.
Status read_unigram(const Json& metadata, TokenizerParts& parts) {
  PLIMSOLL_TRY(const auto tokens, read_tokens(metadata));
  PLIMSOLL_TRY_VOID(set_vocabulary(tokens, Spelling::kPlain, parts));
  std::string blob;
  for (const Json& byte : get(metadata, "precompiled_charsmap").items())
    blob += static_cast<char>(byte.as_integer().value_or(0) & 0xFF);
  PLIMSOLL_TRY_VOID(parts.normalizer.add_charsmap(blob));
  if (get(metadata, "remove_extra_whitespaces").as_bool().value_or(false)) {
    parts.normalizer.add_strip(false, true);
    PLIMSOLL_TRY(Regex runs, Regex::compile(" {2,}"));
    parts.normalizer.add_replace(std::move(runs), std::string(kWordMark));
  }
  const bool adds_prefix = get(metadata, "add_space_prefix").as_bool().value_or(true);
  using Prefix = PreTokenizer::Prefix;
  parts.pre_tokenizer.add_metaspace(std::string(kWordMark), adds_prefix ? Prefix::kAlways : Prefix::kNever,
                                    true);
  parts.decoder = Decoder::metaspace(std::string(kWordMark), adds_prefix);
  PLIMSOLL_TRY_VOID(set_added(metadata, parts));
  PLIMSOLL_TRY(auto scores, read_scores(metadata, tokens.size()));
  UnigramModel::Options options;
  options.unknown_id = token_id(metadata, "unknown_token_id", parts.vocabulary->size());
  PLIMSOLL_TRY(parts.model, UnigramModel::build(*parts.vocabulary, std::move(scores), options));
  read_special(metadata, false, true, parts);
  return {};
}

// BERT's way. The file marks the tokens that begin a word instead of those that continue one.
Status read_word_piece(const Json& metadata, TokenizerParts& parts) {
  PLIMSOLL_TRY(std::vector<std::string> tokens, read_tokens(metadata));
  for (std::string& token : tokens) {
    const bool is_special = token.size() > 2 && token.front() == '[' && token.back() == ']';
    if (token.starts_with(kWordMark))
      token.erase(0, kWordMark.size());
    else if (!is_special)
      token.insert(0, "##");
  }
  PLIMSOLL_TRY_VOID(set_vocabulary(tokens, Spelling::kPlain, parts));
  parts.normalizer.add_bert({});
  parts.pre_tokenizer.add_bert();
  parts.decoder = Decoder::word_piece("##", true);
  PLIMSOLL_TRY_VOID(set_added(metadata, parts));
  WordPieceModel::Options options;
  options.unknown_id = token_id(metadata, "unknown_token_id", parts.vocabulary->size());
  parts.model = std::make_unique<WordPieceModel>(*parts.vocabulary, options);
  read_special(metadata, true, true, parts);
  return {};
}

}  // namespace

Result<TokenizerParts> read_gguf_tokenizer(const Json& metadata) {
  const std::string* kind = get(metadata, "model").as_string();
  if (!kind)
    return fail(ErrorCode::kMalformed, "no tokenizer: the GGUF file names no tokenizer model", at("model"));
  TokenizerParts parts;
  if (*kind == "gpt2") {
    PLIMSOLL_TRY_VOID(read_byte_level(metadata, parts));
  } else if (*kind == "llama" || *kind == "gemma4") {
    PLIMSOLL_TRY_VOID(read_marked_bpe(metadata, *kind == "gemma4", parts));
  } else if (*kind == "t5") {
    PLIMSOLL_TRY_VOID(read_unigram(metadata, parts));
  } else if (*kind == "bert") {
    PLIMSOLL_TRY_VOID(read_word_piece(metadata, parts));
  } else {
    return fail(ErrorCode::kUnsupported, "GGUF tokenizer kind " + *kind + " is not supported", at("model"));
  }
  return parts;
}

}  // namespace plimsoll::text
