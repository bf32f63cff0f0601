// SPDX-License-Identifier: Apache-2.0
// What architecture is this? A ModelSpec of plain facts, read from config.json or GGUF keys by one file per
// family. Memory, plan and engine read it and never a family's name. Pure values. Headers beside it: rope.h,
// context_length.h, key_reader.h; quantization.h, stored_weights.h, tensor_kinds.h (how weights are stored).
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
  bool uses_rope = true;
  double scale = 0.0;     // multiplies q.k; 1/sqrt(head_dim) unless the config says otherwise
  double soft_cap = 0.0;  // scores become cap * tanh(score / cap); 0: they stay
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
  bool operator==(const State&) const = default;
};

struct NoMixer {
  bool operator==(const NoMixer&) const = default;
};  // a layer without attention or state

using Mixer = std::variant<Attention, Latent, State, NoMixer>;

enum class NormKind { kRms, kLayerNorm };  // of the root mean square; of mean and variance

/// How the rows of several matrices stand in one: heads of q, k and v, or gate and up.
enum class FusedRows {
  kStacked,   // all of the first, then all of the next
  kPerHead,   // q, k and v of a query head, then those of the next
  kPerGroup,  // the queries that share a KV head, its k and its v, then the next
};

enum class FfnKind { kDense, kMoe, kNone };
enum class Activation { kSilu, kGelu, kGeluTanh, kRelu, kRelu2, kOther };

/// How a mixture of experts chooses, and what the chosen ones weigh.
struct Router {
  enum class Scores { kSoftmax, kSigmoid };
  Scores scores = Scores::kSoftmax;
  bool is_normalized = false;  // weights of the chosen ones are divided by their sum
  double scale = 1.0;          // multiplies the weights
  int groups = 1;              // experts are chosen from the best `groups_per_token` of so many groups,
  int groups_per_token = 1;
  bool sums_two_of_group = false;  // which are ranked by their two best experts instead of the best one
  bool operator==(const Router&) const = default;
};

struct Ffn {
  FfnKind kind = FfnKind::kDense;
  int intermediate_size = 0;
  bool is_gated = true;  // down(act(gate(x)) * up(x)) instead of down(act(up(x)))
  bool has_bias = false;
  Activation activation = Activation::kSilu;
  int experts = 0, experts_per_token = 0, shared_experts = 0, expert_intermediate_size = 0;  // kMoe
  int shared_intermediate_size = 0;  // of all shared experts together
  Router router = {};
  bool operator==(const Ffn&) const = default;
};

struct Layer {
  Mixer mixer;
  Ffn ffn;
  std::vector<State> side_states = {};  // states beside the mixer (Falcon-H1's Mamba, a convolution, ...)
  std::optional<int> kv_source = {};    // reads the keys and values of that layer and stores none
  int num_mixers = 1;                   // blocks like `mixer` in this layer, each with a cache of its own
  bool operator==(const Layer&) const = default;
};

/// What a weight is for in the engine; with its layer it names one tensor, whatever the file calls it.
enum class Role {
  kNone,  // the engine does not use it
  kTokenEmbedding,
  kPositionEmbedding,
  kOutputNorm,
  kOutputNormBias,
  kOutputHead,
  kOutputHeadBias,
  kAttentionNorm,
  kAttentionNormBias,
  kAttentionPostNorm,  // behind the attention, before its output is added
  kQuery,
  kKey,
  kValue,
  kQueryKeyValue,  // in one matrix, by the spec's fused_qkv
  kAttentionOutput,
  kQueryBias,
  kKeyBias,
  kValueBias,
  kQueryKeyValueBias,
  kAttentionOutputBias,
  kQueryNorm,
  kKeyNorm,
  kFfnNorm,
  kFfnNormBias,
  kFfnPostNorm,
  kGate,
  kUp,
  kGateUp,  // in one matrix, stacked
  kDown,
  kGateBias,
  kUpBias,
  kGateUpBias,
  kDownBias,
  kRouter,
  kScoreBias,   // corrects the scores for the choice only
  kExpertGate,  // of each expert a matrix,
  kExpertUp,
  kExpertDown,
  kExpertGateUp,  // or of all experts one tensor, gate and up stacked in it
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedExpertGate,  // weighs the shared expert
  kQueryCompression,  // latent attention: q_a, its norm, q_b
  kQueryCompressionNorm,
  kQueryExpansion,
  kLatentCompression,  // kv_a with the rotating key, its norm, kv_b
  kLatentNorm,
  kLatentExpansion,
  kRopeFrequencies,
};

