// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_weights.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "memory/quantized_weights.h"
#include "memory/vllm_kv.h"
#include "model/tensor_kinds.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kVocabularyStep = 64;  // rows of embedding and head are filled up to a multiple of it

enum class Split { kWhole, kEven, kKeyValue, kFusedQkv, kVocabulary };

struct NamedSplit {
  std::string_view module;
  Split weight, bias;
};

// By the module that a weight belongs to. Columns split their bias with their rows; rows keep it whole.
constexpr NamedSplit kSplits[] = {
    {"embed_tokens", Split::kVocabulary, Split::kVocabulary},
    {"lm_head", Split::kVocabulary, Split::kVocabulary},
    {"q_proj", Split::kEven, Split::kEven},
    {"k_proj", Split::kKeyValue, Split::kKeyValue},
    {"v_proj", Split::kKeyValue, Split::kKeyValue},
    {"qkv_proj", Split::kFusedQkv, Split::kFusedQkv},
    {"query_key_value", Split::kFusedQkv, Split::kFusedQkv},
    {"o_proj", Split::kEven, Split::kWhole},
    {"sinks", Split::kEven, Split::kEven},
    {"q_b_proj", Split::kEven, Split::kEven},
    {"kv_b_proj", Split::kEven, Split::kEven},
    {"q_a_proj", Split::kWhole, Split::kWhole},
    {"kv_a_proj_with_mqa", Split::kWhole, Split::kWhole},
    {"gate_proj", Split::kEven, Split::kEven},
    {"up_proj", Split::kEven, Split::kEven},
    {"gate_up_proj", Split::kEven, Split::kEven},
    {"gate_up_proj_bias", Split::kEven, Split::kEven},
    {"down_proj", Split::kEven, Split::kWhole},
    {"down_proj_bias", Split::kWhole, Split::kWhole},
    {"w1", Split::kEven, Split::kEven},
    {"w2", Split::kEven, Split::kWhole},
    {"w3", Split::kEven, Split::kEven},
    {"conv1d", Split::kEven, Split::kEven},
    {"in_proj", Split::kEven, Split::kEven},
    {"in_proj_qkv", Split::kEven, Split::kEven},
    {"in_proj_z", Split::kEven, Split::kEven},
    {"in_proj_a", Split::kEven, Split::kEven},
    {"in_proj_b", Split::kEven, Split::kEven},
    {"in_proj_qkvz", Split::kEven, Split::kEven},
    {"in_proj_ba", Split::kEven, Split::kEven},
    {"x_proj", Split::kEven, Split::kWhole},
    {"dt_proj", Split::kEven, Split::kEven},
    {"dt_bias", Split::kEven, Split::kEven},
    {"A_log", Split::kEven, Split::kEven},
    {"D", Split::kEven, Split::kEven},
    {"out_proj", Split::kEven, Split::kWhole},
    {"shared_expert_gate", Split::kWhole, Split::kWhole},
    // Qwen3.8: residual streams, n-gram layers, index keys, and what feeds the prediction layer.
    {"input_mix_weight_down", Split::kWhole, Split::kWhole},
    {"input_mix_weight_up", Split::kWhole, Split::kWhole},
    {"block_inject_weight", Split::kWhole, Split::kWhole},
    {"key_proj", Split::kWhole, Split::kWhole},
    {"value_proj", Split::kWhole, Split::kWhole},
    {"index_qk_proj", Split::kWhole, Split::kWhole},
    {"fc_embedding", Split::kEven, Split::kEven},
    {"fc_hidden", Split::kEven, Split::kEven},
};

