// SPDX-License-Identifier: Apache-2.0
#include "inspect/hub_causes.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <string>
#include <string_view>
#include <utility>

#include "base/units.h"
#include "model/quantization.h"
#include "model/tensor_kinds.h"

namespace plimsoll::inspect {
namespace {

using model::ModelSpec;
using model::Weight;
using model::WeightGroup;

std::int64_t sum_of(const ModelSpec& spec, bool (*is_meant)(const Weight&)) {
  std::int64_t sum = 0;
  for (const Weight& weight : spec.weights)
    if (is_meant(weight)) sum = model::capped_sum(sum, weight.elements());
  return sum;
}

std::int64_t distance(std::int64_t rest) {
  return rest < 0 ? -rest : rest;
}

// "self_attn.k_proj.weight" of "model.layers.14.self_attn.k_proj.weight".
std::string_view name_in_layer(const Weight& weight) {
  const std::string number = fmt::format(".{}.", weight.layer);
  const std::size_t at = weight.hf_name.find(number);
  return at == std::string::npos ? std::string_view()
                                 : std::string_view(weight.hf_name).substr(at + number.size());
}

// Attention's weights that the layer read from has and the reading layer has not: checkpoints keep them.
std::int64_t shared_keys_and_values(const ModelSpec& spec) {
  std::vector<std::vector<const Weight*>> attention(spec.layers.size());
  for (const Weight& weight : spec.weights)
    if (weight.layer >= 0 && static_cast<std::size_t>(weight.layer) < attention.size() &&
        name_in_layer(weight).starts_with("self_attn."))
      attention[static_cast<std::size_t>(weight.layer)].push_back(&weight);
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (!spec.layers[i].kv_source) continue;
    for (const Weight* weight : attention[static_cast<std::size_t>(*spec.layers[i].kv_source)]) {
      const bool is_here = std::any_of(attention[i].begin(), attention[i].end(), [&](const Weight* own) {
        return name_in_layer(*own) == name_in_layer(*weight);
      });
      if (!is_here) sum = model::capped_sum(sum, weight->elements());
    }
  }
  return sum;
}

constexpr std::int64_t kBlock = 128;  // of fp8, both ways

std::int64_t blocks(std::int64_t rows) {
  return (rows + kBlock - 1) / kBlock;
}

// Keys that were quantized in as many parts as the model has KV heads have blocks that end with each part.
// Source: vLLM's mimo_v2.py and NeMo Automodel's state_dict_adapter.py, which cut them so.
std::int64_t scales_at_cuts(const ModelSpec& spec) {
  std::int64_t parts = 0, sum = 0;
  for (const model::Layer& layer : spec.layers)
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer))
      parts = parts == 0 ? attention->kv_heads : std::min<std::int64_t>(parts, attention->kv_heads);
  for (const Weight& weight : spec.weights) {
    if (weight.role != model::Role::kKey || parts <= 0 || weight.shape.size() != 2) continue;
    const std::int64_t rows = weight.shape[0];
    if (rows % parts == 0) sum += (parts * blocks(rows / parts) - blocks(rows)) * blocks(weight.shape[1]);
  }
  return sum;
}

}  // namespace

std::vector<Difference> possible_causes(const ModelSpec& spec,
                                        const std::optional<memory::StoredCheckpoint>& checkpoint) {
  std::vector<Difference> causes;
  const auto add = [&](Cause cause, std::int64_t parameters, std::string detail = {}) {
    if (parameters != 0) causes.push_back({cause, parameters, std::move(detail)});
  };
  add(Cause::kMtp,
      sum_of(spec, [](const Weight& w) { return w.is_parameter && w.group == WeightGroup::kMtp; }));
  add(Cause::kStoredBuffers,
      sum_of(spec, [](const Weight& w) { return !w.is_parameter && !w.hf_name.empty(); }));
  if (checkpoint) {
    // Files that keep a number without a shape hold it outside the hub's count.
    add(Cause::kQuantizationScales, checkpoint->scales - checkpoint->single_scales);
    add(Cause::kQuantizationScales, checkpoint->single_scales, "one number for each matrix");
    if (checkpoint->scales > checkpoint->single_scales && spec.quantization == "fp8")
      add(Cause::kQuantizationScales, scales_at_cuts(spec),
          "of keys quantized in parts, one for each KV head");
    add(Cause::kMxfp4Blocks, checkpoint->block_scales);
    add(Cause::kPacked4Bit, checkpoint->packed);
  }
  add(Cause::kSharedKv, shared_keys_and_values(spec));
  if (spec.ties_embeddings) add(Cause::kTiedHeadStored, spec.vocab_size * spec.hidden_size);
  // Buffers that only old checkpoints have: rotary frequencies of each layer, causal masks of each layer.
  const auto layers = static_cast<std::int64_t>(spec.layers.size());
  add(Cause::kStoredBuffers, layers * (spec.rope.rotary_dim / 2), "rotary frequencies of each layer");
  const auto context = spec.native_context_tokens;
  const auto mask = model::capped_product(model::capped_product(context, context), layers);
  const bool has_learned_positions =
      std::ranges::any_of(
          spec.weights, [](const auto& weight) { return weight.role == model::Role::kPositionEmbedding; }) ||
      std::ranges::find(spec.traits, model::Trait::kLearnedPositions) != spec.traits.end();
  if (has_learned_positions) add(Cause::kStoredBuffers, mask, "causal masks of each layer");
  return causes;
}

