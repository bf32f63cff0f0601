// SPDX-License-Identifier: Apache-2.0
// How does a request for embeddings become an answer? The body of /v1/embeddings as a typed, validated
// request; a session that submits one job for each input and answers when all are there.
// Which fields are taken, ignored and refused: docs/formats/openai_http.md.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "http/http.h"
#include "serve/engine_loop.h"
#include "serve/session.h"

namespace plimsoll::serve {

struct EmbeddingRequest {
  std::string model;                         // the served name that was asked for
  std::vector<std::vector<TokenId>> inputs;  // at least one, none empty or too long
  engine::EmbeddingParams params;
  bool is_base64 = false;
  Turn turn;
};

/// Errors: 400 naming the field; 404 for another model; 400 context_length_exceeded. `context.embedding` must
/// be there. Pure; any thread.
ApiResult<EmbeddingRequest> read_embedding_request(const Json& body, const ModelContext& context);

/// Owned by its jobs and so alive until the last one ends; the engine loop's thread alone changes it after
/// start().
class EmbeddingSession : public JobSink, public std::enable_shared_from_this<EmbeddingSession> {
 public:
  EmbeddingSession(EmbeddingRequest request, EngineLoop& loop, std::shared_ptr<http::Responder> responder,
                   SessionSettings settings)
      : request_(std::move(request)),
        loop_(loop),
        responder_(std::move(responder)),
        settings_(std::move(settings)),
        embeddings_(request_.inputs.size()) {}

  /// Submits all jobs; answers at once when they are refused. A peer that closes cancels them.
  void start();

  void on_output(Ticket ticket, const engine::Output& output) override;
  void on_refused(Ticket ticket, const ApiError& error) override;

 private:
  void fail(const ApiError& error);
  Json answer() const;

  EmbeddingRequest request_;
  EngineLoop& loop_;
  std::shared_ptr<http::Responder> responder_;
  SessionSettings settings_;
  Ticket first_ticket_ = 0;
  std::vector<std::vector<float>> embeddings_;  // [inputs]; empty until it is there
  std::size_t num_done_ = 0;
  bool is_answered_ = false;
};

/// Values as base64 of their little-endian bytes.
std::string to_base64(std::span<const float> values);

}  // namespace plimsoll::serve