// Of encoders, by the end of a module's name: blocks, and what leads from them to the language model.
constexpr NamedSplit kEncoderBlocks[] = {
    {"attn.q", Split::kEven, Split::kEven},   {"attn.k", Split::kEven, Split::kEven},
    {"attn.v", Split::kEven, Split::kEven},   {"attn.proj", Split::kEven, Split::kWhole},
    {"mlp.gate", Split::kEven, Split::kEven}, {"mlp.fc1", Split::kEven, Split::kEven},
    {"mlp.fc2", Split::kEven, Split::kWhole},
};
constexpr NamedSplit kProjectors[] = {
    {".linear_1", Split::kEven, Split::kEven},
    {".linear_2", Split::kEven, Split::kWhole},
    {".linear_fc1", Split::kEven, Split::kEven},
    {".linear_fc2", Split::kEven, Split::kWhole},
    {"merger.proj", Split::kEven, Split::kEven},
    {"merger.gate_proj", Split::kEven, Split::kEven},
    {"merger.up_proj", Split::kEven, Split::kEven},
    {"merger.down_proj", Split::kEven, Split::kWhole},
    {"patch_embedding.linear", Split::kEven, Split::kEven},
};

constexpr std::int64_t kExpertInputStep = 256;  // of four-bit floats, on each rank
constexpr double kPlainCopy = 2;  // bytes: what latent vectors are unfolded by stays beside the quantized one
constexpr std::int64_t kScalesOfAttention = 16;  // four f32 of each layer: query, key, value, probability
constexpr std::int64_t kSectionedTables = 4;     // positions of videos run further than those of text

// What engines hold in 32 bit whatever the model's type.
constexpr std::string_view kIn32Bit[] = {"A_log", "e_score_correction_bias"};

struct Name {
  std::string_view module;  // the last part that is no "weight" or "bias"
  bool is_bias = false;
};

Name name_of(std::string_view text) {
  Name name;
  const auto last = [&] {
    const std::size_t dot = text.rfind('.');
    return dot == std::string_view::npos ? text : text.substr(dot + 1);
  };
  name.is_bias = last() == "bias";
  if ((name.is_bias || last() == "weight") && last().size() < text.size())
    text.remove_suffix(last().size() + 1);
  name.module = last();
  return name;
}

class RankWeights {
 public:
  RankWeights(const model::ModelSpec& spec, const VllmWeightSettings& settings,
              std::optional<DeclaredSchemes> schemes)
      : spec_(spec),
        settings_(settings),
        schemes_(schemes),
        stages_(settings.stage_of_layer.empty()
                    ? pipeline_stages(static_cast<std::int64_t>(spec.layers.size()), settings.num_stages)
                    : settings.stage_of_layer) {}

  Status add(const model::Weight& weight) {
    if (weight.group == model::WeightGroup::kMtp && !settings_.has_prediction_layers) return {};
    if (weight.group == model::WeightGroup::kEncoder && !settings_.has_encoders) return {};
    if (!is_here(weight)) return {};
    const Name name = name_of(weight.hf_name);
    const bool is_counted = weight.is_parameter || name.module == "e_score_correction_bias";
    if (!is_counted) return {};
    PLIMSOLL_TRY(const std::int64_t elements, elements_of(weight, name));
    const bool is_wide =
        std::find(std::begin(kIn32Bit), std::end(kIn32Bit), name.module) != std::end(kIn32Bit);
    const DType plain = is_wide ? DType::kF32 : weight.dtype.value_or(settings_.dtype);
    auto bytes = stored_bytes(plain, elements);
    if (const auto quantized = quantized_bytes(weight, name, elements)) bytes = quantized;
    const bool is_in_host = settings_.keeps_tables_in_host && is_ngram_table(weight);
    Bytes& total = is_in_host ? total_.in_host : total_.bytes;
    const auto sum = bytes ? checked_sum(total.value, bytes->value) : std::nullopt;
    if (!sum)
      return fail(ErrorCode::kMalformed, "the weights of a rank do not fit 63 bits", weight.hf_name,
                  "check the sizes in the config");
    total = Bytes(*sum);
    return {};
  }

  VllmWeights take() { return std::move(total_); }

 private:
  std::int64_t ranks() const { return settings_.tensor_parallel; }
  // Experts are split over all copies of the model, whether by slices or whole.
  std::int64_t expert_ranks() const { return ranks() * settings_.data_parallel; }

