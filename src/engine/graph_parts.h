// SPDX-License-Identifier: Apache-2.0
// What the parts of the graph (graph.cpp, graph_attention.cpp, ...) share and nobody else sees.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "base/division.h"
#include "engine/graph.h"
#include "kernels/panels.h"

namespace plimsoll::engine {

/// Rows of a weight matrix that one thread takes at a time: enough work to outweigh taking it, enough chunks
/// to share.
inline constexpr std::int64_t kRowsPerChunk = 64;

/// Calls work(row) for each of a step's rows: on the caller for a few, or some rows at a time on the team.
template <class Work>
void each_row(ThreadPool& team, std::int64_t num_rows, Work work) {
  constexpr std::int64_t kFewRows = 4, kChunksPerThread = 4;  // a row takes less than handing it out
  const std::int64_t share =
      num_rows < kFewRows ? num_rows : divided_up(num_rows, kChunksPerThread * team.threads());
  if (num_rows == 0) return;
  team.run(divided_up(num_rows, share), [&](std::int64_t chunk, int) {
    for (std::int64_t row = chunk * share; row < std::min((chunk + 1) * share, num_rows); ++row) work(row);
  });
}

/// One matrix times all rows.
struct Graph::Product {
  const StoredMatrix* matrix = nullptr;
  float* output = nullptr;  // [rows, output_stride]
  std::int64_t output_stride = 0;
  int planes = 1;  // of inputs in eight bits
};

/// The inputs of matrices that are multiplied together, in the form that they read.
struct Graph::Rounded {
  enum class Form { kFloats, kCodes, kPairs };  // as they are; in eight bits; in bf16
  Form form = Form::kFloats;
  const float* floats = nullptr;              // [rows, columns]
  const kernels::Int8Block* codes = nullptr;  // [rows, planes, columns / 32]
};

/// One layer's attention. Query heads of a KV head that are attended for together are one of its `heads`.
struct Graph::AttentionCall {
  const model::Attention& attention;
  int layer;
  bool sees_all;  // encoders: every position of the text, whose keys and values are the step's own
  int group = attention.q_heads / attention.kv_heads;
  int heads_at_once = std::min(group, kernels::kAttentionQueries);
  int heads_per_kv_head = static_cast<int>(divided_up(group, heads_at_once));

  int num_heads() const { return attention.kv_heads * heads_per_kv_head; }
  int kv_head(int heads) const { return heads / heads_per_kv_head; }
  int first_head(int heads) const {
    return kv_head(heads) * group + heads % heads_per_kv_head * heads_at_once;
  }
  int end_head(int heads) const {
    return std::min(first_head(heads) + heads_at_once, (kv_head(heads) + 1) * group);
  }
};

/// How far one row turns, and in what pairs.
struct Graph::Angles {
  const model::RopeSpec& rope;
  const float* cosines;  // [rotary_dim/2]
  const float* sines;
};

/// How many of the first rows belong to one sequence and follow each other; at most `most`.
std::size_t rows_together(std::span<const Row> rows, std::size_t most);

inline void multiply_by(double factor, std::int64_t n, float* values) {
  if (factor == 1.0) return;
  for (std::int64_t i = 0; i < n; ++i) values[i] *= static_cast<float>(factor);
}

inline void add_bias(const std::vector<float>& bias, float* values) {
  for (std::size_t i = 0; i < bias.size(); ++i) values[i] += bias[i];
}

}  // namespace plimsoll::engine
