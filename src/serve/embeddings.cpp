// SPDX-License-Identifier: Apache-2.0
#include "serve/embeddings.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdint>

#include "serve/answering.h"
#include "serve/fields.h"

namespace plimsoll::serve {
namespace {

/// How inputs that are too long are cut.
struct Truncation {
  std::optional<std::int64_t> tokens;
  std::optional<bool> keeps_end;  // as asked; else as the tokenizer does it, with its special tokens
};

Truncation read_truncation(Fields& fields, const ModelContext& context) {
  Truncation truncation;
  truncation.tokens = fields.integer("truncate_prompt_tokens", -1);
  if (truncation.tokens == -1) truncation.tokens = context.max_model_len;
  if (truncation.tokens && *truncation.tokens > context.max_model_len)
    fields.fault(
        "truncate_prompt_tokens",
        fmt::format("truncate_prompt_tokens must be at most this model's maximum context length of {} "
                    "tokens, got {}",
                    context.max_model_len, *truncation.tokens));
  if (const auto side = fields.string("truncation_side")) {
    if (*side != "left" && *side != "right")
      fields.fault("truncation_side", "truncation_side must be left or right");
    truncation.keeps_end = *side == "left";
  }
  return truncation;
}

std::vector<TokenId> cut(std::span<const TokenId> ids, std::size_t limit, bool keeps_end) {
  const auto kept = keeps_end ? ids.last(limit) : ids.first(limit);
  return {kept.begin(), kept.end()};
}

/// A text's ids with the tokenizer's special tokens on both sides, and what stands between them cut.
std::vector<TokenId> cut_between(const Prompt& prompt, std::size_t limit, bool keeps_end,
                                 const text::Tokenizer& tokenizer) {
  const std::span<const TokenId> ids = prompt.ids;
  const auto words = tokenizer.encode(prompt.text, {.add_special_tokens = false, .parse_special = true});
  const auto found = std::ranges::search(ids, words);
  const auto before = static_cast<std::size_t>(found.begin() - ids.begin());
  if (found.empty() || ids.size() - words.size() > limit) return {};
  std::vector<TokenId> result(ids.begin(), found.begin());
  const auto kept = cut(words, limit - (ids.size() - words.size()), keeps_end);
  result.insert(result.end(), kept.begin(), kept.end());
  const auto after = ids.subspan(before + words.size());
  result.insert(result.end(), after.begin(), after.end());
  return result;
}

void truncate(Fields& fields, const Truncation& truncation, const ModelContext& context, bool is_text,
              Prompt& prompt) {
  if (!truncation.tokens || std::cmp_less_equal(prompt.ids.size(), *truncation.tokens)) return;
  const auto limit = static_cast<std::size_t>(*truncation.tokens);
  const bool keeps_end = truncation.keeps_end.value_or(context.embedding->truncates_left);
  const bool adds_special = fields.boolean("add_special_tokens").value_or(true);
  if (is_text && adds_special && !truncation.keeps_end)
    prompt.ids = cut_between(prompt, limit, keeps_end, *context.tokenizer);
  else
    prompt.ids = cut(prompt.ids, limit, keeps_end);
  if (prompt.ids.empty())
    fields.fault("truncate_prompt_tokens", fmt::format("{} tokens leave no room for an input", limit));
}

void check_length(Fields& fields, const ModelContext& context, const Prompt& prompt) {
  const auto length = static_cast<std::int64_t>(prompt.ids.size());
  if (length == 0) return fields.fault("input", "the input holds no token");
  if (length > context.max_model_len)
    fields.fault(
        "input",
        fmt::format("This model's maximum context length is {} tokens. However, your input contains {} "
                    "tokens. Please reduce its length, or set truncate_prompt_tokens.",
                    context.max_model_len, length),
        "context_length_exceeded");
}

/// Only where the model says that a leading part of its embedding serves as one.
void read_dimensions(Fields& fields, const EmbeddingFacts& facts, engine::EmbeddingParams& params) {
  const auto asked = fields.integer("dimensions");
  if (!asked) return;
  const auto& known = facts.shorter_dimensions;
  if (!facts.has_shorter_ones)
    return fields.fault(
        "dimensions",
        fmt::format("this model's embeddings have {} dimensions; it was not trained for shorter "
                    "ones (matryoshka): leave dimensions out",
                    facts.dimensions));
  if (*asked < 1 || *asked > facts.dimensions)
    return fields.fault("dimensions",
                        fmt::format("dimensions must be from 1 to {}, got {}", facts.dimensions, *asked));
  if (!known.empty() && std::ranges::find(known, *asked) == known.end())
    return fields.fault("dimensions",
                        fmt::format("dimensions must be one of {}, got {}", fmt::join(known, ", "), *asked));
  params.dimensions = *asked;
}

bool read_format(Fields& fields) {
  const std::string format = fields.string("encoding_format").value_or("float");
  if (format != "float" && format != "base64")
    fields.fault("encoding_format", "encoding_format must be float or base64");
  if (const auto type = fields.string("embed_dtype"); type && *type != "float32")
    fields.fault("embed_dtype", "embed_dtype other than float32 is not supported by this server");
  if (const auto order = fields.string("endianness"); order && *order != "native" && *order != "little")
    fields.fault("endianness", "endianness other than little is not supported by this server");
  return format == "base64";
}

}  // namespace

ApiResult<EmbeddingRequest> read_embedding_request(const Json& body, const ModelContext& context) {
  Fields fields(body);
  EmbeddingRequest request;
  request.model = fields.string("model").value_or("");
  if (const auto unknown = check_model_name(context, request.model)) return refuse(*unknown);
  if (request.model.empty()) request.model = context.names.front();
  if (fields.has("messages"))
    fields.fault("messages", "messages is not supported by this server: give the text as input");
  request.is_base64 = read_format(fields);
  request.params.is_normalized = fields.boolean("use_activation").value_or(context.embedding->is_normalized);
  read_dimensions(fields, *context.embedding, request.params);
  request.turn = read_turn(fields);
  const Truncation truncation = read_truncation(fields, context);
  if (fields.error()) return refuse(*fields.error());
  const Json& input = fields.raw("input");
  const auto& items = input.items();
  const bool is_text = input.is_string() || (!items.empty() && items.front().is_string());
  for (Prompt& prompt : read_prompts(fields, "input", context)) {
    truncate(fields, truncation, context, is_text, prompt);
    check_length(fields, context, prompt);
    if (fields.error()) break;
    request.inputs.push_back(std::move(prompt.ids));
  }
  if (fields.error()) return refuse(*fields.error());
  return request;
}

void EmbeddingSession::start() {
  const std::size_t count = request_.inputs.size();
  first_ticket_ = loop_.new_tickets(count);
  std::vector<Job> jobs;
  for (std::size_t i = 0; i < count; ++i) {
    engine::Submission submission;
    submission.prompt = request_.inputs[i];
    submission.embedding = request_.params;
    submission.choices.resize(1);
    request_.turn.apply(submission);
    jobs.push_back(
        {.ticket = first_ticket_ + i, .submission = std::move(submission), .sink = shared_from_this()});
  }
  if (auto refused = loop_.submit(std::move(jobs))) return fail(*refused);
  cancel_on_disconnect(*responder_, loop_, first_ticket_, count);
}

void EmbeddingSession::on_output(Ticket ticket, const engine::Output& output) {
  if (is_answered_ || !output.finish) return;
  if (output.embedding.empty())
    return fail({.status = 500,
                 .message = output.error.empty() ? "the input was given up" : output.error,
                 .type = "server_error"});
  embeddings_.at(ticket - first_ticket_) = output.embedding;
  if (++num_done_ < embeddings_.size()) return;
  is_answered_ = true;
  send_json(*responder_, settings_.headers, answer());
}

void EmbeddingSession::on_refused(Ticket, const ApiError& error) {
  if (!is_answered_) fail(error);
}

void EmbeddingSession::fail(const ApiError& error) {
  is_answered_ = true;
  for (std::size_t i = 0; i < embeddings_.size(); ++i)
    if (embeddings_[i].empty()) loop_.cancel(first_ticket_ + i, engine::FinishReason::kError);
  send_error(*responder_, settings_.headers, error);
}

Json EmbeddingSession::answer() const {
  Json data = Json::array();
  std::int64_t prompt_tokens = 0;
  for (std::size_t i = 0; i < embeddings_.size(); ++i) {
    prompt_tokens += std::ssize(request_.inputs[i]);
    Json embedding;
    if (request_.is_base64) {
      embedding = to_base64(embeddings_[i]);
    } else {
      embedding = Json::array();
      for (const float value : embeddings_[i]) embedding.push_back(static_cast<double>(value));
    }
    data.push_back(
        Json::object({{"index", i}, {"object", "embedding"}, {"embedding", std::move(embedding)}}));
  }
  return Json::object({{"id", settings_.id},
                       {"object", "list"},
                       {"created", settings_.created},
                       {"model", request_.model},
                       {"data", std::move(data)},
                       {"usage", Json::object({{"prompt_tokens", prompt_tokens},
                                               {"total_tokens", prompt_tokens},
                                               {"completion_tokens", 0},
                                               {"prompt_tokens_details", nullptr}})}});
}

std::string to_base64(std::span<const float> values) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string bytes;
  for (const float value : values)
    for (int shift = 0; shift < 32; shift += 8)
      bytes += static_cast<char>(std::bit_cast<std::uint32_t>(value) >> shift & 0xFF);
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t word = 0;
    for (std::size_t k = 0; k < 3; ++k)
      word = word << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += i + k <= bytes.size() ? kDigits[word >> (18 - 6 * k) & 63] : '=';
  }
  return text;
}

}  // namespace plimsoll::serve
