// SPDX-License-Identifier: Apache-2.0
#include "model/families/gguf_any.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "model/families/decoder.h"
#include "model/families/heads.h"
#include "model/families/states.h"
#include "model/rope.h"

namespace plimsoll::model {
namespace {

// Far above any model; a state of these figures in every layer still fits 63 bits of bytes.
constexpr std::int64_t kMaxStateSize = 1 << 16;

// Which layers see everything where the file itself has no pattern: every n-th, as llama.cpp has it built in.
struct Pattern {
  std::string_view architecture;
  std::int64_t full_every;
  bool is_chunked;
};
constexpr std::array<Pattern, 11> kPatterns{{
    {"gemma2", 2, false},
    {"gemma3", 6, false},
    {"gemma3n", 5, false},
    {"cohere2", 4, false},
    {"olmo2", 4, false},
    {"exaone4", 4, false},
    {"gpt-oss", 2, false},
    {"llama4", 4, true},
    {"smallthinker", 4, false},
    {"afmoe", 4, false},
    {"gemma-embedding", 6, false},
}};

// Linear attention in all but every n-th layer, where the file does not state the distance: llama.cpp's own.
constexpr std::array<std::string_view, 3> kHybrids{"qwen3next", "qwen35", "qwen35moe"};
constexpr std::int64_t kHybridInterval = 4;

// Their layers without heads keep a state, whose figures no file may lack: llama.cpp refuses it then.
constexpr std::array<std::string_view, 8> kStateful{"jamba",     "granitehybrid", "mamba",          "mamba2",
                                                    "falcon-h1", "nemotron_h",    "nemotron_h_moe", "plamo2"};

// An encoder sees all of its input at once and keeps nothing. Their converters write attention.causal; files
// older than the key are told by their name.
bool is_encoder(std::string_view architecture) {
  return architecture.find("bert") != std::string_view::npos || architecture == "t5encoder";
}

class AnyReader {
 public:
  AnyReader(KeyReader& keys, const artifact::Artifact& artifact, std::string_view architecture)
      : keys_(keys), artifact_(artifact), architecture_(architecture) {}

  ModelSpec read() {
    spec_ = read_gguf_frame(keys_, artifact_);
    take_prediction_layers();
    take_decoder_layers();
    const std::size_t layers = spec_.layers.size();
    q_heads_ = per_layer("attention.head_count", kMaxHeads);
    kv_heads_ =
        keys_.has("attention.head_count_kv") ? per_layer("attention.head_count_kv", kMaxHeads) : q_heads_;
    inner_ = per_layer("feed_forward_length", kMaxWidth);
    if (!keys_.flag("attention.causal", !is_encoder(architecture_)))
      std::fill(kv_heads_.begin(), kv_heads_.end(), 0);
    read_figures();
    for (std::size_t i = 0; i < layers; ++i) fill(i);
    set_windows();
    share_keys();
    read_gguf_rope(keys_, rotary_width(), spec_);
    add_trait(spec_, Trait::kUnknown);
    spec_.has_all_weights = false;
    return std::move(spec_);
  }

 private:
  int number(std::string_view key, std::int64_t most, std::int64_t otherwise = 0) {
    return static_cast<int>(keys_.integer(key, 0, most, otherwise));
  }

  // block_count counts the layers that predict further tokens, which stand last.
  void take_prediction_layers() {
    const std::size_t layers = spec_.layers.size();
    const auto predicted = static_cast<std::size_t>(
        keys_.integer("nextn_predict_layers", 0, static_cast<std::int64_t>(layers) - 1, 0));
    spec_.mtp_layers.resize(predicted);
    spec_.layers.resize(layers - predicted);
  }

  // Of an encoder-decoder block_count counts the encoder's layers; the decoder's keep keys and values.
  void take_decoder_layers() {
    const auto layers = static_cast<std::int64_t>(spec_.layers.size());
    spec_.layers.resize(
        static_cast<std::size_t>(keys_.integer("decoder_block_count", 1, kMaxLayers, layers)));
  }

