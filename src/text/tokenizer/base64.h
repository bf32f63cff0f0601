// SPDX-License-Identifier: Apache-2.0
// Base64 as tokenizer files carry bytes in text. Plain function; safe from any thread.
#pragma once

#include <string_view>
#include <vector>

namespace plimsoll::text {

/// Appends the bytes that `text` (RFC 4648, padding optional at the end) stands for; false, with nothing
/// appended, when it is no base64.
bool append_base64(std::vector<char>& bytes, std::string_view text);

}  // namespace plimsoll::text
