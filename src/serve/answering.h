// SPDX-License-Identifier: Apache-2.0
// How does an answer, or an error, go out, and what happens when nobody listens any more? What routes and
// sessions share.
#pragma once

#include <cstddef>

#include "base/json.h"
#include "http/http.h"
#include "serve/api_error.h"
#include "serve/engine_loop.h"

namespace plimsoll::serve {

void send_json(http::Responder& responder, const http::Headers& headers, const Json& body, int status = 200);

/// With the headers that its status asks for.
void send_error(http::Responder& responder, http::Headers headers, const ApiError& error);

/// Cancels `count` jobs once the peer has gone. After the jobs were submitted, for a cancellation that came
/// first would find none; a peer that has gone meanwhile is told at once.
void cancel_on_disconnect(http::Responder& responder, EngineLoop& loop, Ticket first, std::size_t count);

}  // namespace plimsoll::serve