  // One value per block, of which those of prediction layers are left out.
  std::vector<std::int64_t> per_layer(std::string_view key, std::int64_t most) {
    const std::size_t layers = spec_.layers.size(), blocks = layers + spec_.mtp_layers.size();
    const bool has_all = keys_[key].is_array() && keys_[key].size() == blocks;
    auto values = keys_.per_layer(key, has_all ? blocks : layers, 0, most, 0);
    values.resize(layers);
    return values;
  }

  // The width that rotates by default: of the first layer with heads of its own, or of latent attention.
  int rotary_width() {
    for (const Layer& layer : spec_.layers) {
      if (const auto* attention = std::get_if<Attention>(&layer.mixer)) return attention->head_dim;
      if (const auto* latent = std::get_if<Latent>(&layer.mixer)) return latent->qk_rope_head_dim;
    }
    return number("rope.dimension_count", kMaxHeadDim);
  }

  // What all layers share is looked up once: metadata may have as many keys as the vocabulary has tokens.
  void read_figures() {
    const bool is_hybrid = std::find(kHybrids.begin(), kHybrids.end(), architecture_) != kHybrids.end();
    if (is_hybrid || keys_.has("full_attention_interval"))
      full_interval_ = keys_.integer("full_attention_interval", 1, kMaxLayers, kHybridInterval);
    if (keys_.has("ssm.state_size") || keys_.has("shortconv.l_cache") || keys_.has("wkv.head_size") ||
        keys_.has("kda.head_dim"))
      state_ = state();
    else if (is_hybrid || std::find(kStateful.begin(), kStateful.end(), architecture_) != kStateful.end())
      (void)keys_.count("ssm.state_size", kMaxStateSize);
    // Nemotron-H: a layer is attention, state or feed-forward, never two of them.
    is_alternating_ =
        keys_["feed_forward_length"].is_array() && std::find(inner_.begin(), inner_.end(), 0) != inner_.end();
    key_length_ = number("attention.key_length", kMaxHeadDim);
    value_length_ = number("attention.value_length", kMaxHeadDim);
    window_key_length_ = number("attention.key_length_swa", kMaxHeadDim);
    window_value_length_ = number("attention.value_length_swa", kMaxHeadDim);
    if (keys_.has("attention.kv_lora_rank")) latent_ = latent();
    experts_.experts = number("expert_count", kMaxExperts);
    experts_.experts_per_token = number("expert_used_count", kMaxExperts);
    experts_.shared_experts = number("expert_shared_count", kMaxExperts);
    experts_.expert_intermediate_size = number("expert_feed_forward_length", kMaxWidth);
    experts_.shared_intermediate_size = number("expert_shared_feed_forward_length", kMaxWidth);
    dense_layers_ = number("leading_dense_block_count", kMaxLayers);
  }

  void fill(std::size_t i) {
    Layer& layer = spec_.layers[i];
    // Qwen 3 Next and its successors name the distance between full layers, not the layers.
    const bool is_linear = full_interval_ > 0 && (static_cast<std::int64_t>(i) + 1) % full_interval_ != 0;
    if (kv_heads_[i] > 0 && !is_linear)
      layer.mixer = attention(i);
    else if (state_ && !(inner_[i] > 0 && is_alternating_))
      layer.mixer = *state_;
    else
      layer.mixer = NoMixer{};
    if (architecture_ == "falcon-h1" && state_) layer.side_states = {*state_};
    fill_ffn(i, layer.ffn);
  }

