// SPDX-License-Identifier: Apache-2.0
#include "memory/kv_cache.h"

#include <algorithm>
#include <string>
#include <type_traits>

namespace plimsoll::memory {
namespace {

Bytes element_bytes(std::int64_t elements, DType dtype) {
  const auto bytes = stored_bytes(dtype, elements);
  PLIMSOLL_CHECK(bytes.has_value(), "a head's elements fill whole blocks of the cache type");
  return *bytes;
}

}  // namespace

Result<Bytes> kv_layer_bytes_per_token(const model::Layer& layer, DType cache_dtype, int tensor_parallel) {
  return std::visit(
      [&](const auto& mixer) -> Result<Bytes> {
        using Kind = std::decay_t<decltype(mixer)>;
        if constexpr (std::is_same_v<Kind, model::Attention>) {
          // Below one head per rank, heads are replicated; otherwise they must divide.
          if (mixer.kv_heads >= tensor_parallel ? mixer.kv_heads % tensor_parallel != 0
                                                : tensor_parallel % mixer.kv_heads != 0)
            return fail(ErrorCode::kNo,
                        std::to_string(mixer.kv_heads) + " KV heads cannot be split over " +
                            std::to_string(tensor_parallel) + " ranks",
                        "--tensor-parallel-size",
                        "choose a size that divides the KV heads, or a multiple of them");
          const std::int64_t heads = std::max(1, mixer.kv_heads / tensor_parallel);
          return element_bytes(2 * heads * mixer.head_dim, cache_dtype);
        } else if constexpr (std::is_same_v<Kind, model::Latent>) {
          return element_bytes(mixer.kv_lora_rank + mixer.qk_rope_head_dim, cache_dtype);
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
    total += bytes;
  }
  return total;
}

Bytes kv_bytes_per_token_without_gqa(const model::ModelSpec& spec, DType cache_dtype) {
  Bytes total;
  for (const auto& layer : spec.layers)
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer))
      total += element_bytes(2 * std::int64_t{attention->q_heads} * attention->head_dim, cache_dtype);
  return total;
}

}  // namespace plimsoll::memory
