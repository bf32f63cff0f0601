// SPDX-License-Identifier: Apache-2.0
// What is a layer of a decoder made of? Ropes, mixers, feed-forwards: plain facts that families fill in and
// memory, plan and engine read. Pure values. model.h puts them together.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <optional>
#include <string_view>
#include <variant>
#include <vector>

#include "base/dtype.h"

namespace plimsoll::model {

enum class RopeKind { kNone, kDefault, kLinear, kDynamic, kLlama3, kYarn, kLongrope };

/// Rotary position embedding, as transformers' ROPE_INIT_FUNCTIONS read it.
struct RopeSpec {
  RopeKind kind = RopeKind::kDefault;
  double theta = 10000.0;
  double factor = 1.0;                              // context extension: linear, dynamic, llama3, yarn
  double low_frequency_factor = 1.0;                // llama3
  double high_frequency_factor = 4.0;               // llama3
  std::int64_t original_context_tokens = 0;         // length before extension; 0 when there is none
  double beta_fast = 32.0;                          // yarn
  double beta_slow = 1.0;                           // yarn
  std::optional<double> attention_factor;           // yarn, longrope: given, else computed
  std::optional<double> mscale;                     // yarn (DeepSeek)
  std::optional<double> mscale_all_dim;             // yarn (DeepSeek)
  bool truncate = true;                             // yarn: floor/ceil the correction range
  std::vector<double> short_factors, long_factors;  // longrope: [head_dim/2]
  int rotary_dim = 0;                               // dimensions that rotate; the rest pass through
  bool has_sections = false;       // positions have parts (time, height, width): engines keep longer tables
  bool is_kept_in_32_bit = false;  // engines keep its table so whatever the model is in
  bool interleaved = false;        // pairs (0,1),(2,3).. (GGUF llama order) instead of halves (i, i+d/2)
  bool operator==(const RopeSpec&) const = default;
};

/// Keys of a second, small attention that chooses which positions the main one reads (sparse attention).
struct Indexer {
  int heads = 0;            // 0: keeps no keys, reads what a layer before it chose
  int head_dim = 0;         // one key of it per stored position: [head_dim]
  int selected_tokens = 0;  // positions (or blocks x their size) that the main attention reads
  int tokens_per_key = 1;   // above 1: one compressed key stands for so many tokens
  bool operator==(const Indexer&) const = default;
};

enum class NormKind { kRms, kLayerNorm };  // of the root mean square; of mean and variance

/// Keys and values per head: MHA, GQA, MQA; full, sliding, chunked or cross.
struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  int value_head_dim = 0;                          // 0: as head_dim
  std::optional<std::int64_t> window_tokens = {};  // sliding window: positions further back are not seen
  std::optional<std::int64_t> chunk_tokens = {};   // chunked: positions of other chunks are not seen
  std::optional<Indexer> indexer = {};             // reads only what it chooses; stores all keys and values
  bool is_cross = false;  // keys and values of another input (image, encoder): do not grow with the text
  bool has_qkv_bias = false;
  bool has_output_bias = false;
  bool has_qk_norm = false;            // norm over each head's q and k before rope
  bool is_qk_norm_full_width = false;  // over all heads at once
  bool is_qk_norm_by_head = false;     // every head has a weight of its own
  bool qk_norm_follows_rope = false;   // behind rope instead
  NormKind qk_norm_kind = NormKind::kRms;
  double clip = 0.0;  // q, k and v are kept within +-clip; 0: they stay
  double alibi_max =
      0.0;  // ALiBi: scores - slope * distance, slopes from 2^-(max/heads) down to 2^-max; 0: none
  bool uses_rope = true;
  double scale = 0.0;     // multiplies q.k; 1/sqrt(head_dim) unless the config says otherwise
  double soft_cap = 0.0;  // scores become cap * tanh(score / cap); 0: they stay
  bool has_sinks =
      false;  // one more logit per query head takes part in the softmax and belongs to no position
  bool has_output_gate = false;  // the query matrix holds [q, gate] of each head: output * sigmoid(gate)
  bool is_gate_apart = false;    // the gate's rows are a matrix of their own
  bool has_unit_norm_after_rope = false;  // q and k are normalized without weights, behind rope (Llama 4)
  // queries * (1 + scale * log(1 + floor((position + shift) / tokens))); scale 0: they stay (Llama 4)
  double temperature_scale = 0.0;
  std::int64_t temperature_tokens = 1;
  std::int64_t temperature_shift = 1;
  double output_scale = 1.0;  // multiplies what the output matrix gives
  int value_dim() const { return value_head_dim > 0 ? value_head_dim : head_dim; }
  bool operator==(const Attention&) const = default;
};

