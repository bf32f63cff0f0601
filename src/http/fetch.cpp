// SPDX-License-Identifier: Apache-2.0
#include "http/client.h"

namespace plimsoll::http {
namespace {

constexpr std::size_t kMaxFetchedBytes = std::size_t{256} << 20;

struct Collector final : ReplySink {
  Response response;
  Outcome outcome{Outcome::Kind::kEarlyClose, "no answer"};
  bool is_too_large = false;

  void on_head(int status, const Headers& headers, TimePoint) override {
    response.status = status;
    response.headers = headers;
  }
  void on_body(std::string_view bytes, TimePoint) override {
    is_too_large = is_too_large || response.body.size() + bytes.size() > kMaxFetchedBytes;
    if (!is_too_large) response.body += bytes;
  }
  void on_end(const Outcome& result, TimePoint) override { outcome = result; }
};

}  // namespace

Result<Response> fetch(std::string_view method, std::string_view url, std::string body,
                       const Headers& headers, std::chrono::milliseconds timeout, bool verify_tls) {
  PLIMSOLL_TRY(const Url parsed, parse_url(url));
  PLIMSOLL_TRY(const auto client, Client::create({.keep_alive = false, .verify_tls = verify_tls}));
  Collector collector;
  Call call;
  call.method = std::string(method);
  call.target = parsed.target;
  PLIMSOLL_TRY(call.origin, client->add(parsed));
  call.headers = headers;
  call.body = std::move(body);
  call.timeout = timeout;
  PLIMSOLL_TRY_VOID(client->start(std::move(call), collector));
  client->run();
  if (collector.outcome.kind != Outcome::Kind::kComplete)
    return fail(ErrorCode::kNetwork,
                std::string(method) + " " + std::string(url) + ": " + collector.outcome.message, {},
                "check that the server runs and that the address is right");
  if (collector.is_too_large)
    return fail(ErrorCode::kNetwork,
                std::string(method) + " " + std::string(url) + ": the answer is larger than 256 MiB");
  return std::move(collector.response);
}

}  // namespace plimsoll::http
