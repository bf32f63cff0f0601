// SPDX-License-Identifier: Apache-2.0
// Where are the numbers of each layer? Finds every tensor the spec calls for, checks its shape, and hands
// matrices out as they are stored (mapped, never copied) and vectors as floats. Keeps no artifact alive: the
// engine does.
#pragma once

#include <vector>

#include "artifact/artifact.h"
#include "base/result.h"
#include "base/units.h"
#include "engine/stored_matrix.h"
#include "model/model.h"

namespace plimsoll::engine {

/// A norm's weight and bias; empty where there is none.
struct NormWeights {
  std::vector<float> weight, bias;  // [width]
};

/// One feed-forward.
struct FfnWeights {
  StoredMatrix gate, up;                             // [intermediate, hidden]
  StoredMatrix down;                                 // [hidden, intermediate]
  std::vector<float> gate_bias, up_bias, down_bias;  // or empty
};

struct LayerWeights {
  NormWeights attention_norm, ffn_norm;                 // [hidden], before the blocks; no weight: no norm
  NormWeights attention_post_norm, ffn_post_norm;       // [hidden], behind them
  StoredMatrix query, key, value;                       // [heads * head_dim, hidden]
  std::vector<float> query_bias, key_bias, value_bias;  // [heads * head_dim], or empty
  std::vector<float> query_norm, key_norm;              // [head_dim] or [heads * head_dim], or empty
  StoredMatrix attention_output;                        // [hidden, q_heads * head_dim]
  std::vector<float> attention_output_bias;             // [hidden], or empty
  FfnWeights ffn;                                       // dense layers
  StoredMatrix router;                                  // [experts, hidden]; no rows: no mixture
  std::vector<float> score_bias;                        // [experts], or empty
  std::vector<FfnWeights> experts;                      // [experts]
  FfnWeights shared;                                    // of all shared experts together
  StoredMatrix shared_gate;                             // [1, hidden], or no rows
};

struct ModelWeights {
  StoredMatrix token_embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  StoredMatrix position_embedding;      // [positions, hidden], or no rows
  NormWeights output_norm;              // [hidden]
  StoredMatrix output_head;             // [vocab, hidden]; the embedding when tied
  std::vector<float> output_head_bias;  // [vocab], or empty
  std::vector<float> rope_frequencies;  // [rotary_dim/2] divisors, or empty
  Bytes stored;                         // bytes of all tensors in use, each counted once
};

/// Errors: kMalformed naming the tensor when it is missing or has another shape; kUnsupported for a stored
/// type or a quantized layout that is not read.
Result<ModelWeights> load_weights(const artifact::Artifact& artifact, const model::ModelSpec& spec);

}  // namespace plimsoll::engine
