// SPDX-License-Identifier: Apache-2.0
// Which bytes ask for a call? One HTTP/1.1 request as text; knows no socket. Pure.
#pragma once

#include <string>

#include "http/client.h"

namespace plimsoll::http {

/// Host and Content-Length are added; a Host of the caller's own stands instead. Errors: kUsage for a header
/// that holds a line break.
Result<std::string> request_text(const Url& url, const Call& call, bool keep_alive);

}  // namespace plimsoll::http
