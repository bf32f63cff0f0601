// SPDX-License-Identifier: Apache-2.0
// Stand-ins for the rooms below, so that tests of serve decide which tokens come: an engine that plays a
// script, a tokenizer of bytes, a responder that keeps what it was given.
#pragma once

#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "http/http.h"
#include "serve/engine_loop.h"
#include "serve/loaded_model.h"
#include "serve/model_context.h"

namespace plimsoll::serve {

/// Ids 0..255 are bytes, 256 is <s>, 257 is </s>; the vocabulary of the logits has 300 ids.
class ByteTokenizer : public text::Tokenizer {
 public:
  std::vector<TokenId> encode(std::string_view utf8, const text::EncodeOptions& options) const override;
  text::Encoding encode_with_spans(std::string_view text, const text::EncodeOptions& options) const override {
    text::Encoding made{encode(text, options), {}};
    made.spans.resize(made.ids.size());
    return made;
  }
  bool decodes_by_bytes() const override { return true; }
  std::vector<std::size_t> special_breaks(std::string_view) const override { return {}; }
  std::string decode(std::span<const TokenId> ids, bool skip_special_tokens) const override;
  std::string token_bytes(TokenId id) const override;
  std::optional<std::string> token_text(TokenId id) const override;
  std::optional<TokenId> id_of(std::string_view token) const override;
  std::int64_t vocab_size() const override { return 258; }
  bool is_special(TokenId id) const override { return id == 256 || id == 257; }
  std::optional<TokenId> bos() const override { return 256; }
  std::optional<TokenId> eos() const override { return 257; }
  const std::vector<TokenId>& stop_ids() const override { return stop_ids_; }

 private:
  std::vector<TokenId> stop_ids_ = {257};
};

/// Writes each message as [role]content and, when asked, [assistant].
class PlainTemplate : public text::ChatTemplate {
 public:
  explicit PlainTemplate(bool takes_parts = false) : takes_parts_(takes_parts) {}
  tl::expected<std::string, text::TemplateError> render(const Json& context,
                                                        std::string_view now) const override;
  bool takes_content_parts() const override { return takes_parts_; }
  mutable Json last_context;

 private:
  bool takes_parts_;
};

ModelContext test_context();

/// Answers every request with the tokens of `script` (bytes), one per step, then </s>; starts over for each
/// request. max_tokens and stop ids end it as the real engine does. Asked for an embedding it gives the
/// number of tokens, 0.5 and -1. Calls are counted under a lock.
class ScriptedEngine : public engine::Engine {
 public:
  explicit ScriptedEngine(std::string script) : script_(std::move(script)) {}

  engine::MemoryReport memory() const override;
  engine::EngineStats stats() const override;
  std::int64_t vocab_size() const override { return 300; }
  Result<engine::RequestId> add(engine::Submission submission) override;
  void cancel(engine::RequestId request) override;
  bool has_work() const override { return !requests_.empty(); }
  std::span<engine::Output> step() override;
  Bytes resident_kv_bytes() const override { return Bytes(0); }
  Status save_prefix_cache() override { return {}; }
  std::optional<Error> cut_error() const override {
    return artifact ? artifact::cut_error(*artifact) : std::nullopt;
  }

  /// Steps wait while it is closed: a test sees requests in flight.
  void close_gate();
  void open_gate();

  std::optional<TokenId> refuse_prompt_that_starts_with;
  bool throws_in_step = false;
  std::shared_ptr<const artifact::Artifact> artifact;  // whose files it reads, or null
  std::vector<engine::SamplingParams> added;           // read it when the loop is idle

 private:
  struct Playing {
    engine::SamplingParams params;
    std::int64_t prompt_tokens = 0;
    std::size_t next = 0;
    std::optional<engine::EmbeddingParams> embedding;
  };
  std::string script_;
  std::map<engine::RequestId, Playing> requests_;
  std::vector<engine::Output> outputs_;
  engine::RequestId last_ = 0;
  std::mutex gate_mutex_;
  std::condition_variable gate_changed_;
  bool is_gate_open_ = true;
};

/// A model of test_context whose engine plays the script.
LoadedModel scripted_model(std::string script);

/// Keeps the answer; wait() returns when it is complete.
class KeptAnswer : public http::Responder {
 public:
  void send(http::Response response) override;
  void begin_stream(int status, http::Headers headers) override;
  void write(std::string chunk) override;
  void finish() override;
  bool is_disconnected() const override { return false; }
  void on_disconnect(std::function<void()> callback) override;

  void wait();
  void disconnect();

  // Of a complete answer.
  http::Response response;
  std::vector<std::string> chunks;
  bool is_stream = false;

  Json json() const;                 // of a plain answer
  std::vector<Json> events() const;  // of a stream, without [DONE]; fails the test when [DONE] is not last

 private:
  void complete();
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_complete_ = false;
  std::function<void()> on_disconnect_;
};

}  // namespace plimsoll::serve
