// SPDX-License-Identifier: Apache-2.0
// Which path answers what? OpenAI's and vLLM's endpoints, the API key, request ids. Called from the HTTP
// server's thread; large bodies are read on a thread of its own so that streams go on meanwhile.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "http/http.h"
#include "serve/engine_loop.h"
#include "serve/metrics.h"
#include "serve/model_context.h"
#include "serve/request.h"
#include "serve/work_queue.h"

namespace plimsoll::serve {

struct RouteOptions {
  std::vector<std::string> api_keys = {};              // empty: open
  bool request_id_headers = false;                     // X-Request-Id on every answer
  std::string version = {};                            // of the program
  std::optional<std::int64_t> fail_after_tokens = {};  // for requests of the user plimsoll-fault
};

class Routes {
 public:
  Routes(const ModelContext& context, EngineLoop& loop, Metrics& metrics, RouteOptions options);

  void handle(http::Request request, std::shared_ptr<http::Responder> responder);
  /// /ready answers 503 from now on.
  void begin_drain() { is_draining_ = true; }

 private:
  struct Call {
    http::Request request;
    std::shared_ptr<http::Responder> responder;
    std::string request_id;  // the client's, or a new one
    http::Headers headers;   // of every answer
  };
  using Action = void (Routes::*)(Call&);
  struct Route {
    const char* method;
    const char* path;
    Action action;
  };
  static const std::vector<Route>& table();

  void dispatch(Call call);
  void route(Call& call);
  std::optional<ApiError> check_key(const http::Request& request) const;
  void send_json(Call& call, const Json& body);
  void send_error(Call& call, const ApiError& error);

  void health(Call& call);
  void ping(Call& call);
  void ready(Call& call);
  void version(Call& call);
  void load(Call& call);
  void metrics(Call& call);
  void models(Call& call);
  void model(Call& call, const std::string& name);
  void chat(Call& call);
  void completions(Call& call);
  void generate(Call& call, Endpoint endpoint);
  void embeddings(Call& call);
  void tokenize(Call& call);
  void detokenize(Call& call);

  Json model_json(const std::string& name) const;

  const ModelContext& context_;
  EngineLoop& loop_;
  Metrics& metrics_;
  RouteOptions options_;
  std::int64_t started_ = 0;  // seconds since 1970
  std::atomic<bool> is_draining_ = false;
  WorkQueue large_bodies_;  // last: its thread uses the rest
};

}  // namespace plimsoll::serve
