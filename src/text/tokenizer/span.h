// SPDX-License-Identifier: Apache-2.0
// A byte range of a text. Plain value.
#pragma once

#include <cstddef>

namespace plimsoll::text {

/// Byte range [begin, end) of a text.
struct Span {
  std::size_t begin = 0;
  std::size_t end = 0;
  bool operator==(const Span&) const = default;
};

}  // namespace plimsoll::text
