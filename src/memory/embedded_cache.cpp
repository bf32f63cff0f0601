// SPDX-License-Identifier: Apache-2.0
#include "memory/embedded_cache.h"

#include <algorithm>

#include "base/division.h"
#include "memory/kv_cache.h"
#include "schedule/cache_group.h"

namespace plimsoll::memory {
namespace {

/// More tables per sequence than this cost more time than the bytes they save are worth.
constexpr int kMostGroups = 16;
/// A division may hold this much more than the best one if it has fewer groups.
constexpr double kWorthFewerGroups = 1.02;

/// Layers that keep the same positions.
struct Kind {
  std::optional<std::int64_t> window_tokens;
  std::vector<int> layers;
  std::vector<std::int64_t> bytes;  // [layers], of one token
};

std::optional<std::int64_t> window_of(const model::Layer& layer) {
  const auto* attention = std::get_if<model::Attention>(&layer.mixer);
  return attention ? attention->window_tokens : std::nullopt;
}

/// Consecutive layers of a kind, each list of at most `capacity` bytes per token.
std::vector<std::vector<std::size_t>> packed(const Kind& kind, std::int64_t capacity) {
  std::vector<std::vector<std::size_t>> groups;
  std::int64_t used = capacity;
  for (std::size_t i = 0; i < kind.layers.size(); ++i) {
    if (used + kind.bytes[i] > capacity) {
      groups.emplace_back();
      used = 0;
    }
    groups.back().push_back(i);
    used += kind.bytes[i];
  }
  return groups;
}

/// Bytes per token that the largest of `parts` lists of consecutive layers needs.
std::int64_t capacity_for(const Kind& kind, std::size_t parts) {
  const std::size_t length = (kind.layers.size() + parts - 1) / parts;
  std::int64_t largest = 0;
  for (std::size_t first = 0; first < kind.bytes.size(); first += length) {
    std::int64_t sum = 0;
    for (std::size_t i = first; i < std::min(first + length, kind.bytes.size()); ++i) sum += kind.bytes[i];
    largest = std::max(largest, sum);
  }
  return largest;
}

/// What a sequence of the model's whole context would hold, and in how many groups.
struct Cost {
  std::int64_t capacity = 0;
  double bytes = 0;
  std::size_t groups = 0;
};

Cost cost_of(const std::vector<Kind>& kinds, std::int64_t capacity, std::int64_t context) {
  Cost cost{capacity, 0, 0};
  for (const Kind& kind : kinds) {
    const std::size_t groups = packed(kind, capacity).size();
    const std::int64_t kept = std::min(context, kind.window_tokens.value_or(context));
    cost.groups += groups;
    cost.bytes += static_cast<double>(groups) * static_cast<double>(capacity) * static_cast<double>(kept);
  }
  return cost;
}

std::int64_t best_capacity(const std::vector<Kind>& kinds, std::int64_t context) {
  std::int64_t least = 0;  // no layer is cut
  for (const Kind& kind : kinds) least = std::max(least, *std::ranges::max_element(kind.bytes));
  std::vector<Cost> costs;
  for (const Kind& kind : kinds)
    for (std::size_t parts = 1; parts <= std::min<std::size_t>(kind.layers.size(), kMostGroups); ++parts)
      costs.push_back(cost_of(kinds, std::max(least, capacity_for(kind, parts)), context));
  const auto fewest = std::ranges::min_element(costs, {}, &Cost::groups)->groups;
  std::erase_if(costs,
                [&](const Cost& cost) { return cost.groups > std::max<std::size_t>(fewest, kMostGroups); });
  const double most = std::ranges::min_element(costs, {}, &Cost::bytes)->bytes * kWorthFewerGroups;
  std::erase_if(costs, [&](const Cost& cost) { return cost.bytes > most; });
  return std::ranges::min_element(costs,
                                  [](const Cost& a, const Cost& b) {
                                    return std::pair(a.groups, a.bytes) < std::pair(b.groups, b.bytes);
                                  })
      ->capacity;
}

}  // namespace

bool EmbeddedCache::is_growing() const {
  return std::ranges::any_of(
      groups, [](const auto& group) { return std::holds_alternative<schedule::GrowingCache>(group); });
}

std::int64_t EmbeddedCache::blocks_for(std::int64_t tokens, int chunk) const {
  return schedule::most_held(groups, tokens, chunk, block_size);
}

std::int64_t EmbeddedCache::blocks_for(std::size_t group, std::int64_t tokens, int chunk) const {
  return schedule::most_held(groups[group], tokens, chunk, block_size);
}

std::optional<std::int64_t> EmbeddedCache::window_of(std::size_t group) const {
  const auto* windowed = std::get_if<schedule::WindowedCache>(&groups[group]);
  return windowed ? std::optional(windowed->window) : std::nullopt;
}

Result<EmbeddedCache> lay_out_cache(const model::ModelSpec& spec, DType dtype, int block_size) {
  EmbeddedCache cache;
  cache.block_size = block_size;
  cache.dtype = dtype;
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    PLIMSOLL_TRY(const Bytes bytes, kv_layer_bytes_per_token(spec.layers[i], dtype));
    const auto window = window_of(spec.layers[i]);
    auto kind = std::ranges::find(kinds, window, &Kind::window_tokens);
    if (kind == kinds.end()) kind = kinds.insert(kind, Kind{window, {}, {}});
    kind->layers.push_back(static_cast<int>(i));
    kind->bytes.push_back(bytes.value);
  }
  PLIMSOLL_TRY(cache.bytes_per_token, kv_bytes_per_token(spec, dtype));
  if (cache.bytes_per_token.value < 1)
    return fail(ErrorCode::kUnsupported, "no layer of this model keeps keys and values", "config.json",
                "serve it with another engine");
  const std::int64_t capacity = best_capacity(kinds, std::max<std::int64_t>(spec.context_tokens(), 1));
  const auto block = checked_product(capacity, block_size);
  if (!block)
    return fail(ErrorCode::kUsage, "a cache block of this size does not fit 63 bits", "--block-size",
                "ask for less");
  cache.bytes_per_block = Bytes(*block);
  cache.places.resize(spec.layers.size());
  for (const Kind& kind : kinds)
    for (const auto& layers : packed(kind, capacity)) {
      std::int64_t offset = 0;
      for (const std::size_t i : layers) {
        cache.places[static_cast<std::size_t>(kind.layers[i])] = {static_cast<int>(cache.groups.size()),
                                                                  offset};
        offset += kind.bytes[i] * block_size;
      }
      if (kind.window_tokens)
        cache.groups.emplace_back(schedule::WindowedCache{*kind.window_tokens});
      else
        cache.groups.emplace_back(schedule::GrowingCache{});
    }
  return cache;
}

}  // namespace plimsoll::memory
