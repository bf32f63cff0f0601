// SPDX-License-Identifier: Apache-2.0
#include "memory/kv_cache.h"

#include <algorithm>
#include <string>
#include <type_traits>

namespace plimsoll::memory {
namespace {

/// Bytes of one vector that is stored by itself: blocks of a quantized type do not run over its end.
Result<Bytes> vector_bytes(std::int64_t vectors, std::int64_t elements, DType dtype) {
  const auto one = stored_bytes(dtype, elements);
  const auto all = one ? checked_product(vectors, one->value) : std::nullopt;
  if (!all)
    return fail(ErrorCode::kUnsupported,
                "a cache of " + std::string(name(dtype)) + " cannot hold " + std::to_string(vectors) +
                    " vectors of " + std::to_string(elements) + " elements per token",
                "--kv-cache-dtype",
                "choose a type whose blocks divide the head dimension, or check the config");
  return Bytes(*all);
}

}  // namespace

Result<Bytes> kv_layer_bytes_per_token(const model::Layer& layer, DType cache_dtype, int tensor_parallel) {
  return std::visit(
      [&](const auto& mixer) -> Result<Bytes> {
        using Kind = std::decay_t<decltype(mixer)>;
        if constexpr (std::is_same_v<Kind, model::Attention>) {
          // Below one head per rank, heads are replicated; otherwise they must divide.
          if (mixer.kv_heads < 1 || tensor_parallel < 1)
            return fail(ErrorCode::kUsage, "KV heads and ranks must each be at least 1",
                        "--tensor-parallel-size", "check num_key_value_heads in the config");
          if (mixer.kv_heads >= tensor_parallel ? mixer.kv_heads % tensor_parallel != 0
                                                : tensor_parallel % mixer.kv_heads != 0)
            return fail(ErrorCode::kNo,
                        std::to_string(mixer.kv_heads) + " KV heads cannot be split over " +
                            std::to_string(tensor_parallel) + " ranks",
                        "--tensor-parallel-size",
                        "choose a size that divides the KV heads, or a multiple of them");
          const std::int64_t heads = std::max(1, mixer.kv_heads / tensor_parallel);
          return vector_bytes(2 * heads, mixer.head_dim, cache_dtype);
        } else if constexpr (std::is_same_v<Kind, model::Latent>) {
          return vector_bytes(1, std::int64_t{mixer.kv_lora_rank} + mixer.qk_rope_head_dim, cache_dtype);
        } else {
          return Bytes(0);
        }
      },
      layer.mixer);
}

Result<Bytes> kv_bytes_per_token(const model::ModelSpec& spec, DType cache_dtype, int tensor_parallel) {
  Bytes total;
  for (const auto& layer : spec.layers) {
    PLIMSOLL_TRY(const Bytes bytes, kv_layer_bytes_per_token(layer, cache_dtype, tensor_parallel));
    const auto sum = checked_sum(total.value, bytes.value);
    if (!sum)
      return fail(ErrorCode::kMalformed, "the KV bytes of one token do not fit 63 bits", "config.json",
                  "check the sizes in the config");
    total = Bytes(*sum);
  }
  return total;
}

Bytes kv_bytes_per_token_without_gqa(const model::ModelSpec& spec, DType cache_dtype) {
  Bytes total;
  for (const auto& layer : spec.layers)
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer))
      total += vector_bytes(2 * std::int64_t{attention->q_heads}, attention->head_dim, cache_dtype)
                   .value_or(Bytes(0));
  return total;
}

}  // namespace plimsoll::memory