  // The embedding is on the first stage, what follows the last layer on the last; a tied head is on both.
  bool is_here(const model::Weight& weight) const {
    using enum model::WeightGroup;
    const bool is_first = settings_.stage == 0, is_last = settings_.stage == settings_.num_stages - 1;
    const auto layer = static_cast<std::size_t>(weight.layer);
    if (weight.layer >= 0 && layer < stages_.size() && weight.group != kMtp)
      return stages_[layer] == settings_.stage;
    if (weight.group == kEmbedding) return is_first || (is_last && spec_.ties_embeddings);
    if (weight.group == kHead || weight.group == kNorm || weight.group == kMtp) return is_last;
    return is_first;
  }

  // What a quantized weight takes on this rank: its share of what the checkpoint stores.
  std::optional<Bytes> quantized_bytes(const model::Weight& weight, const Name& name, std::int64_t elements) {
    const double share = static_cast<double>(elements) / static_cast<double>(weight.elements());
    if (settings_.linear_format) {
      if (!weight.is_linear || weight.group == model::WeightGroup::kHead) return std::nullopt;
      total_.is_exact = false;
      return Bytes(elements / 8 * bits_per_weight(*settings_.linear_format));
    }
    const model::QuantizationScheme* scheme = schemes_ ? schemes_->scheme_of(weight) : nullptr;
    if (!scheme) return std::nullopt;
    total_.is_exact = false;
    const auto tensors = stored_tensors(weight.shape, *scheme, settings_.dtype);
    if (!tensors) {
      note_unknown(name);
      return std::nullopt;
    }
    double bytes = 0;
    for (const StoredTensor& tensor : *tensors)
      if (const auto stored = stored_bytes(tensor.dtype, tensor.elements))
        bytes += static_cast<double>(stored->value);
    bytes *= static_cast<double>(weight.copies) * share;
    if (scheme->layout == model::Layout::kMxfp4Blocks) bytes *= padding_of(weight);
    if (name.module == "kv_b_proj") bytes += static_cast<double>(elements) * kPlainCopy;
    constexpr double kLargest = 9.0e18;
    return Bytes(static_cast<std::int64_t>(std::min(bytes, kLargest)));
  }

  // Experts of four-bit floats are filled up to the widths that their kernels take.
  double padding_of(const model::Weight& weight) const {
    const auto place = static_cast<std::size_t>(weight.layer);
    if (place >= spec_.layers.size() || settings_.is_expert_parallel) return 1;
    const std::int64_t inner = spec_.layers[place].ffn.expert_intermediate_size / expert_ranks();
    const auto grown = [](std::int64_t width, std::int64_t step) {
      return static_cast<double>((width + step - 1) / step * step) / static_cast<double>(width);
    };
    return inner < 1 ? 1
                     : grown(inner, settings_.expert_width_step) * grown(spec_.hidden_size, kExpertInputStep);
  }

  static bool is_ngram_table(const model::Weight& weight) {
    return weight.group == model::WeightGroup::kTable &&
           weight.hf_name.find("ngram_embedding") != std::string::npos;
  }

  void note_unknown(const Name& name) {
    if (std::find(total_.unknown.begin(), total_.unknown.end(), name.module) == total_.unknown.end())
      total_.unknown.emplace_back(name.module);
  }

  // Whole where its heads or widths cannot be split, as engines fall back to; ears are taken for whole.
  Split encoder_split_of(const model::Weight& weight, const Name& name) {
    total_.is_exact = false;
    const std::string_view text = weight.hf_name;
    const bool is_ear = text.find("audio_tower") != std::string_view::npos;
    if (settings_.encoder_split == EncoderSplit::kNone || is_ear || weight.elements() % ranks() != 0)
      return Split::kWhole;
    const std::string_view module = text.substr(0, text.rfind('.'));
    const auto find = [&](const auto& rows) -> const NamedSplit* {
      const auto* row = std::find_if(std::begin(rows), std::end(rows),
                                     [&](const NamedSplit& split) { return module.ends_with(split.module); });
      return row == std::end(rows) ? nullptr : row;
    };
    const NamedSplit* row = find(kEncoderBlocks);
    if (!row && settings_.encoder_split == EncoderSplit::kBlocksAndProjector) row = find(kProjectors);
    return !row ? Split::kWhole : name.is_bias ? row->bias : row->weight;
  }

