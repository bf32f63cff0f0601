// SPDX-License-Identifier: Apache-2.0
// What architecture is this? A ModelSpec of plain facts, read from config.json or GGUF keys by one file per
// family. Memory, plan and engine read it and never a family's name. Pure values. Headers beside it: layer.h,
// rope.h, context_length.h, key_reader.h; quantization.h, stored_weights.h, tensor_kinds.h (how weights are
// stored).
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/dtype.h"
#include "base/result.h"
#include "model/layer.h"
#include "model/pooling.h"

namespace plimsoll::model {

/// What a weight is for in the engine; with its layer it names one tensor, whatever the file calls it.
enum class Role {
  kNone,  // the engine does not use it
  kTokenEmbedding,
  kPositionEmbedding,
  kTokenTypeEmbedding,  // [types, hidden]; the first is added to every token
  kEmbeddingNorm,       // of the embedding, before the first layer
  kEmbeddingNormBias,
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
  kQueryNormBias,
  kKeyNormBias,
  kOutputGate,    // of the attention's output, in a matrix of its own
  kAttendedNorm,  // of what the heads give, before the output matrix
  kAttentionSinks,
  kFfnNorm,
  kFfnNormBias,
  kFfnPostNorm,
  kGate,
  kUp,
  kGateUp,  // in one matrix, stacked
  kDown,
  kInnerNorm,  // before the last matrix of the feed-forward
  kXieluPositive,
  kXieluNegative,
  kXieluBeta,
  kXieluEps,
  kGateBias,
  kUpBias,
  kGateUpBias,
  kDownBias,
  kRouter,
  kRouterBias,
  kScoreBias,   // corrects the scores for the choice only
  kExpertGate,  // of each expert a matrix,
  kExpertUp,
  kExpertDown,
  kExpertGateUp,  // or gate and up in one
  kExpertGateUpBias,
  kExpertDownBias,
  kSharedGate,
  kSharedUp,
  kSharedDown,
  kSharedGateUp,      // in one matrix, stacked
  kSharedExpertGate,  // weighs the shared expert
  kQueryCompression,  // latent attention: q_a, its norm, q_b
  kQueryCompressionBias,
  kQueryCompressionNorm,
  kQueryExpansion,
  kLatentCompression,  // kv_a with the rotating key, its norm, kv_b
  kLatentCompressionBias,
  kLatentNorm,
  kLatentExpansion,
  kLatentKeyExpansion,    // or its halves: [heads, lora, nope] for keys,
  kLatentValueExpansion,  // [heads, v, lora] for values
  kStateInput,            // mixers with a state: all that comes in, in one matrix, or
  kStateInputBias,
  kStateQueryKeyValue,  // what passes the convolution,
  kStateGate,           // the output's gate,
  kStateStep,           // the step or decay
  kStateBeta,           // and the strength of a delta net, apart
  kStateStepBeta,       // beta and decay of a group of heads in turn (Qwen 3-Next)
  kStateConvolution,    // [channels, 1, kernel]
  kStateConvolutionBias,
  kStateQueryConvolution,  // or q, k and v each its own
  kStateKeyConvolution,
  kStateValueConvolution,
  kStateSelection,      // Mamba 1: step, B and C from what was convolved
  kStateStepExpansion,  // Mamba 1: channels' steps out of a few; KDA: the decay's second matrix
  kStateGateExpansion,  // KDA: the gate's second matrix
  kStateStepBias,
  kStateDecay,  // A_log
  kStateSkip,   // D
  kStateStepNorm,
  kStateBNorm,
  kStateCNorm,
  kStateNorm,  // of the output
  kStateOutput,
  kStateOutputBias,
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
  bool norm_adds_one = false;       // norms multiply by 1 + weight
  bool has_norm_weights = true;     // false: norms are norms only
  bool residual_is_normed = false;  // blocks add to what their norm gives, not to what it reads (MiniMax)
  bool is_parallel = false;         // attention and feed-forward read the same input, not one the other's
  FusedRows fused_qkv = FusedRows::kStacked;
  bool alternates_gate_up =
      false;                       // kExpertGateUp holds rows of gate and up in turn, not one after the other
  int first_position = 0;          // row of the position embedding that belongs to the first token
  std::optional<Pooling> pooling;  // gives an embedding of a text instead of tokens, and how
  std::vector<Trait> traits;       // what an engine must know besides
  std::vector<Weight> weights;     // every weight, in the order of the forward pass; a tied head once
  bool has_all_weights = true;     // false: some part's weights are not known (an encoder of unknown kind)
  std::vector<AssumedFigure> assumed;  // essential figures that the config does not state
  bool has_file_names = false;         // weights carry the names that published checkpoints use

  /// Longest sequence that config and scaling declare, or the files of an embedding model; 0 when they
  /// declare none.
  std::int64_t context_tokens() const {
    if (pooling && pooling->longest_tokens > 0) return pooling->longest_tokens;
    return std::max(extended_context_tokens, native_context_tokens);
  }

  bool operator==(const ModelSpec&) const = default;
};

/// Whether each layer sees the whole text at once and keeps nothing of it.
bool is_encoder(const ModelSpec& spec);

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
