// SPDX-License-Identifier: Apache-2.0
// Mixers that keep a state of fixed size: gated delta nets, Mamba 1 and 2. Each is its figures, the state
// that follows from them, and its weights; families say under which keys and names. Pure.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "model/families/decoder.h"

namespace plimsoll::model {

/// The longest convolution of a mixer that is believed.
constexpr std::int64_t kMaxKernel = 1024;
/// The most prediction layers that are believed.
constexpr std::int64_t kMaxMtpLayers = 64;

/// Gated delta net (Qwen 3-Next, 3.5, 4).
struct DeltaNet {
  int key_heads = 16, value_heads = 32;
  int key_head_dim = 128, value_head_dim = 128;
  int kernel = 4;
  std::optional<DType> state_dtype = {};
  std::int64_t key_width() const { return std::int64_t{key_heads} * key_head_dim; }
  std::int64_t value_width() const { return std::int64_t{value_heads} * value_head_dim; }
  std::int64_t channels() const { return 2 * key_width() + value_width(); }
};
/// From the linear_* keys, with Qwen's defaults.
DeltaNet read_delta_net(KeyReader& keys);
State state_of(const DeltaNet& net);
/// Under linear_attn. `is_fused`: in_proj_qkvz and in_proj_ba (Qwen 3-Next) instead of four projections.
void write_delta_net(SpecWriter& writer, const DeltaNet& net, bool is_fused);

/// Mamba of either kind.
struct Mamba {
  std::int64_t inner = 0;      // channels of the scan
  std::int64_t states = 16;    // per channel (Mamba 1) or per head dimension (Mamba 2)
  std::int64_t kernel = 4;     // of the convolution
  std::int64_t time_rank = 0;  // Mamba 1: rank of the step's projection
  int heads = 0;               // Mamba 2; 0: Mamba 1
  int groups = 1;              // Mamba 2: heads that share B and C
  bool has_bias = false;       // of the projection in
  bool has_output_bias = false;
  bool has_convolution_bias = true;
  bool has_gated_norm = true;        // Mamba 2: a norm before the output projection
  bool has_selection_norms = false;  // Mamba 1: norms of the step, B and C (Jamba)
  std::optional<DType> state_dtype = {};
  bool is_state_dtype_assumed = false;  // the config declares none
  std::int64_t chunk_tokens = 0;        // Mamba 2: that kernels take at once; 0: not said
  double least_step = 0.0, longest_step = std::numeric_limits<double>::infinity();
  bool norms_before_gate = false;
  /// What passes the convolution: Mamba 2 convolves B and C too.
  std::int64_t channels() const { return heads > 0 ? inner + 2 * groups * states : inner; }
};
State state_of(const Mamba& mamba);
/// Under `prefix` ("mixer.", "mamba.").
void write_mamba(SpecWriter& writer, const Mamba& mamba, std::string_view prefix);
/// Mamba 1's step rank: `key` as a number, or hidden_size / 16 rounded up where it is "auto" or absent.
std::int64_t read_time_rank(KeyReader& keys, std::string_view key, int hidden_size);
/// Mamba 2's bounds of the step, a list of two under time_step_limit.
void read_step_limit(KeyReader& keys, Mamba& mamba);
/// Tokens that kernels of Mamba 2 take at once, under either of two keys.
std::int64_t read_chunk(KeyReader& keys, std::int64_t otherwise);
/// Mamba 2 of the mamba_* keys (Bamba, Granite 4, Falcon-H1): heads x head size = expand x hidden_size,
/// unless mamba_d_ssm says otherwise.
Mamba read_mamba2(KeyReader& keys, int hidden_size, const Mamba& defaults);

/// One word per layer of a list; empty when the config has none. Another length is an error.
std::vector<std::string> read_layer_words(KeyReader& keys, std::string_view key, std::size_t num_layers);
/// The words of layer_types: layers called linear_attention, mamba, conv, ... get `state`, those called
/// attention keep what they have; other words are an error. False when the config has no list.
bool read_state_layers(KeyReader& keys, const State& state, ModelSpec& spec);
/// By read_state_layers, or where there is no list every layer but each full_attention_interval-th gets
/// `state`.
void set_state_layers(KeyReader& keys, const State& state, ModelSpec& spec);
}  // namespace plimsoll::model
