// SPDX-License-Identifier: Apache-2.0
#include "serve/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <exception>
#include <random>

#include "base/log.h"
#include "serve/answering.h"
#include "serve/chat.h"
#include "serve/embeddings.h"
#include "serve/session.h"

namespace plimsoll::serve {
namespace {

constexpr std::size_t kLargeBodyBytes = 64 << 10;  // beyond it tokenizing takes more than a few milliseconds
constexpr std::size_t kMaxRequestIdBytes = 128;

std::string random_hex() {
  thread_local std::mt19937_64 generator{std::random_device{}()};
  return fmt::format("{:016x}{:016x}", generator(), generator());
}

std::string percent_decoded(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, byte, 16).ptr == text.data() + i + 3) {
      result += static_cast<char>(byte);
      i += 2;
    } else {
      result += text[i];
    }
  }
  return result;
}

/// The client's X-Request-Id when it can stand in a header and a log, else a new id.
std::string request_id_of(const http::Headers& headers) {
  const std::string_view given = http::header(headers, "x-request-id");
  const bool is_plain = std::all_of(given.begin(), given.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (given.empty() || given.size() > kMaxRequestIdBytes || !is_plain) return random_hex();
  return std::string(given);
}

/// Takes as long whether the first or the last byte differs.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |=
        static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

// A path of the other kind of model is one that this server does not have, as in vLLM.
ApiError not_of_this_model(const std::string& path, std::string_view what_it_does) {
  return {.status = 404,
          .message = fmt::format("Not Found: {}: this model {}", path, what_it_does),
          .type = "not_found_error"};
}

bool needs_key(std::string_view path) {
  return path.starts_with("/v1") || path == "/tokenize" || path == "/detokenize";
}

}  // namespace

Routes::Routes(const ModelContext& context, EngineLoop& loop, Metrics& metrics, RouteOptions options)
    : context_(context),
      loop_(loop),
      metrics_(metrics),
      options_(std::move(options)),
      started_(std::time(nullptr)) {}

const std::vector<Routes::Route>& Routes::table() {
  static const std::vector<Route> routes = {
      {"GET", "/health", &Routes::health},
      {"GET", "/ping", &Routes::ping},
      {"POST", "/ping", &Routes::ping},
      {"GET", "/ready", &Routes::ready},
      {"GET", "/version", &Routes::version},
      {"GET", "/load", &Routes::load},
      {"GET", "/metrics", &Routes::metrics},
      {"GET", "/v1/models", &Routes::models},
      {"POST", "/v1/chat/completions", &Routes::chat},
      {"POST", "/v1/completions", &Routes::completions},
      {"POST", "/v1/embeddings", &Routes::embeddings},
      {"POST", "/tokenize", &Routes::tokenize},
      {"POST", "/detokenize", &Routes::detokenize},
  };
  return routes;
}

void Routes::handle(http::Request request, std::shared_ptr<http::Responder> responder) {
  Call call{
      .request = std::move(request), .responder = std::move(responder), .request_id = {}, .headers = {}};
  call.request_id = request_id_of(call.request.headers);
  if (options_.request_id_headers) call.headers.emplace_back("X-Request-Id", call.request_id);
  if (call.request.body.size() <= kLargeBodyBytes) return dispatch(std::move(call));
  auto shared = std::make_shared<Call>(std::move(call));
  large_bodies_.push([this, shared] { dispatch(std::move(*shared)); });
}

void Routes::dispatch(Call call) {
  try {
    route(call);
  } catch (const std::exception& error) {  // memory that ran out: this request's fault alone
    log_warning(fmt::format("answering {}: {}", call.request.path, error.what()));
    call.responder->send({.status = 500, .headers = {}, .body = {}});
  }
}

void Routes::route(Call& call) {
  const auto& request = call.request;
  if (needs_key(request.path))
    if (const auto error = check_key(request)) return send_error(call, *error);
  std::string allowed;
  for (const Route& known : table()) {
    if (request.path != known.path) continue;
    if (request.method == known.method) {
      return (this->*known.action)(call);
    }
    allowed += (allowed.empty() ? "" : ", ") + std::string(known.method);
  }
  constexpr std::string_view kModels = "/v1/models/";
  if (request.path.starts_with(kModels)) {
    if (request.method == "GET") return model(call, percent_decoded(request.path.substr(kModels.size())));
    allowed = "GET";
  }
  ApiError error{.status = 404, .message = "Not Found: " + request.path, .type = "not_found_error"};
  if (!allowed.empty()) {
    error = {.status = 405, .message = fmt::format("Method Not Allowed: {} takes {}", request.path, allowed)};
    call.headers.emplace_back("Allow", allowed);
  }
  send_error(call, error);
}

std::optional<ApiError> Routes::check_key(const http::Request& request) const {
  if (options_.api_keys.empty()) return std::nullopt;
  constexpr std::string_view kBearer = "Bearer ";
  std::string_view given = http::header(request.headers, "authorization");
  given = given.starts_with(kBearer) ? given.substr(kBearer.size()) : std::string_view{};
  bool is_known = false;
  for (const std::string& key : options_.api_keys) is_known |= equal_in_constant_time(given, key);
  if (is_known) return std::nullopt;
  ApiError error;
  error.status = 401;
  error.type = "authentication_error";
  error.message =
      given.empty() ? "this server asks for an API key: Authorization: Bearer KEY" : "Incorrect API key";
  error.code = "invalid_api_key";
  return error;
}

void Routes::send_json(Call& call, const Json& body) {
  serve::send_json(*call.responder, call.headers, body);
}

void Routes::send_error(Call& call, const ApiError& error) {
  serve::send_error(*call.responder, call.headers, error);
}