  Mixer attention(std::size_t i) {
    const auto heads = static_cast<int>(std::max<std::int64_t>(1, q_heads_[i]));
    if (latent_) {
      Latent latent = *latent_;
      latent.q_heads = heads;
      return latent;
    }
    Attention attention;
    attention.q_heads = heads;
    attention.kv_heads = static_cast<int>(kv_heads_[i]);
    attention.head_dim =
        read_head_dim(keys_, spec_.hidden_size, heads, "", "attention.head_count", key_length_);
    attention.value_head_dim = value_length_ == attention.head_dim ? 0 : value_length_;
    attention.scale = 1.0 / std::sqrt(static_cast<double>(attention.head_dim));
    check_heads(keys_, attention, "attention.head_count_kv");
    return attention;
  }

  // The converter writes the stored vector's width as key_length, and the heads' own widths as *_mla.
  Latent latent() {
    Latent latent;
    latent.q_lora_rank = number("attention.q_lora_rank", kMaxWidth);
    latent.kv_lora_rank = keys_.count("attention.kv_lora_rank", kMaxWidth);
    latent.qk_rope_head_dim = number("rope.dimension_count", kMaxHeadDim);
    const int key = number("attention.key_length_mla", kMaxHeadDim, key_length_);
    latent.qk_nope_head_dim = std::max(0, key - latent.qk_rope_head_dim);
    latent.v_head_dim = number("attention.value_length_mla", kMaxHeadDim, value_length_);
    if (keys_.has("attention.indexer.top_k"))
      latent.indexer = Indexer{.heads = number("attention.indexer.head_count", kMaxHeads),
                               .head_dim = number("attention.indexer.key_length", kMaxHeadDim),
                               .selected_tokens = number("attention.indexer.top_k", kMaxVocab)};
    return latent;
  }

  // llama.cpp keeps every state in 32 bit.
  State state() {
    State state;
    state.recurrent_dtype = DType::kF32;
    state.convolution_dtype = DType::kF32;
    const std::int64_t width = spec_.hidden_size;
    if (keys_.has("shortconv.l_cache")) {
      state.kind = StateKind::kShortConv;
      state.convolution_elements = width * std::max(0, number("shortconv.l_cache", kMaxKernel) - 1);
      return state;
    }
    if (keys_.has("wkv.head_size")) {
      state.kind = StateKind::kLinear;
      state.recurrent_elements = width * number("wkv.head_size", kMaxHeadDim);
      state.convolution_elements = width * number("token_shift_count", 16, 2);
      return state;
    }
    if (const std::int64_t side = number("kda.head_dim", kMaxHeadDim); side > 0) {
      // A matrix a head, and convolutions of queries, keys and values.
      const std::int64_t heads = *std::max_element(q_heads_.begin(), q_heads_.end());
      state.kind = StateKind::kKda;
      state.heads = static_cast<int>(heads);
      state.recurrent_elements = heads * side * side;
      state.convolution_elements = 3 * heads * side * std::max(0, number("ssm.conv_kernel", kMaxKernel) - 1);
      return state;
    }
    const std::int64_t inner = number("ssm.inner_size", kMaxWidth),
                       size = number("ssm.state_size", kMaxStateSize);
    const std::int64_t groups = number("ssm.group_count", kMaxHeads);
    state.heads = number("ssm.time_step_rank", kMaxHeads);
    state.recurrent_elements = inner * size;
    state.convolution_elements =
        std::max(0, number("ssm.conv_kernel", kMaxKernel) - 1) * (inner + 2 * groups * size);
    if (full_interval_ > 0)
      state.kind = StateKind::kGatedDeltaNet;
    else
      state.kind = groups > 0 ? StateKind::kMamba2 : StateKind::kMamba;
    return state;
  }

