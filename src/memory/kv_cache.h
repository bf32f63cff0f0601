// SPDX-License-Identifier: Apache-2.0
// How many bytes do keys and values take? The formulas that plan predicts with and engine allocates by.
// Pure functions of a ModelSpec.
#pragma once

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "model/model.h"

namespace plimsoll::memory {

/// KV bytes that one more token costs in one layer of one rank; 0 for layers that store nothing per token.
/// Shapes: K and V are [kv_heads_of_rank, head_dim] each; a latent is one [kv_lora_rank + qk_rope_head_dim].
/// Errors: kNo when the KV heads cannot be split over `tensor_parallel` ranks; kUnsupported when the cache
/// type's blocks do not divide a head; kUsage for less than one head or rank.
/// Source: docs/formulas/kv_cache.md, section 1.
Result<Bytes> kv_layer_bytes_per_token(const model::Layer& layer, DType cache_dtype, int tensor_parallel = 1);

/// The same summed over all layers: what the first token of a sequence adds.
Result<Bytes> kv_bytes_per_token(const model::ModelSpec& spec, DType cache_dtype, int tensor_parallel = 1);

/// What it would be if every query head had keys and values of its own (no GQA, MQA). For a comparison only:
/// layers that the cache type cannot hold count nothing.
Bytes kv_bytes_per_token_without_gqa(const model::ModelSpec& spec, DType cache_dtype);

}  // namespace plimsoll::memory
