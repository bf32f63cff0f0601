// SPDX-License-Identifier: Apache-2.0
// Servers echo what they were sent: no value of a header may stand in what a run keeps. Pure.
#pragma once

#include <string>
#include <vector>

#include "bench/record.h"
#include "http/http.h"

namespace plimsoll::bench {

/// Puts *** wherever the value of one of `headers` (a key without its "Bearer " too) stands in the texts of
/// `records`. Values of fewer than 6 bytes are no secrets but words.
void hide_secrets(const http::Headers& headers, std::vector<RequestRecord>& records);

/// "/generate?key=1" -> "/generate?***".
std::string without_query(const std::string& target);

}  // namespace plimsoll::bench