/// Which part of the model a weight belongs to; how parameters are told apart.
enum class WeightGroup {
  kEmbedding,
  kTable,  // looked up per token beside the embedding: n-gram and per-layer embeddings
  kAttention,
  kIndexer,
  kState,  // mixers with a state: Mamba, delta nets, convolutions
  kFfn,
  kRouter,
  kExperts,  // routed
  kSharedExperts,
  kNorm,
  kHead,
  kEncoder,  // vision and audio towers, their projectors, encoders of encoder-decoders
  kMtp,      // multi-token prediction layers: no part of the model proper
  kOther,
};
/// embedding table attention indexer state ffn router experts shared_experts norm head encoder mtp other
std::string_view to_string(WeightGroup group);

struct Weight {
  WeightGroup group = WeightGroup::kOther;
  Role role = Role::kNone;
  int layer = -1;                   // -1: belongs to no layer
  std::vector<std::int64_t> shape;  // outermost first: linear layers are [out, in]
  std::string hf_name;              // model.layers.0.self_attn.q_proj.weight; "{}" for the index of a copy
  std::string gguf_name;            // blk.0.attn_q.weight
  int copies = 1;                   // as many of one shape: experts
  bool is_optional = false;         // may be absent from the file (kRopeFrequencies of GGUF)
  bool is_parameter = true;         // counts as a parameter (buffers do not)
  std::optional<DType> dtype = {};  // stored in it whatever the model's is (integers of a hash)
  bool is_linear = false;           // a matrix that quantization takes (embeddings, norms, biases are none)
  bool is_turned = false;           // stored as [in, out]

  /// Product of the shape; read_spec bounds the figures of a config so that it fits 63 bits with copies.
  std::int64_t elements() const;
  bool operator==(const Weight&) const = default;
};

/// Arithmetic beyond the plain decoder (pre-norms of RMS kind, rope, gated feed-forward, no scales). An
/// engine that does not know one of a model's traits must refuse the model.
enum class Trait {
  kLayerNorm,         // mean and variance norms
  kNormPlusOne,       // norms multiply by 1 + weight
  kPostNorms,         // norms behind attention and feed-forward, beside or instead of those before
  kParallelBlocks,    // attention and feed-forward read the same input
  kLearnedPositions,  // added to the embedding
  kAlibi,
  kSoftCap,  // logits or attention scores pass a tanh
  kAttentionSinks,
  kOutputGate,       // attention's output is gated
  kFullWidthQkNorm,  // q and k are normalized over all heads at once
  kResidualStreams,  // hyper-connections
  kPerLayerInputs,   // per-layer or n-gram embeddings enter each layer
  kEncoderDecoder,
  kOwnScales,     // multipliers of embeddings, residuals, attention or logits that the spec does not hold
  kOwnAttention,  // attention of its own kind (differential, block-sparse, ...)
  kOwnFfn,        // feed-forward of its own kind
  kOwnRope,       // rotary kinds beyond RopeSpec
  kUnknown,       // structure is known, arithmetic was not looked at
};
/// "mean and variance norms", ...: what the trait is, for people.
std::string_view describe(Trait trait);

/// A figure that the config leaves out, and the value of its class that stands for it.
struct AssumedFigure {
  std::string key;
  std::int64_t value = 0;
  bool is_null = false;  // written as null, which transformers refuses
  bool operator==(const AssumedFigure&) const = default;
};