  Split split_of(const model::Weight& weight, const Name& name) {
    using enum model::WeightGroup;
    if (weight.group == kNorm || weight.group == kRouter) return Split::kWhole;
    if (is_ngram_table(weight)) return Split::kEven;
    if (weight.group == kEncoder) return encoder_split_of(weight, name);
    const auto* row = std::find_if(std::begin(kSplits), std::end(kSplits),
                                   [&](const NamedSplit& split) { return split.module == name.module; });
    if (row != std::end(kSplits)) return name.is_bias ? row->bias : row->weight;
    if (weight.is_linear) note_unknown(name);
    return Split::kWhole;
  }

  Result<std::int64_t> elements_of(const model::Weight& weight, const Name& name) {
    std::int64_t one = 1;
    for (const std::int64_t size : weight.shape) one *= size;  // bounded by read_spec, copies too
    std::int64_t copies = weight.copies;
    const bool is_expert = weight.group == model::WeightGroup::kExperts;
    if (is_expert && settings_.is_expert_parallel) {
      PLIMSOLL_TRY(copies, spread(copies));
      return one * copies;
    }
    switch (split_of(weight, name)) {
      case Split::kWhole:
        return one * copies;
      case Split::kEven: {
        PLIMSOLL_TRY(const std::int64_t part,
                     divided(one, weight.hf_name, is_expert ? expert_ranks() : ranks()));
        return part * copies;
      }
      case Split::kVocabulary: {
        const std::int64_t rows = weight.shape.empty() ? 1 : weight.shape.front();
        const std::int64_t padded = (rows + kVocabularyStep - 1) / kVocabularyStep * kVocabularyStep;
        PLIMSOLL_TRY(const std::int64_t part, divided(padded, weight.hf_name));
        return part * (one / rows);
      }
      case Split::kKeyValue:
        return heads_of(weight, one, attention_of(weight), false);
      case Split::kFusedQkv:
        return heads_of(weight, one, attention_of(weight), true);
    }
    return one * copies;
  }

  const model::Attention* attention_of(const model::Weight& weight) const {
    const auto place = static_cast<std::size_t>(weight.layer);
    const auto& layers = place < spec_.layers.size() ? spec_.layers : spec_.mtp_layers;
    const std::size_t index = place < spec_.layers.size() ? place : 0;
    return index < layers.size() ? std::get_if<model::Attention>(&layers[index].mixer) : nullptr;
  }

  // Key and value heads below one a rank are copied.
  Result<std::int64_t> heads_of(const model::Weight& weight, std::int64_t elements,
                                const model::Attention* attention, bool is_fused) const {
    if (!attention || attention->kv_heads < 1) return divided(elements, weight.hf_name);
    const std::int64_t kv = attention->kv_heads, q = is_fused ? attention->q_heads : 0;
    if (kv >= ranks() ? kv % ranks() != 0 : ranks() % kv != 0)
      return fail(ErrorCode::kNo,
                  std::to_string(kv) + " KV heads cannot be split over " + std::to_string(ranks()) + " ranks",
                  "--tensor-parallel-size", "choose a size that divides the KV heads, or a multiple of them");
    PLIMSOLL_TRY(const std::int64_t queries, divided(q, "query heads"));
    const std::int64_t all = q + (is_fused ? 2 : 1) * kv;
    const std::int64_t own = queries + (is_fused ? 2 : 1) * std::max<std::int64_t>(1, kv / ranks());
    return elements / all * own;
  }

  Result<std::int64_t> divided(std::int64_t amount, std::string_view what) const {
    return divided(amount, what, ranks());
  }

  static Result<std::int64_t> divided(std::int64_t amount, std::string_view what, std::int64_t ranks) {
    if (amount % ranks == 0) return amount / ranks;
    return fail(ErrorCode::kNo,
                std::string(what) + ": " + std::to_string(amount) + " cannot be split over " +
                    std::to_string(ranks) + " ranks",
                "--tensor-parallel-size", "choose a size that divides it");
  }

