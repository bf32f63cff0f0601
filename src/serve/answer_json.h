// SPDX-License-Identifier: Apache-2.0
// How are tokens, logprobs and usage written in OpenAI's and vLLM's forms? Pure; any thread.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "engine/engine.h"
#include "serve/model_context.h"

namespace plimsoll::serve {

/// Spells single tokens.
class TokenWriter {
 public:
  /// `as_ids`: "token_id:123" instead of text. Without a tokenizer texts are empty.
  TokenWriter(std::shared_ptr<const text::Tokenizer> tokenizer, bool as_ids)
      : tokenizer_(std::move(tokenizer)), as_ids_(as_ids) {}
  std::string text(TokenId id) const;
  /// The token's own bytes, also where they are no whole character; null without a tokenizer.
  Json bytes(TokenId id) const;

 private:
  std::shared_ptr<const text::Tokenizer> tokenizer_;
  bool as_ids_ = false;
};

/// {"prompt_tokens","completion_tokens","total_tokens","prompt_tokens_details":{"cached_tokens"}}
Json usage_json(std::int64_t prompt_tokens, std::int64_t completion_tokens, std::int64_t cached_tokens);

/// One entry of a chat's logprobs.content.
Json chat_logprob_json(const engine::TokenLogprob& logprob, const TokenWriter& writer);

/// The four lists of a completion's logprobs; text offsets count characters from the start of the text.
class CompletionLogprobs {
 public:
  void add(const engine::TokenLogprob& logprob, const TokenWriter& writer);
  /// The first prompt token: nothing comes before it.
  void add_first(TokenId id, const TokenWriter& writer);
  /// What was added since the last call, as an object; offsets go on counting.
  Json take();

 private:
  void add_token(std::string text, Json logprob, Json top);
  Json tokens_ = Json::array(), token_logprobs_ = Json::array(), top_logprobs_ = Json::array(),
       text_offset_ = Json::array();
  std::int64_t offset_ = 0;
};

/// vLLM's prompt_logprobs: per prompt token null or {"id":{"logprob","rank","decoded_token"}}. The rank of a
/// token below the asked top is null.
Json prompt_logprobs_json(const std::vector<std::optional<engine::TokenLogprob>>& logprobs,
                          const TokenWriter& writer);

Json ids_json(const std::vector<TokenId>& ids);

/// A logarithm that JSON can carry: minus infinity becomes -9999, as in vLLM.
double finite_logprob(double logprob);

}  // namespace plimsoll::serve
