// SPDX-License-Identifier: Apache-2.0
// What architecture is this? A ModelSpec of plain facts, read from config.json or GGUF keys by one file per
// family. Memory, plan and engine read the spec and never a family's name. Pure values, no ownership beyond
// their own.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "artifact/artifact.h"
#include "base/dtype.h"
#include "base/result.h"

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
  bool interleaved = false;  // pairs (0,1),(2,3).. (GGUF llama order) instead of halves (i, i+d/2)
  bool operator==(const RopeSpec&) const = default;
};

/// Keys and values per head: MHA, GQA, MQA.
struct Attention {
  int q_heads = 0;
  int kv_heads = 0;
  int head_dim = 0;
  std::optional<std::int64_t> window_tokens;  // sliding window: positions further back are not seen
  bool has_qkv_bias = false;
  bool has_output_bias = false;
  bool has_qk_norm = false;  // RMS norm over each head's q and k before rope
  bool uses_rope = true;
  double scale = 0.0;  // multiplies q.k; 1/sqrt(head_dim) unless the config says otherwise
  bool operator==(const Attention&) const = default;
};

/// One compressed vector per token (MLA). Filled by the families that have it.
struct Latent {
  int q_heads = 0;
  int kv_lora_rank = 0;
  int qk_rope_head_dim = 0;
  int qk_nope_head_dim = 0;
  int v_head_dim = 0;
  bool operator==(const Latent&) const = default;
};

/// A state of fixed size (Mamba, gated delta net, ...). Filled by the families that have it.
struct State {
  std::string kind;
  std::int64_t state_elements = 0;
  bool operator==(const State&) const = default;
};

struct NoMixer {
  bool operator==(const NoMixer&) const = default;
};  // a layer without attention or state

using Mixer = std::variant<Attention, Latent, State, NoMixer>;

enum class FfnKind { kDense, kMoe, kNone };
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu, kRelu2 };

struct Ffn {
  FfnKind kind = FfnKind::kDense;
  int intermediate_size = 0;
  bool is_gated = true;  // down(act(gate(x)) * up(x)) instead of down(act(up(x)))
  bool has_bias = false;
  Activation activation = Activation::kSilu;
  int experts = 0, experts_per_token = 0, shared_experts = 0, expert_intermediate_size = 0;  // kMoe
  bool operator==(const Ffn&) const = default;
};

struct Layer {
  Mixer mixer;
  Ffn ffn;
  bool operator==(const Layer&) const = default;
};

struct ModelSpec {
  std::string architecture;  // LlamaForCausalLM; for GGUF the value of general.architecture mapped to it
  std::string model_type;    // llama
  std::string name;          // general.name or the folder's name; may be empty
  int hidden_size = 0;
  std::int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  bool ties_embeddings = false;  // the output head is the input embedding
  std::vector<Layer> layers;
  RopeSpec rope;
  std::int64_t native_context_tokens = 0;    // what the weights were trained for before scaling
  std::int64_t extended_context_tokens = 0;  // reachable with the declared scaling
  std::optional<DType> declared_dtype;       // torch_dtype / dtype of the config
  std::string quantization;           // quant_method of the config (awq, gptq, fp8, ...); empty: as declared
  std::vector<std::string> encoders;  // vision_config, audio_config: encoders beside the language model
  double embedding_scale = 1.0;       // multiplies the embedding (Granite, Gemma)
  double residual_scale = 1.0;        // multiplies each block's output before it is added (Granite)
  double logits_scale = 1.0;          // multiplies the logits (Granite: 1/logits_scaling)

  /// Longest sequence that config and scaling declare; 0 when they declare none.
  std::int64_t context_tokens() const { return std::max(extended_context_tokens, native_context_tokens); }

  bool operator==(const ModelSpec&) const = default;
};

/// What a weight is for; with its layer it names one tensor of the model, whatever the file calls it.
enum class Role {
  kTokenEmbedding,
  kOutputNorm,
  kOutputHead,
  kAttentionNorm,
  kQuery,
  kKey,
  kValue,
  kAttentionOutput,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kAttentionOutputBias,
  kQueryNorm,
  kKeyNorm,
  kFfnNorm,
  kGate,
  kUp,
  kDown,
  kGateBias,
  kUpBias,
  kDownBias,
  kRopeFrequencies,
};

struct Weight {
  Role role;
  int layer = -1;                   // -1: belongs to no layer
  std::vector<std::int64_t> shape;  // outermost first: linear layers are [out, in]
  std::string hf_name;              // model.layers.0.self_attn.q_proj.weight
  std::string gguf_name;            // blk.0.attn_q.weight
  bool is_optional = false;         // may be absent from the file (kRopeFrequencies of GGUF)
  bool is_parameter = true;         // counts as a parameter (buffers do not)

  /// Product of the shape; read_spec bounds the figures of a config so that it fits 63 bits.
  std::int64_t elements() const;
};

/// The tensor that the artifact holds for a weight, under its form's name for it; null when there is none.
const artifact::Tensor* find_tensor(const artifact::Artifact& artifact, const Weight& weight);

/// Every weight the spec calls for, in the order of the forward pass. A tied head is not listed twice.
std::vector<Weight> expected_weights(const ModelSpec& spec);

/// Logical parameters by the spec alone: the sum over expected_weights.
std::int64_t count_parameters(const ModelSpec& spec);

/// Reads the spec out of an artifact's config or GGUF metadata. Weights are not looked at.
/// Errors: kUnsupported for an architecture no family reads (naming it and the known ones);
///         kMalformed with the JSON pointer for a missing, mistyped or absurd value.
Result<ModelSpec> read_spec(const artifact::Artifact& artifact);
/// The same from a bare config.json tree.
Result<ModelSpec> read_spec(const Json& config, std::string_view source);

/// The object that holds the language model's figures: `config` itself, or the text_config (llm_config, ...)
/// of a multimodal wrapper. `pointer` gets its JSON pointer ("" or "/text_config").
const Json& language_config(const Json& config, std::string& pointer);

}  // namespace plimsoll::model
