// SPDX-License-Identifier: Apache-2.0
#include "serve/answer_json.h"

#include <algorithm>
#include <cmath>

#include "base/utf8.h"

namespace plimsoll::serve {
namespace {

std::int64_t count_characters(std::string_view utf8) {
  // Every byte but the continuation bytes (10xxxxxx) starts a character.
  return std::count_if(utf8.begin(), utf8.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

}  // namespace

double finite_logprob(double logprob) {
  return std::isfinite(logprob) ? logprob : -9999.0;
}

std::string TokenWriter::text(TokenId id) const {
  if (as_ids_) return "token_id:" + std::to_string(id);
  return tokenizer_ ? replace_invalid_utf8(tokenizer_->token_bytes(id)) : std::string();
}

Json TokenWriter::bytes(TokenId id) const {
  if (!tokenizer_) return nullptr;
  Json bytes = Json::array();
  for (const char c : tokenizer_->token_bytes(id)) bytes.push_back(static_cast<unsigned char>(c));
  return bytes;
}

Json usage_json(std::int64_t prompt_tokens, std::int64_t completion_tokens, std::int64_t cached_tokens) {
  return Json::object({{"prompt_tokens", prompt_tokens},
                       {"completion_tokens", completion_tokens},
                       {"total_tokens", prompt_tokens + completion_tokens},
                       {"prompt_tokens_details", Json::object({{"cached_tokens", cached_tokens}})}});
}

Json chat_logprob_json(const engine::TokenLogprob& logprob, const TokenWriter& writer) {
  const auto entry = [&](TokenId id, double value) {
    return Json::object(
        {{"token", writer.text(id)}, {"logprob", finite_logprob(value)}, {"bytes", writer.bytes(id)}});
  };
  Json top = Json::array();
  for (const auto& [id, value] : logprob.top) top.push_back(entry(id, value));
  Json result = entry(logprob.token, logprob.logprob);
  result.set("top_logprobs", std::move(top));
  return result;
}

void CompletionLogprobs::add_token(std::string text, Json logprob, Json top) {
  text_offset_.push_back(offset_);
  offset_ += count_characters(text);
  tokens_.push_back(std::move(text));
  token_logprobs_.push_back(std::move(logprob));
  top_logprobs_.push_back(std::move(top));
}

void CompletionLogprobs::add_first(TokenId id, const TokenWriter& writer) {
  add_token(writer.text(id), nullptr, nullptr);
}

void CompletionLogprobs::add(const engine::TokenLogprob& logprob, const TokenWriter& writer) {
  Json top = Json::object();
  for (const auto& [id, value] : logprob.top) {
    // Two tokens may have the same text: the likelier one stands.
    const std::string text = writer.text(id);
    if (!top.contains(text)) top.set(text, finite_logprob(value));
  }
  const std::string text = writer.text(logprob.token);
  if (!top.contains(text)) top.set(text, finite_logprob(logprob.logprob));
  add_token(text, finite_logprob(logprob.logprob), std::move(top));
}

Json CompletionLogprobs::take() {
  return Json::object({{"tokens", std::exchange(tokens_, Json::array())},
                       {"token_logprobs", std::exchange(token_logprobs_, Json::array())},
                       {"top_logprobs", std::exchange(top_logprobs_, Json::array())},
                       {"text_offset", std::exchange(text_offset_, Json::array())}});
}

Json prompt_logprobs_json(const std::vector<std::optional<engine::TokenLogprob>>& logprobs,
                          const TokenWriter& writer) {
  Json result = Json::array();
  for (const auto& logprob : logprobs) {
    if (!logprob) {
      result.push_back(nullptr);
      continue;
    }
    Json row = Json::object();
    const auto entry = [&](TokenId id, double value, std::int64_t rank) {
      row.set(std::to_string(id),
              Json::object(
                  {{"logprob", finite_logprob(value)}, {"rank", rank}, {"decoded_token", writer.text(id)}}));
    };
    entry(logprob->token, logprob->logprob, logprob->rank);
    std::int64_t rank = 0;
    for (const auto& [id, value] : logprob->top) entry(id, value, ++rank);
    result.push_back(std::move(row));
  }
  return result;
}

Json ids_json(const std::vector<TokenId>& ids) {
  return Json(Json::Array(ids.begin(), ids.end()));
}

}  // namespace plimsoll::serve