struct ModelSpec {
  std::string architecture;  // LlamaForCausalLM; for GGUF the value of general.architecture mapped to it
  std::string model_type;    // llama
  std::string name;          // general.name or the folder's name; may be empty
  int hidden_size = 0;
  std::int64_t vocab_size = 0;
  double norm_eps = 1e-5;
  bool ties_embeddings = false;   // the output head is the input embedding
  std::vector<Layer> layers;      // of the decoder, in order
  std::vector<Layer> mtp_layers;  // multi-token prediction, behind the decoder
  RopeSpec rope;
  std::optional<RopeSpec> window_rope;       // of layers with a window, where it is another
  std::int64_t native_context_tokens = 0;    // what the weights were trained for before scaling
  std::int64_t extended_context_tokens = 0;  // reachable with the declared scaling
  std::optional<DType> declared_dtype;       // torch_dtype / dtype of the config
  std::string quantization;           // quant_method of the config (awq, gptq, fp8, ...); empty: as declared
  std::vector<std::string> encoders;  // vision_config, audio_config: encoders beside the language model
  double embedding_scale = 1.0;       // multiplies the embedding (Granite, Gemma)
  double residual_scale = 1.0;        // multiplies each block's output before it is added (Granite)
  double logits_scale = 1.0;          // multiplies the logits (Granite: 1/logits_scaling)
  double logits_soft_cap = 0.0;       // logits become cap * tanh(logit / cap); 0: they stay
  NormKind norm_kind = NormKind::kRms;
  bool norm_adds_one = false;  // norms multiply by 1 + weight
  bool is_parallel = false;    // attention and feed-forward read the same input, not one the other's
  FusedRows fused_qkv = FusedRows::kStacked;
  int first_position = 0;       // row of the position embedding that belongs to the first token
  std::vector<Trait> traits;    // what an engine must know besides
  std::vector<Weight> weights;  // every weight, in the order of the forward pass; a tied head once
  bool has_all_weights = true;  // false: some part's weights are not known (an encoder of unknown kind)
  std::vector<AssumedFigure> assumed;  // essential figures that the config does not state
  bool has_file_names = false;         // weights carry the names that published checkpoints use

  /// Longest sequence that config and scaling declare; 0 when they declare none.
  std::int64_t context_tokens() const { return std::max(extended_context_tokens, native_context_tokens); }

  bool operator==(const ModelSpec&) const = default;
};

/// The tensor that the artifact holds for a weight, under its form's name for it; null when there is none.
const artifact::Tensor* find_tensor(const artifact::Artifact& artifact, const Weight& weight);

/// Logical parameters by the spec alone: weights that are parameters, prediction layers (kMtp) left out.
/// Nothing when some part's weights are not known.
std::optional<std::int64_t> count_parameters(const ModelSpec& spec);

/// Parameters that one token uses: routed experts by their share, tables and encoders not.
/// `with_embedding` counts the input embedding in. Nothing when the total or the experts are not known.
std::optional<std::int64_t> count_active_parameters(const ModelSpec& spec, bool with_embedding);

/// Reads the spec out of an artifact's config or GGUF metadata. Weights are not looked at.
/// Errors: kUnsupported for an architecture no family reads (naming it and the known ones);
///         kMalformed with the JSON pointer for a missing, mistyped or absurd value.
Result<ModelSpec> read_spec(const artifact::Artifact& artifact);
/// The same from a bare config.json tree.
Result<ModelSpec> read_spec(const Json& config, std::string_view source);

/// The object that holds the language model's figures: `config` itself, or the text_config (llm_config, ...)
/// of a multimodal wrapper, at any depth. `pointer` gets its JSON pointer ("" or
/// "/thinker_config/text_config").
const Json& language_config(const Json& config, std::string& pointer);

}  // namespace plimsoll::model