void Routes::health(Call& call) {
  call.responder->send({.status = loop_.is_alive() ? 200 : 503, .headers = call.headers, .body = {}});
}

void Routes::ping(Call& call) {
  health(call);
}

void Routes::ready(Call& call) {
  const bool is_ready = loop_.is_alive() && !is_draining_;
  call.responder->send({.status = is_ready ? 200 : 503, .headers = call.headers, .body = {}});
}

void Routes::version(Call& call) {
  send_json(call, Json::object({{"version", options_.version}}));
}

void Routes::load(Call& call) {
  send_json(call, Json::object({{"server_load", loop_.num_unfinished()}}));
}

void Routes::metrics(Call& call) {
  http::Response response{.status = 200, .headers = call.headers, .body = metrics_.text()};
  response.headers.emplace_back("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  call.responder->send(std::move(response));
}

Json Routes::model_json(const std::string& name) const {
  return Json::object({{"id", name},
                       {"object", "model"},
                       {"created", started_},
                       {"owned_by", "plimsoll"},
                       {"root", context_.root},
                       {"parent", nullptr},
                       {"max_model_len", context_.max_model_len}});
}

void Routes::models(Call& call) {
  Json data = Json::array();
  for (const std::string& name : context_.names) data.push_back(model_json(name));
  send_json(call, Json::object({{"object", "list"}, {"data", std::move(data)}}));
}

void Routes::model(Call& call, const std::string& name) {
  if (const auto unknown = check_model_name(context_, name)) return send_error(call, *unknown);
  send_json(call, model_json(name));
}

void Routes::chat(Call& call) {
  generate(call, Endpoint::kChat);
}

void Routes::completions(Call& call) {
  generate(call, Endpoint::kCompletion);
}

void Routes::embeddings(Call& call) {
  if (!context_.embedding)
    return send_error(call, not_of_this_model(call.request.path, "generates text and gives no embeddings"));
  auto body = read_body(call.request.body);
  if (!body) return send_error(call, body.error());
  auto request = read_embedding_request(*body, context_);
  if (!request) return send_error(call, request.error());
  std::make_shared<EmbeddingSession>(
      std::move(*request), loop_, call.responder,
      SessionSettings{
          .id = "embd-" + call.request_id, .created = std::time(nullptr), .headers = call.headers})
      ->start();
}

void Routes::generate(Call& call, Endpoint endpoint) {
  if (context_.embedding)
    return send_error(call, not_of_this_model(call.request.path, "gives embeddings and generates no text"));
  auto body = read_body(call.request.body);
  if (!body) return send_error(call, body.error());
  auto request = read_request(endpoint, *body, context_);
  if (!request) return send_error(call, request.error());
  SessionSettings settings;
  settings.id = (endpoint == Endpoint::kChat ? "chatcmpl-" : "cmpl-") + call.request_id;
  settings.created = std::time(nullptr);
  settings.headers = call.headers;  // an error that follows still needs its own
  if (request->turn.user == "plimsoll-fault") settings.fail_after_tokens = options_.fail_after_tokens;
  std::make_shared<Session>(std::move(*request), context_, loop_, call.responder, std::move(settings))
      ->start();
}

void Routes::tokenize(Call& call) {
  auto body = read_body(call.request.body);
  if (!body) return send_error(call, body.error());
  Fields fields(*body);
  if (const auto unknown = check_model_name(context_, fields.string("model").value_or("")))
    return send_error(call, *unknown);
  std::vector<TokenId> ids;
  if (!context_.tokenizer) {
    fields.fault("prompt", "this model has no tokenizer");
  } else if (fields.has("messages")) {
    ids = read_chat_prompt(fields, context_).ids;
  } else if (const auto prompt = fields.string("prompt")) {
    const bool adds_special = fields.boolean("add_special_tokens").value_or(true);
    if (!fields.error())
      ids = context_.tokenizer->encode(*prompt,
                                       {.add_special_tokens = adds_special,
                                        .parse_special = fields.boolean("parse_special").value_or(true)});
  } else {
    fields.fault("prompt", "prompt: field required (or messages)");
  }
  if (fields.error()) return send_error(call, *fields.error());
  const TokenWriter writer(context_.tokenizer, false);
  Json texts = Json::array();
  for (const TokenId id : ids) texts.push_back(context_.tokenizer->token_text(id).value_or(writer.text(id)));
  send_json(call, Json::object({{"count", ids.size()},
                                {"max_model_len", context_.max_model_len},
                                {"tokens", ids_json(ids)},
                                {"token_strs", std::move(texts)}}));
}

void Routes::detokenize(Call& call) {
  auto body = read_body(call.request.body);
  if (!body) return send_error(call, body.error());
  Fields fields(*body);
  if (const auto unknown = check_model_name(context_, fields.string("model").value_or("")))
    return send_error(call, *unknown);
  const Json& tokens = fields.raw("tokens");
  if (!context_.tokenizer) fields.fault("tokens", "this model has no tokenizer");
  if (!tokens.is_array()) fields.fault("tokens", "tokens must be a list of token ids");
  std::vector<TokenId> ids;
  const std::int64_t vocab = context_.tokenizer ? context_.tokenizer->vocab_size() : 0;
  for (const Json& item : tokens.items()) {
    const auto id = item.as_integer();
    if (!id || *id < 0 || *id >= vocab)
      fields.fault("tokens", fmt::format("tokens: ids go from 0 to {}, got {}", vocab - 1, dump(item)));
    else
      ids.push_back(static_cast<TokenId>(*id));
  }
  if (fields.error()) return send_error(call, *fields.error());
  send_json(call, Json::object({{"prompt", context_.tokenizer->decode(ids, false)}}));
}

}  // namespace plimsoll::serve
