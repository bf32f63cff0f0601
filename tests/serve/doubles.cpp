// SPDX-License-Identifier: Apache-2.0
#include "tests/serve/doubles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

namespace plimsoll::serve {

std::vector<TokenId> ByteTokenizer::encode(std::string_view utf8, const text::EncodeOptions& options) const {
  std::vector<TokenId> ids;
  if (options.add_special_tokens) ids.push_back(256);
  for (const char c : utf8) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

std::string ByteTokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::string text;
  for (const TokenId id : ids)
    if (!skip_special_tokens || !is_special(id)) text += token_bytes(id);
  return text;
}

std::string ByteTokenizer::token_bytes(TokenId id) const {
  if (id == 256) return "<s>";
  if (id == 257) return "</s>";
  return id >= 0 && id < 256 ? std::string(1, static_cast<char>(id)) : "";
}

std::optional<std::string> ByteTokenizer::token_text(TokenId id) const {
  if (id < 0 || id > 257) return std::nullopt;
  return token_bytes(id);
}

std::optional<TokenId> ByteTokenizer::id_of(std::string_view token) const {
  if (token.size() == 1) return static_cast<unsigned char>(token[0]);
  return std::nullopt;
}

tl::expected<std::string, text::TemplateError> PlainTemplate::render(const Json& context,
                                                                     std::string_view) const {
  last_context = context;
  std::string text;
  for (const Json& message : context["messages"].items()) {
    if (*message["role"].as_string() == "bad")
      return tl::unexpected(text::TemplateError{"TemplateError", "no such role", 1});
    text += "[" + *message["role"].as_string() + "]";
    if (const std::string* content = message["content"].as_string()) text += *content;
    for (const Json& part : message["content"].items()) text += *part["text"].as_string();
  }
  if (context["add_generation_prompt"].as_bool().value_or(false)) text += "[assistant]";
  return text;
}

ModelContext test_context() {
  ModelContext context;
  context.names = {"org/model", "alias"};
  context.root = "org/model";
  context.max_model_len = 100;
  context.vocab_size = 300;
  context.tokenizer = std::make_shared<ByteTokenizer>();
  context.chat_template = std::make_shared<PlainTemplate>();
  context.bos_token = "<s>";
  context.eos_token = "</s>";
  context.stop_ids = {257};
  return context;
}

engine::MemoryReport ScriptedEngine::memory() const {
  engine::MemoryReport report;
  report.weights = Bytes(kGiB);
  report.kv_cache = Bytes(2 * kGiB);
  report.kv_bytes_per_token = Bytes(23040);
  report.kv_cache_dtype = "int8";
  report.num_blocks = Blocks(100);
  report.block_size = 16;
  report.kv_tokens = Tokens(1600);
  report.max_model_len = Tokens(100);
  report.capacity_line = "CPU KV cache size: 1,600 tokens";
  return report;
}

engine::EngineStats ScriptedEngine::stats() const {
  engine::EngineStats stats;
  stats.running = static_cast<std::int64_t>(requests_.size());
  stats.blocks_total = Blocks(100);
  stats.blocks_used = Blocks(stats.running);
  return stats;
}

Result<engine::RequestId> ScriptedEngine::add(engine::Submission submission) {
  if (refuse_prompt_that_starts_with && submission.prompt.front() == *refuse_prompt_that_starts_with)
    return fail(ErrorCode::kNo, "it can never fit the pool");
  const engine::RequestId first = last_ + 1;
  for (const auto& params : submission.choices) {
    added.push_back(params);
    requests_[++last_] = {params, std::ssize(submission.prompt), 0, submission.embedding};
  }
  return first;
}

void ScriptedEngine::cancel(engine::RequestId request) {
  requests_.erase(request);
}

void ScriptedEngine::close_gate() {
  const std::lock_guard lock(gate_mutex_);
  is_gate_open_ = false;
}

void ScriptedEngine::open_gate() {
  const std::lock_guard lock(gate_mutex_);
  is_gate_open_ = true;
  gate_changed_.notify_all();
}

std::span<engine::Output> ScriptedEngine::step() {
  {
    std::unique_lock lock(gate_mutex_);
    gate_changed_.wait(lock, [&] { return is_gate_open_; });
  }
  if (throws_in_step) throw std::bad_alloc();
  std::vector<engine::Output>& outputs = outputs_;
  outputs.clear();
  for (auto& [id, playing] : requests_) {
    engine::Output output;
    output.request = id;
    if (playing.embedding) {
      output.embedding = {static_cast<float>(playing.prompt_tokens), 0.5F, -1.0F};
      if (playing.embedding->dimensions > 0)
        output.embedding.resize(static_cast<std::size_t>(playing.embedding->dimensions));
      output.finish = engine::FinishReason::kStop;
      outputs.push_back(std::move(output));
      continue;
    }
    const auto& stops = playing.params.stop_token_ids;
    const bool is_over = playing.next >= script_.size();
    const TokenId token = is_over ? 257 : static_cast<unsigned char>(script_[playing.next]);
    output.tokens = {token};
    if (playing.params.logprobs) output.logprobs = {{token, -0.5, {{token, -0.5}, {65, -1.5}}}};
    if (playing.next == 0 && playing.params.prompt_logprobs) {
      output.prompt_logprobs.resize(static_cast<std::size_t>(playing.prompt_tokens));
      for (std::size_t i = 1; i < output.prompt_logprobs.size(); ++i)
        output.prompt_logprobs[i] = engine::TokenLogprob{static_cast<TokenId>(i), -2.0, {{66, -1.0}}, 7};
    }
    ++playing.next;
    if (std::find(stops.begin(), stops.end(), token) != stops.end()) {
      output.finish = engine::FinishReason::kStop;
      output.stop_token = token;
    } else if (static_cast<std::int64_t>(playing.next) >= playing.params.max_tokens) {
      output.finish = engine::FinishReason::kLength;
    }
    outputs.push_back(std::move(output));
  }
  for (const auto& output : outputs)
    if (output.finish) requests_.erase(output.request);
  return outputs;
}

LoadedModel scripted_model(std::string script) {
  LoadedModel model;
  model.engine = std::make_unique<ScriptedEngine>(std::move(script));
  model.context = test_context();
  return model;
}

void KeptAnswer::complete() {
  const std::lock_guard lock(mutex_);
  is_complete_ = true;
  changed_.notify_all();
}

void KeptAnswer::send(http::Response given) {
  response = std::move(given);
  complete();
}
void KeptAnswer::begin_stream(int status, http::Headers headers) {
  is_stream = true;
  response.status = status;
  response.headers = std::move(headers);
}
void KeptAnswer::write(std::string chunk) {
  chunks.push_back(std::move(chunk));
}
void KeptAnswer::finish() {
  complete();
}
void KeptAnswer::on_disconnect(std::function<void()> callback) {
  on_disconnect_ = std::move(callback);
}
void KeptAnswer::disconnect() {
  on_disconnect_();
}

void KeptAnswer::wait() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_complete_; });
}

Json KeptAnswer::json() const {
  auto parsed = parse_json(response.body, "answer");
  EXPECT_TRUE(parsed) << response.body;
  return parsed ? *parsed : Json();
}

std::vector<Json> KeptAnswer::events() const {
  std::vector<Json> events;
  EXPECT_TRUE(is_stream);
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const std::string& chunk = chunks[i];
    if (i + 1 == chunks.size()) {
      EXPECT_EQ(chunk, "data: [DONE]\n\n");
      break;
    }
    EXPECT_TRUE(chunk.starts_with("data: {") && chunk.ends_with("}\n\n")) << chunk;
    auto parsed = parse_json(std::string_view(chunk).substr(6), "event");
    EXPECT_TRUE(parsed) << chunk;
    if (parsed) events.push_back(std::move(*parsed));
  }
  return events;
}

}  // namespace plimsoll::serve
