// SPDX-License-Identifier: Apache-2.0
#include "serve/answering.h"

#include <utility>

namespace plimsoll::serve {

void send_json(http::Responder& responder, const http::Headers& headers, const Json& body, int status) {
  http::Response response{.status = status, .headers = headers, .body = dump(body)};
  response.headers.emplace_back("Content-Type", "application/json");
  responder.send(std::move(response));
}

void send_error(http::Responder& responder, http::Headers headers, const ApiError& error) {
  if (error.status == 401) headers.emplace_back("WWW-Authenticate", "Bearer");
  if (error.status == 503) headers.emplace_back("Retry-After", "1");
  send_json(responder, headers, to_json(error), error.status);
}

// The callback holds tickets only: were it to hold the session, the responder would own itself.
void cancel_on_disconnect(http::Responder& responder, EngineLoop& loop, Ticket first, std::size_t count) {
  responder.on_disconnect([loop = &loop, first, count] {
    for (std::size_t i = 0; i < count; ++i) loop->cancel(first + i);
  });
}

}  // namespace plimsoll::serve