std::vector<Difference> undeclared_scales(const ModelSpec& spec) {
  constexpr const char* kBlocks =
      R"({"quantization_config":{"quant_method":"fp8","weight_block_size":[128,128]}})";
  const auto config = parse_json(kBlocks, "fp8");
  const auto checkpoint = memory::stored_checkpoint(spec, model::read_quantization(*config, {}));
  if (!checkpoint || checkpoint->scales == 0) return {};
  return {{Cause::kQuantizationScales, checkpoint->scales, "of fp8 in blocks of 128 x 128"}};
}

Explanation explain(std::int64_t remainder, const std::vector<Difference>& causes) {
  unsigned best = 0;
  std::int64_t best_rest = remainder;
  for (unsigned chosen = 1; chosen < 1U << causes.size(); ++chosen) {
    std::int64_t rest = remainder;
    bool fits = true;  // what is packed is negative: capped_sum would not do
    for (std::size_t i = 0; i < causes.size(); ++i)
      if (chosen >> i & 1U) fits &= !__builtin_sub_overflow(rest, causes[i].parameters, &rest);
    if (!fits || rest == INT64_MIN) continue;
    const bool is_nearer = distance(rest) < distance(best_rest);
    const bool is_shorter = rest == best_rest && std::popcount(chosen) < std::popcount(best);
    if (!is_nearer && !is_shorter) continue;
    best = chosen;
    best_rest = rest;
  }
  Explanation result{{}, best_rest};
  for (std::size_t i = 0; i < causes.size(); ++i)
    if (best >> i & 1U) result.differences.push_back(causes[i]);
  return result;
}

std::optional<Difference> vocabulary_rows(std::int64_t remainder, const ModelSpec& spec) {
  constexpr std::int64_t kMultiple = 64;  // to which tables are padded; single rows would explain anything
  constexpr std::int64_t kFew = 64;       // rows: a sixty-fourth of the table
  const std::int64_t row = std::int64_t{spec.hidden_size} * (spec.ties_embeddings ? 1 : 2);
  if (remainder == 0 || row <= 0 || remainder % row != 0) return std::nullopt;
  const std::int64_t rows = remainder / row, stored = spec.vocab_size + rows;
  if (distance(rows) > spec.vocab_size / kFew || stored % kMultiple != 0) return std::nullopt;
  return Difference{
      Cause::kVocabularyRows, remainder,
      fmt::format("{} rows where vocab_size is {}", with_commas(stored), with_commas(spec.vocab_size))};
}

std::optional<Explanation> explain_rounded(std::int64_t published, std::int64_t total,
                                           const std::vector<Difference>& causes) {
  constexpr std::int64_t kLeastUnit = 100'000;  // five zeros do not come by chance
  constexpr std::int64_t kLeastUnits = 1000;    // four digits at least
  std::int64_t unit = kLeastUnit;
  if (published <= 0 || published % unit != 0) return std::nullopt;
  while (published % (unit * 10) == 0) unit *= 10;
  if (published / unit < kLeastUnits) return std::nullopt;
  Explanation explained = explain(published - total, causes);
  if (distance(explained.rest) > unit / 2) return std::nullopt;
  explained.differences.push_back(
      {Cause::kRounding, explained.rest,
       fmt::format("published as a multiple of {}: within {}", with_commas(unit), with_commas(unit / 2))});
  explained.rest = 0;
  return explained;
}

}  // namespace plimsoll::inspect
