// SPDX-License-Identifier: Apache-2.0
#include "text/tokenizer/pipeline_tokenizer.h"

#include <algorithm>
#include <deque>

#include "base/utf8.h"
#include "text/tokenizer/byte_level.h"

namespace plimsoll::text {
namespace {

class PipelineTokenizer final : public Tokenizer {
 public:
  explicit PipelineTokenizer(TokenizerParts parts) : parts_(std::move(parts)) {}

  std::vector<TokenId> encode(std::string_view utf8, const EncodeOptions& options) const override {
    std::string repaired;
    if (!is_valid_utf8(utf8)) utf8 = repaired = replace_invalid_utf8(utf8);
    std::vector<TokenId> ids;
    if (options.add_special_tokens) ids = parts_.post_processor.before;
    for (const auto& part : parts_.added.split(utf8, AddedTokens::Stage::kRawText, options.parse_special)) {
      if (part.token)
        ids.push_back(part.token->id);
      else
        encode_text(utf8.substr(part.span.begin, part.span.end - part.span.begin), options, ids);
    }
    const auto& after = parts_.post_processor.after;
    if (options.add_special_tokens) ids.insert(ids.end(), after.begin(), after.end());
    return ids;
  }

  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const override {
    std::string bytes;
    for (const TokenId id : ids)
      if (!skip_special_tokens || !is_special(id)) bytes += token_bytes(id);
    return is_valid_utf8(bytes) ? bytes : replace_invalid_utf8(bytes);
  }

  std::string token_bytes(TokenId id) const override {
    if (const AddedToken* token = parts_.added.find(id)) return token_to_bytes(token->content);
    return std::string(parts_.vocabulary->bytes_of(id));
  }

  std::optional<std::string> token_text(TokenId id) const override {
    if (const AddedToken* token = parts_.added.find(id)) return token->content;
    if (!parts_.vocabulary->has(id)) return std::nullopt;
    return parts_.vocabulary->text_of(id);
  }

  std::optional<TokenId> id_of(std::string_view token) const override {
    if (const AddedToken* found = parts_.added.find(token)) return found->id;
    return parts_.vocabulary->find_text(token);
  }

  std::int64_t vocab_size() const override {
    return std::max<std::int64_t>(parts_.vocabulary->size(), std::int64_t{parts_.added.highest_id()} + 1);
  }
  bool is_special(TokenId id) const override {
    const AddedToken* token = parts_.added.find(id);
    return token && token->is_special;
  }
  std::optional<TokenId> bos() const override { return parts_.bos; }
  std::optional<TokenId> eos() const override { return parts_.eos; }
  const std::vector<TokenId>& stop_ids() const override { return parts_.stop_ids; }

 private:
  void encode_text(std::string_view text, const EncodeOptions& options, std::vector<TokenId>& ids) const {
    std::string normalized;
    if (!parts_.normalizer.is_empty()) text = normalized = parts_.normalizer.apply(text);
    if (!parts_.added.has_stage(AddedTokens::Stage::kNormalizedText)) return encode_pieces(text, ids);
    for (const auto& part :
         parts_.added.split(text, AddedTokens::Stage::kNormalizedText, options.parse_special)) {
      if (part.token)
        ids.push_back(part.token->id);
      else
        encode_pieces(text.substr(part.span.begin, part.span.end - part.span.begin), ids);
    }
  }

  void encode_pieces(std::string_view text, std::vector<TokenId>& ids) const {
    std::deque<std::string> storage;
    for (const std::string_view piece : parts_.pre_tokenizer.split(text, storage))
      parts_.model->encode(piece, {ids});
  }

  TokenizerParts parts_;
};

}  // namespace

std::shared_ptr<const Tokenizer> make_tokenizer(TokenizerParts parts) {
  return std::make_shared<const PipelineTokenizer>(std::move(parts));
}

}  // namespace plimsoll::text
