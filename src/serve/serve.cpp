// SPDX-License-Identifier: Apache-2.0
#include "serve/serve.h"

#include <fmt/format.h>

#include <cstdlib>
#include <thread>

#include "base/log.h"
#include "http/http.h"
#include "serve/engine_loop.h"
#include "serve/metrics.h"
#include "serve/routes.h"

namespace plimsoll::serve {
namespace {

/// PLIMSOLL_TEST_FAIL_AFTER_TOKENS: lets a test of a client see a stream fail midway.
std::optional<std::int64_t> fault_from_environment() {
  const char* value = std::getenv("PLIMSOLL_TEST_FAIL_AFTER_TOKENS");
  return value ? parse_size(value) : std::nullopt;
}

}  // namespace

// Destroyed from the last member to the first: the server before the routes, the routes before the loop, the
// loop before the engine.
struct App::State {
  LoadedModel model;
  engine::MemoryReport memory;
  std::vector<std::string> lines;
  std::string host;
  std::unique_ptr<Metrics> metrics;
  std::unique_ptr<EngineLoop> loop;
  std::unique_ptr<Routes> routes;
  std::unique_ptr<http::Server> server;
  std::thread thread;
};

App::App(std::unique_ptr<State> state) : state_(std::move(state)) {}

App::~App() {
  stop(std::chrono::milliseconds(0));
}

Result<std::unique_ptr<App>> App::start(const ServeOptions& options) {
  auto state = std::make_unique<State>();
  PLIMSOLL_TRY(state->model, load_model(options.load));
  const ModelContext& context = state->model.context;
  state->memory = state->model.engine->memory();
  state->lines = serve::startup_lines(state->memory, state->model.load_seconds);
  state->host = options.host;
  state->metrics = std::make_unique<Metrics>(context.names.front(), state->memory);
  state->loop = std::make_unique<EngineLoop>(
      *state->model.engine, *state->metrics,
      EngineLoopOptions{.max_queue = options.max_queue, .max_num_seqs = options.load.engine.max_num_seqs});
  state->routes = std::make_unique<Routes>(context, *state->loop, *state->metrics,
                                           RouteOptions{.api_keys = options.api_keys,
                                                        .request_id_headers = options.request_id_headers,
                                                        .version = options.version,
                                                        .fail_after_tokens = fault_from_environment()});
  http::ServerOptions http_options;
  http_options.host = options.host;
  http_options.port = options.port;
  http_options.max_body_bytes = options.max_body_bytes;
  http_options.refusal = [](int status, std::string_view reason) {
    const ApiError error{.status = status, .message = std::string(reason)};
    return http::Response{
        .status = status, .headers = {{"Content-Type", "application/json"}}, .body = dump(to_json(error))};
  };
  PLIMSOLL_TRY(state->server, http::Server::bind(http_options, [routes = state->routes.get()](
                                                                   http::Request request, auto responder) {
                 routes->handle(std::move(request), std::move(responder));
               }));
  state->thread = std::thread([server = state->server.get()] { server->run(); });
  return std::unique_ptr<App>(new App(std::move(state)));
}

int App::port() const {
  return state_->server->port();
}

std::string App::url() const {
  const bool is_ipv6 = state_->host.find(':') != std::string::npos;
  return fmt::format("http://{}{}{}:{}", is_ipv6 ? "[" : "", state_->host, is_ipv6 ? "]" : "", port());
}

const std::string& App::model_name() const {
  return state_->model.context.names.front();
}

engine::MemoryReport App::memory() const {
  return state_->memory;
}

double App::load_seconds() const {
  return state_->model.load_seconds;
}

const std::vector<std::string>& App::startup_lines() const {
  return state_->lines;
}

void App::stop(std::chrono::milliseconds drain) {
  if (!state_->thread.joinable()) return;
  state_->routes->begin_drain();
  state_->loop->begin_drain();
  state_->server->stop(drain);
  state_->thread.join();
  state_->loop->stop(std::chrono::milliseconds(0));
  if (!state_->loop->is_alive()) return;  // what a failed engine holds is not worth keeping
  if (const Status saved = state_->model.engine->save_prefix_cache(); !saved) log_warning(saved.error());
}

}  // namespace plimsoll::serve