/// One compressed vector per token (MLA), with an indexer where it is sparse.
struct Latent {
  int q_heads = 0;
  int q_lora_rank = 0;  // 0: queries are not compressed
  int kv_lora_rank = 0;
  int qk_rope_head_dim = 0;
  int qk_nope_head_dim = 0;
  int v_head_dim = 0;
  std::optional<Indexer> indexer = {};
  std::optional<std::int64_t> window_tokens = {};  // the raw vectors are kept for so many positions only
  bool uses_rope = true;                           // of the qk_rope_head_dim part
  double scale = 0.0;     // multiplies q.k; 1/sqrt(nope + rope) unless the config says otherwise
  double norm_eps = 0.0;  // of the norms on the compressed vectors; 0: the model's
  // queries * (1 + scale * log(1 + floor(position / tokens))); scale 0: they stay (Mistral 4)
  double temperature_scale = 0.0;
  std::int64_t temperature_tokens = 1;
  int tokens_per_entry = 1;  // above 1: beside them one compressed vector for so many tokens
  int width() const { return kv_lora_rank + qk_rope_head_dim; }  // values that a position stores
  bool operator==(const Latent&) const = default;
};

enum class StateKind { kMamba, kMamba2, kGatedDeltaNet, kKda, kLightning, kLinear, kShortConv, kIndexRing };
/// mamba mamba2 gated_delta_net kda lightning linear short_conv index_ring
std::string_view to_string(StateKind kind);

/// A state of fixed size that a sequence keeps in a layer, however long it is.
struct State {
  StateKind kind = StateKind::kMamba;
  int heads = 0;                          // heads or groups that tensor parallelism splits; 0: not by heads
  std::int64_t recurrent_elements = 0;    // [heads, head_dim, state_size] or what the kind has
  std::int64_t convolution_elements = 0;  // [channels, kernel - 1], in the dtype of activations
  int kernel = 0;                         // of that convolution; 0: there is none, or it is not known
  int groups = 0;                         // Mamba 2: heads share B and C in so many groups
  std::int64_t group_channels = 0;        // of the channels, those of one group's B and C
  bool is_copied = false;                 // tensor parallelism does not split it: every rank keeps all
  std::optional<DType> recurrent_dtype = {};    // declared by the config; else the dtype of activations
  bool is_recurrent_dtype_assumed = false;      // the architecture's own, where the config declares none
  std::int64_t chunk_tokens = 0;                // Mamba 2: that its kernels take at once; 0: not said
  std::optional<DType> convolution_dtype = {};  // where the engine fixes it; else the dtype of activations
  int head_dim = 0;                             // values of a head: rows of its state; 0: not by heads
  int state_size = 0;                           // of a row, what the recurrence carries; 0: not known
  int key_heads = 0;        // delta nets: heads of q and k, each for heads / key_heads of values
  int time_rank = 0;        // Mamba 1: width that the step is projected from
  double least_step = 0.0;  // Mamba 2: bounds of the step
  double longest_step = std::numeric_limits<double>::infinity();
  bool norms_before_gate = false;                     // norm(x) * act(gate) instead of norm(x * act(gate))
  int norm_groups = 1;                                // groups of channels that are normalized apart
  double norm_eps = 0.0;                              // of the output's norm; 0: the model's
  std::array<double, 5> input_scales{1, 1, 1, 1, 1};  // Mamba 2: of gate, x, B, C and step, as they come in
  double output_scale = 1.0;                          // multiplies what the output matrix gives
  std::int64_t rows() const { return state_size > 0 ? recurrent_elements / state_size : 0; }
  std::int64_t channels() const { return kernel > 1 ? convolution_elements / (kernel - 1) : 0; }
  bool operator==(const State&) const = default;
};

