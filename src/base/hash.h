// SPDX-License-Identifier: Apache-2.0
// Content digests, to tell whether a file is the one that was meant.
#pragma once

#include <cstddef>
#include <span>
#include <string>

namespace plimsoll {

/// SHA-256 as 64 lower-case hex digits.
std::string sha256_hex(std::span<const std::byte> data);

}  // namespace plimsoll
