// SPDX-License-Identifier: Apache-2.0
// How are the caches of a model's layers cut into blocks of one pool? Layers that keep the same positions
// form cache groups of about equal size, so that one size of block serves all. The engine lays out its pool
// by it, the scheduler gets its groups, plan counts with it. Pure. Source: docs/formulas/embedded_engine.md,
// section 2.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/cache_format.h"
#include "model/model.h"
#include "schedule/schedule.h"

namespace plimsoll::memory {

/// Consecutive rows of a state that lie in one block, in f32.
struct StateRows {
  int group = 0;
  std::int64_t offset_bytes = 0;  // from the start of the group's block
  std::int64_t first = 0, count = 0;
};

/// Where a layer's state lies.
struct StatePlace {
  std::vector<StateRows> recurrent;    // of State::rows() rows [state_size]
  std::vector<StateRows> convolution;  // of State::channels() rows [kernel - 1], oldest input first
};

/// The one state that a layer keeps, as its mixer or beside it; null without.
const model::State* state_of(const model::Layer& layer);

struct EmbeddedCache {
  /// Where a layer's part of a block lies.
  struct Place {
    int group = 0;
    std::int64_t offset_bytes = 0;  // from the start of the group's block
  };
  int block_size = 0;
  CacheFormat format = DType::kBF16;  // of keys, values and latents
  std::vector<schedule::CacheGroup> groups;
  std::vector<Place> places;       // [layers]; group -1 for layers that store nothing per token
  std::vector<StatePlace> states;  // [layers]
  Bytes state_bytes;               // of a sequence, in all layers
  Bytes bytes_per_token;           // of all layers, before any window has slid
  Bytes bytes_per_block;           // of the largest group; in the others a part may stay unused

  bool is_growing() const;  // some group keeps all tokens
  /// The most blocks that a sequence holds at once until it is `tokens` long, computed in steps of at most
  /// `chunk` tokens.
  std::int64_t blocks_for(std::int64_t tokens, int chunk) const;
  std::int64_t blocks_for(std::size_t group, std::int64_t tokens, int chunk) const;
  /// Tokens that one token of a group reads; nothing: all.
  std::optional<std::int64_t> window_of(std::size_t group) const;
};

/// States fill blocks one after the other, each row whole; a block of theirs is a group of its own.
/// Encoders keep nothing: no group, and blocks of no byte.
/// Errors: those of kv_layer_bytes_per_token; kUnsupported when no layer of another model keeps anything;
/// kUsage when a block, kMalformed when a state does not fit 63 bits.
Result<EmbeddedCache> lay_out_cache(const model::ModelSpec& spec, const CacheFormat& format, int block_size);

}  // namespace plimsoll::memory
