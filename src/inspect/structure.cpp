// SPDX-License-Identifier: Apache-2.0
#include "inspect/structure.h"

#include <fmt/format.h>

#include "memory/kv_cache.h"
#include "memory/kv_dtype.h"

namespace plimsoll::inspect {
DType activation_dtype(const model::ModelSpec& spec) {
  // Engines compute in 16 bit unless the model is declared in 32.
  return spec.declared_dtype.value_or(DType::kBF16) == DType::kF32 ? DType::kF32 : DType::kBF16;
}

Result<std::vector<LayerRun>> layer_runs(const model::ModelSpec& spec, DType kv_dtype,
                                         DType activation_dtype) {
  std::vector<LayerRun> runs;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    if (!runs.empty() && runs.back().layer == spec.layers[i]) {
      ++runs.back().count;
      continue;
    }
    PLIMSOLL_TRY(const Bytes bytes, memory::kv_layer_bytes_per_token(spec.layers[i], kv_dtype));
    PLIMSOLL_TRY(const Bytes state, memory::state_layer_bytes(spec.layers[i], activation_dtype));
    runs.push_back({static_cast<int>(i), 1, spec.layers[i], bytes, state});
  }
  return runs;
}

Result<DType> kv_dtype_of(const Subject& subject, const std::optional<model::ModelSpec>& spec) {
  const std::string& asked = subject.options.kv_cache_dtype;
  if (asked == "auto" && subject.is_gguf()) return DType::kF16;  // llama.cpp's
  return memory::kv_dtype(asked, spec.value_or(model::ModelSpec()));
}

Status measure_kv_cache(const Subject& subject, Report& report) {
  PLIMSOLL_TRY(const DType dtype, kv_dtype_of(subject, report.spec));
  if (!report.spec) return {};
  const std::int64_t block = info(dtype).block_elements;
  for (const auto& layer : report.spec->layers)
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer);
        attention && (attention->head_dim % block != 0 || attention->value_dim() % block != 0))
      return fail(ErrorCode::kUsage,
                  fmt::format("heads of {} do not fill blocks of {} elements", attention->head_dim, block),
                  "--kv-cache-dtype", "choose another type");
  KvCache cache;
  cache.dtype = dtype;
  const DType activations = activation_dtype(*report.spec);
  PLIMSOLL_TRY(report.layers, layer_runs(*report.spec, dtype, activations));
  PLIMSOLL_TRY(cache.bytes_per_token, memory::kv_bytes_per_token(*report.spec, dtype));
  cache.without_gqa_bytes_per_token = memory::kv_bytes_per_token_without_gqa(*report.spec, dtype);
  cache.sequence_tokens = subject.options.sequence_tokens.value_or(report.context.native_tokens.value_or(0));
  std::optional<std::int64_t> sequence_bytes = 0;
  for (const LayerRun& run : report.layers) {
    PLIMSOLL_TRY(const Bytes growing, memory::kv_layer_growing_bytes_per_token(run.layer, dtype));
    PLIMSOLL_TRY(const Bytes index_keys, memory::indexer_layer_bytes_per_token(run.layer, dtype));
    cache.growing_bytes_per_token += growing * run.count;
    cache.indexer_bytes_per_token += index_keys * run.count;
    cache.state_bytes_per_sequence += run.state_bytes * run.count;
    const auto layer = memory::layer_bytes_per_sequence(run.layer, dtype, activations, cache.sequence_tokens);
    const auto all = layer ? checked_product(layer->value, run.count) : std::nullopt;
    sequence_bytes = sequence_bytes && all ? checked_sum(*sequence_bytes, *all) : std::nullopt;
  }
  if (sequence_bytes)
    cache.bytes_per_sequence = Bytes(*sequence_bytes);
  else
    add_check(report.findings, "KV_SEQUENCE_SIZE", FindingLevel::kWarning, "--max-model-len",
              fmt::format("the keys and values of a sequence of {} tokens do not fit 63 bits",
                          cache.sequence_tokens),
              "give a shorter length");
  report.kv_cache = cache;
  return {};
}

}  // namespace plimsoll::inspect
