// SPDX-License-Identifier: Apache-2.0
// The outputs of one step, in memory that every step uses again. Owns them; one thread.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace plimsoll::engine {

class Outputs {
 public:
  /// Room for so many from the start, each with one token; more make it grow.
  explicit Outputs(std::size_t expected);

  void clear() { count_ = 0; }
  /// A new output of which nothing but the request is set; valid until the next call.
  Output& add(RequestId request);
  std::span<Output> all() { return {items_.data(), count_}; }

 private:
  std::vector<Output> items_;  // grown and never shrunk: what follows the first `count_` is old
  std::size_t count_ = 0;
};

}  // namespace plimsoll::engine