  void fill_ffn(std::size_t i, Ffn& ffn) const {
    const bool is_moe = experts_.experts > 0 && static_cast<std::int64_t>(i) >= dense_layers_;
    if (is_moe) ffn = experts_;
    ffn.intermediate_size = static_cast<int>(inner_[i]);
    ffn.kind = is_moe ? FfnKind::kMoe : inner_[i] > 0 ? FfnKind::kDense : FfnKind::kNone;
    if (!is_moe) return;
    if (ffn.expert_intermediate_size == 0) ffn.expert_intermediate_size = ffn.intermediate_size;
    if (ffn.shared_intermediate_size == 0)
      ffn.shared_intermediate_size = static_cast<int>(
          std::min(std::int64_t{ffn.shared_experts} * ffn.expert_intermediate_size, kMaxSharedWidth));
    if (ffn.shared_experts == 0 && ffn.shared_intermediate_size > 0) ffn.shared_experts = 1;
  }

  void set_windows() {
    const std::int64_t window = keys_.integer("attention.sliding_window", 0, kMaxContext, 0);
    const auto pattern = std::find_if(kPatterns.begin(), kPatterns.end(),
                                      [&](const Pattern& row) { return row.architecture == architecture_; });
    const bool is_chunked = pattern != kPatterns.end() && pattern->is_chunked;
    const std::int64_t length =
        is_chunked ? keys_.integer("attention.chunk_size", 1, kMaxContext, 8192) : window;
    if (length <= 0) return;
    const Json& stated = keys_["attention.sliding_window_pattern"];
    for_each_attention(spec_, [&](Attention& attention, std::size_t i) {
      bool has_window = true;
      if (stated.is_array() && i < stated.size())
        has_window = stated.items()[i].as_bool().value_or(stated.items()[i].as_integer().value_or(0) != 0);
      else if (const auto every = stated.as_integer(); every && *every > 0)
        has_window = (static_cast<std::int64_t>(i) + 1) % *every != 0;
      else if (pattern != kPatterns.end())
        has_window = (static_cast<std::int64_t>(i) + 1) % pattern->full_every != 0;
      if (!has_window) return;
      if (window_key_length_ > 0) attention.head_dim = window_key_length_;
      if (window_value_length_ > 0)
        attention.value_head_dim = window_value_length_ == attention.head_dim ? 0 : window_value_length_;
      (is_chunked ? attention.chunk_tokens : attention.window_tokens) = length;
    });
  }

  // The last layers read the keys and values of the last one of their kind before them.
  void share_keys() {
    const std::int64_t shared = keys_.integer("attention.shared_kv_layers", 0, kMaxLayers, 0);
    const auto layers = static_cast<std::int64_t>(spec_.layers.size());
    for (std::int64_t i = std::max<std::int64_t>(0, layers - shared); i < layers; ++i)
      spec_.layers[static_cast<std::size_t>(i)].kv_source = last_alike(i, layers - shared);
  }

  std::optional<int> last_alike(std::int64_t layer, std::int64_t first_shared) const {
    const auto* own = std::get_if<Attention>(&spec_.layers[static_cast<std::size_t>(layer)].mixer);
    for (std::int64_t i = first_shared - 1; own && i >= 0; --i) {
      const auto* other = std::get_if<Attention>(&spec_.layers[static_cast<std::size_t>(i)].mixer);
      if (other && other->window_tokens == own->window_tokens) return static_cast<int>(i);
    }
    return std::nullopt;
  }

  KeyReader& keys_;
  const artifact::Artifact& artifact_;
  std::string_view architecture_;
  ModelSpec spec_;
  std::vector<std::int64_t> q_heads_, kv_heads_, inner_;  // [layers]
  std::optional<State> state_;
  std::optional<Latent> latent_;
  Ffn experts_;  // of the layers that are mixtures
  std::int64_t full_interval_ = 0, dense_layers_ = 0;
  int key_length_ = 0, value_length_ = 0, window_key_length_ = 0, window_value_length_ = 0;
  bool is_alternating_ = false;
};

}  // namespace

ModelSpec read_any_gguf(KeyReader& keys, const artifact::Artifact& artifact, std::string_view architecture) {
  return AnyReader(keys, artifact, architecture).read();
}

}  // namespace plimsoll::model