  // The first ranks take what is left over.
  Result<std::int64_t> spread(std::int64_t experts) const {
    const std::int64_t ranks = expert_ranks();
    if (experts >= ranks) return (experts + ranks - 1) / ranks;
    return fail(ErrorCode::kNo,
                std::to_string(experts) + " experts are fewer than " + std::to_string(ranks) + " ranks",
                "--enable-expert-parallel", "choose fewer ranks");
  }

  const model::ModelSpec& spec_;
  const VllmWeightSettings& settings_;
  std::optional<DeclaredSchemes> schemes_;  // absent: nothing is quantized
  std::vector<int> stages_;                 // of each layer
  VllmWeights total_;
};

// Positions that a table holds.
std::int64_t positions_of(const model::RopeSpec& rope, std::int64_t native, std::int64_t stated) {
  const auto scaled = [&](std::int64_t tokens) {
    const double all = static_cast<double>(tokens) * rope.factor;
    return all < 1e12 ? static_cast<std::int64_t>(all) : std::int64_t{1'000'000'000'000};
  };
  switch (rope.kind) {
    case model::RopeKind::kLinear:
      return scaled(native);
    case model::RopeKind::kYarn:
      return scaled(rope.original_context_tokens);
    case model::RopeKind::kLongrope:  // a table for short positions and one for all
      return rope.original_context_tokens + stated;
    default:
      return stated * (rope.has_sections ? kSectionedTables : 1);
  }
}

bool has_attention(const model::Layer& layer) {
  return std::holds_alternative<model::Attention>(layer.mixer) ||
         std::holds_alternative<model::Latent>(layer.mixer);
}

}  // namespace

Result<Bytes> vllm_buffers(const model::ModelSpec& spec, DType dtype) {
  const std::int64_t element = stored_bytes(dtype, 1).value_or(Bytes(2)).value;
  std::int64_t bytes =
      kScalesOfAttention * std::count_if(spec.layers.begin(), spec.layers.end(), has_attention);
  // Gemma's embedding is multiplied by the root of its width, which is kept as a tensor.
  const double scale = spec.embedding_scale;
  if (scale != 1.0 && std::abs(scale * scale - spec.hidden_size) < 1.0) bytes += element;
  const std::int64_t native = spec.native_context_tokens;
  const std::int64_t stated = std::max(native, spec.extended_context_tokens);
  const auto add = [&](const model::RopeSpec& rope) {
    const auto table = checked_product(positions_of(rope, native, stated),
                                       rope.rotary_dim * (rope.is_kept_in_32_bit ? 4 : element));
    const auto sum = table ? checked_sum(bytes, *table) : std::nullopt;
    if (sum) bytes = *sum;
    return sum.has_value();
  };
  if (!add(spec.rope) || (spec.window_rope && !add(*spec.window_rope)))
    return fail(ErrorCode::kMalformed, "the table of the rotary embedding does not fit 63 bits",
                "config.json", "check the context length and its scaling");
  return Bytes(bytes);
}

Result<VllmWeights> vllm_weights(const model::ModelSpec& spec, const VllmWeightSettings& settings) {
  if (settings.tensor_parallel < 1 || settings.data_parallel < 1 || settings.num_stages < 1 ||
      settings.stage < 0 || settings.stage >= settings.num_stages)
    return fail(ErrorCode::kUsage, "there must be at least 1 rank and 1 stage", "--tensor-parallel-size",
                "give 1 or more");
  if (!spec.has_all_weights)
    return fail(ErrorCode::kUnsupported, "the weights of some part of the model are not known", "config.json",
                "give the weight files");
  std::optional<DeclaredSchemes> schemes;
  if (settings.quantization && !settings.linear_format) {
    schemes = DeclaredSchemes::find(spec, *settings.quantization);
    if (!schemes)
      return fail(ErrorCode::kUnsupported, "which weights are quantized cannot be told from the config",
                  "config.json: " + settings.quantization->pointer, "give the weight files");
  }
  RankWeights rank(spec, settings, schemes);
  for (const model::Weight& weight : spec.weights) PLIMSOLL_TRY_VOID(rank.add(weight));
  return rank.take();
}

}  // namespace plimsoll::memory