/// Attention of encoders: each position sees all of the text, what stands behind it too. Nothing is kept.
struct TwoSided {
  Attention attention;
  bool operator==(const TwoSided&) const = default;
};

struct NoMixer {
  bool operator==(const NoMixer&) const = default;
};  // a layer without attention or state

using Mixer = std::variant<Attention, Latent, State, NoMixer, TwoSided>;
/// full sliding chunked cross mla sparse_mla, those of StateKind, none
std::string_view kind_of(const Mixer& mixer);

/// How the rows of several matrices stand in one: heads of q, k and v, or gate and up.
enum class FusedRows {
  kStacked,   // all of the first, then all of the next
  kPerHead,   // q, k and v of a query head, then those of the next
  kPerGroup,  // the queries that share a KV head, its k and its v, then the next
};

enum class FfnKind { kDense, kMoe, kNone };
enum class Activation {
  kSilu,
  kGelu,
  kGeluTanh,
  kRelu,
  kRelu2,
  kClampedSwiglu,  // gate * sigmoid(alpha * gate) * (up + 1), both clamped (gpt-oss)
  kXielu,          // with numbers of the layer (Apertus)
  kOther,
};

/// How a mixture of experts chooses, and what the chosen ones weigh.
struct Router {
  enum class Scores { kSoftmax, kSigmoid };
  Scores scores = Scores::kSoftmax;
  bool is_normalized = false;  // weights of the chosen ones are divided by their sum
  double scale = 1.0;          // multiplies the weights
  int groups = 1;              // experts are chosen from the best `groups_per_token` of so many groups,
  int groups_per_token = 1;
  bool sums_two_of_group = false;  // which are ranked by their two best experts instead of the best one
  bool scales_input = false;       // weights multiply what experts read instead of what they give
  bool operator==(const Router&) const = default;
};

struct Ffn {
  FfnKind kind = FfnKind::kDense;
  int intermediate_size = 0;
  bool is_gated = true;  // down(act(gate(x)) * up(x)) instead of down(act(up(x)))
  bool has_bias = false;
  Activation activation = Activation::kSilu;
  double swiglu_alpha = 0.0, swiglu_limit = 0.0;  // kClampedSwiglu: gate <= limit, |up| <= limit
  double gate_scale = 1.0, output_scale = 1.0;    // multiply what the gate's and the last matrix give
  int experts = 0, experts_per_token = 0, shared_experts = 0, expert_intermediate_size = 0;  // kMoe
  int shared_intermediate_size = 0;  // of all shared experts together
  Router router = {};
  bool operator==(const Ffn&) const = default;
};

/// How a block's output joins what it read: kept * input + added * output.
struct Residual {
  double kept = 1.0, added = 1.0;
  bool operator==(const Residual&) const = default;
};

struct Layer {
  Mixer mixer;
  Ffn ffn;
  std::vector<State> side_states = {};  // states beside the mixer (Falcon-H1's Mamba, a convolution, ...)
  std::optional<int> kv_source = {};    // reads the keys and values of that layer and stores none
  int num_mixers = 1;                   // blocks like `mixer` in this layer, each with a cache of its own
  Residual mixer_residual = {}, ffn_residual = {};
  bool operator==(const Layer&) const = default;
};

/// A layer's attention, one-sided or two-sided; null for other mixers.
inline const Attention* attention_in(const Layer& layer) {
  if (const auto* two_sided = std::get_if<TwoSided>(&layer.mixer)) return &two_sided->attention;
  return std::get_if<Attention>(&layer.mixer);
}

}  // namespace plimsoll::model
