// SPDX-License-Identifier: Apache-2.0
// How many bytes do keys and values take? The formulas that plan predicts with and engine allocates by.
// Pure functions of a ModelSpec.
#pragma once

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/cache_format.h"
#include "model/model.h"

namespace plimsoll::memory {

/// KV bytes that the first token costs in one layer of one rank; 0 for layers that store nothing per token:
/// states, cross attention, layers that read another layer's keys and values.
/// Shapes: K is [kv_heads_of_rank, head_dim], V [kv_heads_of_rank, value_dim]; a latent is one [kv_lora_rank
/// + qk_rope_head_dim]. A layer of several mixers counts each. Errors: kNo when the KV heads cannot be split
/// over `tensor_parallel` ranks; kUnsupported when the cache type's blocks do not divide a head; kUsage for
/// less than one head or rank. Source: docs/formulas/kv_cache.md, section 1.
Result<Bytes> kv_layer_bytes_per_token(const model::Layer& layer, const CacheFormat& format,
                                       int tensor_parallel = 1);

/// The two halves of it, for engines that keep keys and values in forms of their own. A latent is all keys.
struct KeyValueBytes {
  Bytes keys, values;
};
Result<KeyValueBytes> kv_layer_parts_per_token(const model::Layer& layer, const CacheFormat& keys,
                                               const CacheFormat& values, int tensor_parallel = 1);

/// The same summed over all layers: what the first token of a sequence adds.
Result<Bytes> kv_bytes_per_token(const model::ModelSpec& spec, const CacheFormat& format,
                                 int tensor_parallel = 1);

/// Of these, what every further token adds without end: nothing under a window or in chunks, and a compressed
/// vector's share where one stands for several tokens.
Result<Bytes> kv_layer_growing_bytes_per_token(const model::Layer& layer, DType cache_dtype,
                                               int tensor_parallel = 1);

/// Keys of a sparse attention's indexer, beside keys and values; copied on every rank.
/// Shapes: one [head_dim] for `tokens_per_key` tokens; a share of a byte counts as one.
Result<Bytes> indexer_layer_bytes_per_token(const model::Layer& layer, DType cache_dtype);

/// States of fixed size that a sequence keeps in a layer, whatever its length.
/// Shapes: recurrent elements in their declared dtype, else in `activation_dtype`; convolution elements in
/// `activation_dtype`.
Result<Bytes> state_layer_bytes(const model::Layer& layer, DType activation_dtype);

/// All that one sequence of `tokens` tokens keeps in a layer, each part at its own rule: windows hold at most
/// their length, chunks at most theirs, states count once, indexer keys with every token.
/// Errors: kMalformed when it does not fit 63 bits; else as above.
/// Source: docs/formulas/kv_cache.md, section 3.
Result<Bytes> layer_bytes_per_sequence(const model::Layer& layer, DType cache_dtype, DType activation_dtype,
                                       std::int64_t tokens);

/// What it would be if every query head had keys and values of its own (no GQA, MQA, no latent vector). For a
/// comparison only: layers that the cache type cannot hold count nothing.
Bytes kv_bytes_per_token_without_gqa(const model::ModelSpec& spec, DType cache_dtype);

}  // namespace plimsoll::memory
