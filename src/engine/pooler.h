// SPDX-License-Identifier: Apache-2.0
// Which vector do the hidden states of a sequence make up? Takes them in the order of their positions, as
// chunks bring them, so that the sum is the same however the prompt was cut. One sequence, one thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "model/pooling.h"

namespace plimsoll::engine {

class Pooler {
 public:
  /// `length`: tokens of the prompt; `hidden`: values of a state.
  Pooler(model::PoolingKind kind, std::int64_t length, std::int64_t hidden)
      : kind_(kind), length_(length), hidden_(hidden) {}

  /// Whether all of the prompt has to be computed for it, also what a cache holds.
  static bool reads_all(model::PoolingKind kind) { return kind != model::PoolingKind::kLast; }

  /// Of the rows [first, first + count), those that count.
  struct Rows {
    std::int64_t first = 0, count = 0;
  };
  Rows wanted(std::int64_t first, std::int64_t count) const;

  /// states: [count, hidden] of wanted() rows. Position 0 begins anew: a preempted prompt is computed again.
  void add(std::int64_t first, std::span<const float> states);

  /// Behind the last position. Returns: [dimensions].
  std::vector<float> embedding(const EmbeddingParams& params) const;

 private:
  model::PoolingKind kind_;
  std::int64_t length_, hidden_;
  std::vector<double> sums_;  // [hidden]; or the state itself, or the largest values
};

}  // namespace plimsoll::engine
