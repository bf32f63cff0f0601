// SPDX-License-Identifier: Apache-2.0
// Where are the numbers of each layer? Finds every tensor the spec calls for, checks its shape, and hands
// matrices out as they are stored (mapped, never copied) and vectors as floats. Keeps no artifact alive: the
// engine does.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "artifact/artifact.h"
#include "base/result.h"
#include "base/units.h"
#include "engine/panel_file.h"
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
  std::vector<float> inner_norm;                     // [intermediate], or empty
  std::vector<float> xielu[4];                       // [1] each: alpha_p, alpha_n, beta, eps; or empty
};

/// Latent attention: all heads' keys and values are expanded from one short vector per token.
struct LatentWeights {
  StoredMatrix query_compression;             // [q_lora, hidden], or no rows: LayerWeights::query
  std::vector<float> query_compression_bias;  // [q_lora], or empty
  std::vector<float> query_norm;              // [q_lora]
  StoredMatrix query_expansion;               // [heads * (nope + rope), q_lora]
  StoredMatrix compression;                   // [kv_lora + rope, hidden]
  std::vector<float> compression_bias;        // [kv_lora + rope], or empty
  std::vector<float> norm;                    // [kv_lora]
  std::vector<StoredMatrix> keys;             // of each head [nope, kv_lora]; turned: [kv_lora, nope]
  std::vector<StoredMatrix> values;           // of each head [v, kv_lora]
  bool are_keys_turned = false;
};

/// A mixer with a state: what its kind has, the rest is empty. model::Role says what each is.
struct StateWeights {
  StoredMatrix input, step_beta;  // as the file has them; taken apart into those below
  StoredMatrix query_key_value;   // what is convolved in one; or LayerWeights' query, key and value
  StoredMatrix gate, step, beta;
  std::vector<float> input_bias;                     // in the order of memory::StateWidths
  std::vector<float> convolution, convolution_bias;  // [channels, kernel], [channels]
  std::vector<float> query_convolution, key_convolution, value_convolution;
  StoredMatrix selection, step_expansion, gate_expansion;
  std::vector<float> step_bias, decay, skip;  // [heads] or [channels] or [channels, state_size]
  std::vector<float> step_norm, b_norm, c_norm;
  std::vector<float> norm;
  StoredMatrix output;  // [hidden, heads * head_dim]
  std::vector<float> output_bias;
};

struct LayerWeights {
  NormWeights attention_norm, ffn_norm;                 // [hidden], before the blocks; no weight: no norm
  NormWeights attention_post_norm, ffn_post_norm;       // [hidden], behind them
  StoredMatrix query, key, value;                       // [heads * head_dim, hidden]
  std::vector<float> query_bias, key_bias, value_bias;  // [heads * head_dim], or empty
  StoredMatrix output_gate;                             // [q_heads * head_dim, hidden], or no rows
  std::vector<float> output_gate_bias;                  // [q_heads * head_dim], or empty
  NormWeights query_norm, key_norm;                     // [head_dim] or [heads * head_dim], or empty
  std::vector<float> attended_norm;                     // [q_heads * value_dim], or empty
  StoredMatrix attention_output;                        // [hidden, q_heads * value_dim]
  std::vector<float> attention_output_bias;             // [hidden], or empty
  std::vector<float> sinks;                             // [q_heads], or empty
  LatentWeights latent;                                 // instead of query, key and value
  StateWeights state;                                   // instead of attention, or beside it
  FfnWeights ffn;                                       // dense layers
  StoredMatrix router;                                  // [experts, hidden]; no rows: no mixture
  std::vector<float> router_bias, score_bias;           // [experts], or empty
  std::vector<FfnWeights> experts;                      // [experts]
  FfnWeights shared;                                    // of all shared experts together
  StoredMatrix shared_gate;                             // [1, hidden], or no rows
};

struct ModelWeights {
  StoredMatrix token_embedding;  // [vocab, hidden]
  std::vector<LayerWeights> layers;
  StoredMatrix position_embedding;      // [positions, hidden], or no rows
  StoredMatrix token_type_embedding;    // [types, hidden], or no rows
  NormWeights embedding_norm;           // [hidden], or empty
  NormWeights output_norm;              // [hidden]
  StoredMatrix output_head;             // [vocab, hidden]; the embedding when tied
  std::vector<float> output_head_bias;  // [vocab], or empty
  std::vector<float> rope_frequencies;  // [rotary_dim/2] divisors, or empty
  std::shared_ptr<std::byte> blocks;    // what quantize_at_load made; matrices of it point into them
  std::int64_t blocks_bytes = 0;
  std::shared_ptr<std::byte> panels;  // what pack_at_load made; likewise
  KeptPanels kept_panels;             // or found; likewise
  Bytes stored;                       // bytes of all tensors in use, each counted once
};

/// Errors: kMalformed naming the tensor when it is missing or has another shape; kUnsupported for a stored
/// type or a quantized layout that is not read.
Result<ModelWeights> load_weights(const artifact::Artifact& artifact, const model::ModelSpec& spec);

}  // namespace plimsoll::engine
