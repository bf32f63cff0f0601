// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_runtime.h"

#include <algorithm>
#include <cmath>

#include "model/tensor_kinds.h"

namespace plimsoll::memory {
namespace {

using model::capped_product;
using model::capped_sum;

constexpr std::int64_t kLargeMemory = 70 * kGiB, kLargestMemory = 160 * kGiB;
constexpr std::int64_t kLongRequest = 32'768;  // from here on the first engine cut prefill into chunks
constexpr std::int64_t kFirstChunk = 2048;

VllmBatch defaults_of(const VllmRules& rules, const VllmDevice& device, std::int64_t max_model_len) {
  const auto has = [&](std::string_view word) { return device.name.find(word) != std::string_view::npos; };
  const bool is_large = device.memory.value >= kLargeMemory;
  const bool is_largest = device.memory.value >= kLargestMemory;
  const VllmBatch usual{2048, 256}, large{8192, 1024};
  switch (rules.batches) {
    case VllmBatches::kLength:
      return {max_model_len >= kLongRequest ? kFirstChunk : std::max(max_model_len, kFirstChunk), 256};
    case VllmBatches::kNamed:
      return {has("H100") || has("H200") ? std::int64_t{8192} : std::int64_t{2048}, 1024};
    case VllmBatches::kMemory:
      return is_large ? large : usual;
    case VllmBatches::kNotA100:
      return is_large && !has("A100") ? large : usual;
    case VllmBatches::kNotUnified:
      if (has("GB10")) return is_largest ? VllmBatch{16'384, 1024} : usual;
      [[fallthrough]];
    case VllmBatches::kLarger:
      if (is_largest) return {16'384, 1024};
      return is_large && !has("A100") ? large : usual;
  }
  return usual;
}

Bytes of_mib(std::int64_t mib) {
  return Bytes(mib * kMiB);
}

Bytes of_double(double bytes) {
  constexpr double kLargest = 9.0e18;
  return Bytes(static_cast<std::int64_t>(std::clamp(bytes, 0.0, kLargest)));
}

// Elements beside the model's width that one token takes in a feed-forward.
std::int64_t inner_elements(const model::Ffn& ffn, int hidden, const VllmRuntimeSettings& settings,
                            double inner_vectors) {
  const int ranks = std::max(1, settings.tensor_parallel);
  const std::int64_t expert_ranks = capped_product(ranks, std::max(1, settings.data_parallel));
  const auto share = [&](std::int64_t width) { return (width + ranks - 1) / ranks; };
  const auto times = [](double factor, std::int64_t width) {
    return static_cast<std::int64_t>(factor * static_cast<double>(width));
  };
  std::int64_t elements = 0;
  if (ffn.kind == model::FfnKind::kDense) elements = times(inner_vectors, share(ffn.intermediate_size));
  if (ffn.kind != model::FfnKind::kMoe) return elements;
  // Gate and up of every expert that a token takes, then its output at full width in the same place.
  const std::int64_t width = ffn.expert_intermediate_size;
  const std::int64_t inner = settings.is_expert_parallel ? width : (width + expert_ranks - 1) / expert_ranks;
  elements = capped_product(ffn.experts_per_token, std::max<std::int64_t>(2 * inner, hidden) + inner);
  return capped_sum(elements, times(inner_vectors, share(ffn.shared_intermediate_size)));
}

}  // namespace

VllmBatch vllm_batch(const VllmRules& rules, const VllmDevice& device, std::int64_t max_model_len,
                     std::optional<std::int64_t> tokens, std::optional<std::int64_t> sequences) {
  VllmBatch batch = defaults_of(rules, device, max_model_len);
  if (sequences) batch.sequences = *sequences;
  if (tokens) {
    batch.tokens = *tokens;
  } else if (max_model_len > 0) {
    batch.tokens = std::min(batch.tokens, capped_product(batch.sequences, max_model_len));
  }
  batch.sequences = std::min(batch.sequences, batch.tokens);
  return batch;
}

VllmRuntime vllm_runtime(const model::ModelSpec& spec, const VllmRuntimeSettings& settings,
                         const VllmRules& rules, const facts::VllmRuntime& fit) {
  const int ranks = std::max(1, settings.tensor_parallel);
  const std::int64_t width = stored_bytes(settings.dtype, 1).value_or(Bytes(2)).value;
  std::int64_t inner = 0;
  bool has_experts = false;
  for (const model::Layer& layer : spec.layers) {
    inner = std::max(inner, inner_elements(layer.ffn, spec.hidden_size, settings, fit.inner_vectors));
    has_experts |= layer.ffn.kind == model::FfnKind::kMoe;
  }
  const double token = fit.hidden_vectors * spec.hidden_size + static_cast<double>(inner);
  const double logits = static_cast<double>(settings.batch.sequences) * static_cast<double>(spec.vocab_size);

  VllmRuntime runtime;
  runtime.forward =
      of_double(static_cast<double>(settings.batch.tokens) * token * static_cast<double>(width));
  runtime.sampler = of_double(fit.sampler_copies * logits * 4.0);
  const bool is_alone = ranks == 1 && (settings.data_parallel == 1 || !has_experts);
  runtime.non_torch = of_mib(is_alone ? fit.one_gpu_mib : fit.many_gpus_mib);
  if (settings.has_drafts) runtime.drafts = of_mib(fit.drafts_mib);
  if (rules.budgets_graphs && !settings.is_eager) runtime.graphs = of_mib(fit.graphs_mib);
  const bool is_wide = !is_alone || has_experts || settings.has_drafts || settings.pipeline_parallel > 1;
  runtime.band = of_mib(is_wide ? fit.wide_band_mib : fit.band_mib);
  return runtime;
}

Bytes vllm_budget(const VllmRules& rules, Bytes memory, double utilization) {
  // As the engine: a product of doubles.
  const double share = static_cast<double>(memory.value) * utilization;
  return Bytes(static_cast<std::int64_t>(rules.rounds_budget_up ? std::ceil(share) : share));
}

double vllm_largest_utilization(const VllmRules& rules, Bytes memory, Bytes free) {
  for (int hundredths = 100; hundredths > 0; --hundredths) {
    const double utilization = hundredths / 100.0;
    if (vllm_budget(rules, memory, utilization) <= free) return utilization;
  }
  return 0;
}

}  // namespace plimsoll::memory
