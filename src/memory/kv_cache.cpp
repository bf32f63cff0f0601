// SPDX-License-Identifier: Apache-2.0
#include "memory/kv_cache.h"

#include <algorithm>
#include <optional>
#include <string>
#include <type_traits>

#include "base/division.h"

namespace plimsoll::memory {
namespace {

/// Bytes of vectors that are stored one by one, each with its scale: blocks of a quantized type do not run
/// over a vector's end.
Result<Bytes> vector_bytes(std::int64_t vectors, std::int64_t elements, const CacheFormat& format) {
  const auto numbers = stored_bytes(format.dtype, elements);
  const auto one = numbers ? checked_sum(numbers->value, format.scale.value) : std::nullopt;
  const auto all = one ? checked_product(vectors, *one) : std::nullopt;
  if (!all)
    return fail(ErrorCode::kUnsupported,
                "a cache of " + std::string(name(format.dtype)) + " cannot hold " + std::to_string(vectors) +
                    " vectors of " + std::to_string(elements) + " elements per token",
                "--kv-cache-dtype",
                "choose a type whose blocks divide the head dimension, or check the config");
  return Bytes(*all);
}

Result<KeyValueBytes> attention_bytes(const model::Attention& attention, const CacheFormat& key_format,
                                      const CacheFormat& value_format, int tensor_parallel) {
  // Below one head per rank, heads are replicated; otherwise they must divide.
  if (attention.kv_heads < 1 || tensor_parallel < 1)
    return fail(ErrorCode::kUsage, "KV heads and ranks must each be at least 1", "--tensor-parallel-size",
                "check num_key_value_heads in the config");
  if (attention.kv_heads >= tensor_parallel ? attention.kv_heads % tensor_parallel != 0
                                            : tensor_parallel % attention.kv_heads != 0)
    return fail(ErrorCode::kNo,
                std::to_string(attention.kv_heads) + " KV heads cannot be split over " +
                    std::to_string(tensor_parallel) + " ranks",
                "--tensor-parallel-size", "choose a size that divides the KV heads, or a multiple of them");
  const std::int64_t heads = std::max(1, attention.kv_heads / tensor_parallel);
  PLIMSOLL_TRY(const Bytes keys, vector_bytes(heads, attention.head_dim, key_format));
  PLIMSOLL_TRY(const Bytes values, vector_bytes(heads, attention.value_dim(), value_format));
  return KeyValueBytes{keys, values};
}

/// What one position stores in a layer, before windows and compression.
Result<Bytes> position_bytes(const model::Layer& layer, const CacheFormat& format, int tensor_parallel) {
  PLIMSOLL_TRY(const KeyValueBytes parts, kv_layer_parts_per_token(layer, format, format, tensor_parallel));
  return parts.keys + parts.values;
}

/// How many positions a layer remembers at most; nothing: all.
std::optional<std::int64_t> remembered_tokens(const model::Layer& layer) {
  if (const auto* attention = std::get_if<model::Attention>(&layer.mixer))
    return attention->window_tokens ? attention->window_tokens : attention->chunk_tokens;
  if (const auto* latent = std::get_if<model::Latent>(&layer.mixer)) return latent->window_tokens;
  return std::nullopt;
}

/// Tokens that one compressed vector stands for, beside a window of raw ones; 0: there are none.
std::int64_t compression_of(const model::Layer& layer) {
  const auto* latent = std::get_if<model::Latent>(&layer.mixer);
  return latent && latent->window_tokens && latent->tokens_per_entry > 1 ? latent->tokens_per_entry : 0;
}

const std::optional<model::Indexer>& indexer_of(const model::Layer& layer) {
  static const std::optional<model::Indexer> kNone;
  if (const auto* attention = std::get_if<model::Attention>(&layer.mixer)) return attention->indexer;
  if (const auto* latent = std::get_if<model::Latent>(&layer.mixer)) return latent->indexer;
  return kNone;
}

Result<Bytes> state_bytes(const model::State& state, DType activation_dtype) {
  PLIMSOLL_TRY(const Bytes recurrent,
               vector_bytes(1, state.recurrent_elements, state.recurrent_dtype.value_or(activation_dtype)));
  PLIMSOLL_TRY(const Bytes convolution, vector_bytes(1, state.convolution_elements,
                                                     state.convolution_dtype.value_or(activation_dtype)));
  return recurrent + convolution;
}

tl::unexpected<Error> too_large() {
  return fail(ErrorCode::kMalformed, "the cache of one sequence does not fit 63 bits", "config.json",
              "check the sizes in the config, or ask for a shorter sequence");
}

}  // namespace

Result<KeyValueBytes> kv_layer_parts_per_token(const model::Layer& layer, const CacheFormat& keys,
                                               const CacheFormat& values, int tensor_parallel) {
  if (layer.kv_source) return KeyValueBytes{};
  PLIMSOLL_TRY(const KeyValueBytes one, std::visit(
                                            [&](const auto& mixer) -> Result<KeyValueBytes> {
                                              using Kind = std::decay_t<decltype(mixer)>;
                                              if constexpr (std::is_same_v<Kind, model::Attention>) {
                                                if (mixer.is_cross) return KeyValueBytes{};
                                                return attention_bytes(mixer, keys, values, tensor_parallel);
                                              } else if constexpr (std::is_same_v<Kind, model::Latent>) {
                                                PLIMSOLL_TRY(const Bytes latent,
                                                             vector_bytes(1, mixer.width(), keys));
                                                return KeyValueBytes{latent, Bytes(0)};
                                              } else {
                                                return KeyValueBytes{};
                                              }
                                            },
                                            layer.mixer));
  return KeyValueBytes{one.keys * layer.num_mixers, one.values * layer.num_mixers};
}

Result<Bytes> kv_layer_bytes_per_token(const model::Layer& layer, const CacheFormat& format,
                                       int tensor_parallel) {
  return position_bytes(layer, format, tensor_parallel);
}

Result<Bytes> kv_layer_growing_bytes_per_token(const model::Layer& layer, DType cache_dtype,
                                               int tensor_parallel) {
  PLIMSOLL_TRY(const Bytes position, position_bytes(layer, cache_dtype, tensor_parallel));
  if (const std::int64_t tokens = compression_of(layer); tokens > 0)
    return Bytes(divided_up(position.value, tokens));
  return remembered_tokens(layer) ? Bytes(0) : position;
}

Result<Bytes> indexer_layer_bytes_per_token(const model::Layer& layer, DType cache_dtype) {
  const auto& indexer = indexer_of(layer);
  if (!indexer || layer.kv_source) return Bytes(0);
  PLIMSOLL_TRY(const Bytes key, vector_bytes(1, indexer->head_dim, cache_dtype));
  return Bytes(divided_up(key.value, std::max(1, indexer->tokens_per_key)));
}

Result<Bytes> state_layer_bytes(const model::Layer& layer, DType activation_dtype) {
  Bytes total;
  if (const auto* state = std::get_if<model::State>(&layer.mixer)) {
    PLIMSOLL_TRY(total, state_bytes(*state, activation_dtype));
  }
  for (const model::State& state : layer.side_states) {
    PLIMSOLL_TRY(const Bytes bytes, state_bytes(state, activation_dtype));
    total += bytes;
  }
  return total;
}

Result<Bytes> layer_bytes_per_sequence(const model::Layer& layer, DType cache_dtype, DType activation_dtype,
                                       std::int64_t tokens) {
  PLIMSOLL_TRY(const Bytes position, position_bytes(layer, cache_dtype, 1));
  PLIMSOLL_TRY(const Bytes index_key, indexer_layer_bytes_per_token(layer, cache_dtype));
  PLIMSOLL_TRY(const Bytes state, state_layer_bytes(layer, activation_dtype));
  std::int64_t positions = std::min(tokens, remembered_tokens(layer).value_or(tokens));
  if (const std::int64_t compressed = compression_of(layer); compressed > 0) positions += tokens / compressed;
  const auto stored = checked_product(position.value, positions);
  const auto keys = checked_product(index_key.value, tokens);
  auto total = stored && keys ? checked_sum(*stored, *keys) : std::nullopt;
  if (total) total = checked_sum(*total, state.value);
  if (!total) return too_large();
  return Bytes(*total);
}

Result<Bytes> kv_bytes_per_token(const model::ModelSpec& spec, const CacheFormat& format,
                                 int tensor_parallel) {
  Bytes total;
  for (const auto& layer : spec.layers) {
    PLIMSOLL_TRY(const Bytes bytes, kv_layer_bytes_per_token(layer, format, tensor_parallel));
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
  const auto of_heads = [&](std::int64_t heads, std::int64_t keys, std::int64_t values) {
    return vector_bytes(heads, keys, cache_dtype).value_or(Bytes(0)) +
           vector_bytes(heads, values, cache_dtype).value_or(Bytes(0));
  };
  for (const auto& layer : spec.layers) {
    if (layer.kv_source) continue;
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer);
        attention && !attention->is_cross)
      total += of_heads(attention->q_heads, attention->head_dim, attention->value_dim()) * layer.num_mixers;
    if (const auto* latent = std::get_if<model::Latent>(&layer.mixer))
      total += of_heads(latent->q_heads, std::int64_t{latent->qk_nope_head_dim} + latent->qk_rope_head_dim,
                        latent->v_head_dim) *
               layer.num_mixers;
  }
  return total;
}

}  // namespace plimsoll::memory
