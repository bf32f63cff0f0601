// SPDX-License-Identifier: Apache-2.0
#include "memory/embedded_cache.h"

#include <fmt/format.h>

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

/// Blocks that a sequence's states may be spread over: each is a table in the scheduler.
constexpr std::int64_t kMostStateBlocks = 1024;
/// States of a layer begin at such a border.
constexpr std::int64_t kStateAlignment = 64;

/// Layers that keep the same positions.
struct Kind {
  std::optional<std::int64_t> window_tokens;
  std::vector<int> layers;
  std::vector<std::int64_t> bytes;  // [layers], of one token
};

std::optional<std::int64_t> window_of(const model::Layer& layer) {
  const auto* attention = std::get_if<model::Attention>(&layer.mixer);
  if (!attention) return std::nullopt;
  return attention->window_tokens ? attention->window_tokens : attention->chunk_tokens;
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

std::int64_t aligned(std::int64_t bytes) {
  return divided_up(bytes, kStateAlignment) * kStateAlignment;
}

/// Puts rows one after the other into blocks of `block_bytes`, none across a border.
class StatePacker {
 public:
  StatePacker(std::int64_t block_bytes, int first_group)
      : block_bytes_(block_bytes), first_group_(first_group) {}

  std::vector<StateRows> place(std::int64_t rows, std::int64_t row_bytes) {
    std::vector<StateRows> places;
    used_ = aligned(used_);
    for (std::int64_t done = 0; done < rows && is_sound_;) {
      std::int64_t fit = std::min(rows - done, (block_bytes_ - used_) / row_bytes);
      if (fit < 1) {
        ++block_;
        used_ = 0;
        is_sound_ = block_ < kMostStateBlocks && row_bytes <= block_bytes_;
        continue;
      }
      places.push_back({first_group_ + static_cast<int>(block_), used_, done, fit});
      used_ += fit * row_bytes;
      done += fit;
    }
    return places;
  }
  bool is_sound() const { return is_sound_; }
  std::int64_t num_blocks() const { return used_ > 0 ? block_ + 1 : block_; }
  /// Bytes of the last block in use.
  std::int64_t used() const { return used_; }

 private:
  std::int64_t block_bytes_;
  int first_group_;
  std::int64_t block_ = 0, used_ = 0;
  bool is_sound_ = true;
};

/// Bytes of a row of the recurrence, and of a channel of the convolution.
std::int64_t row_bytes(const model::State& state) {
  return std::int64_t{state.state_size} * static_cast<std::int64_t>(sizeof(float));
}
std::int64_t channel_bytes(const model::State& state) {
  return std::int64_t{std::max(state.kernel - 1, 0)} * static_cast<std::int64_t>(sizeof(float));
}

std::vector<StatePlace> place_states(const model::ModelSpec& spec, StatePacker& packer) {
  std::vector<StatePlace> places(spec.layers.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const model::State* state = state_of(spec.layers[i]);
    if (!state) continue;
    places[i].recurrent = packer.place(state->rows(), row_bytes(*state));
    if (state->kernel > 1) places[i].convolution = packer.place(state->channels(), channel_bytes(*state));
  }
  return places;
}

/// Bytes of all states; with blocks of their size a sequence needs one.
Result<std::int64_t> bytes_of_states(const model::ModelSpec& spec) {
  std::int64_t sum = 0;
  for (const model::Layer& layer : spec.layers) {
    const model::State* state = state_of(layer);
    if (!state) continue;
    for (const auto& [rows, bytes] :
         {std::pair(state->rows(), row_bytes(*state)), std::pair(state->channels(), channel_bytes(*state))}) {
      const auto part = checked_product(rows, bytes);
      const auto total = part && *part < INT64_MAX / 2 ? checked_sum(sum, aligned(*part)) : std::nullopt;
      if (!total)
        return fail(ErrorCode::kMalformed, "the states of this model would not fit 63 bits", "config.json",
                    "check its sizes");
      sum = *total;
    }
  }
  return sum;
}

Status lay_out_states(const model::ModelSpec& spec, EmbeddedCache& cache) {
  PLIMSOLL_TRY(const std::int64_t bytes, bytes_of_states(spec));
  cache.states.resize(spec.layers.size());
  if (bytes == 0) return {};
  cache.state_bytes = Bytes(bytes);
  std::int64_t block = aligned(cache.bytes_per_block.value);
  if (cache.groups.empty()) block = bytes;  // nothing else sets the size of a block
  for (const model::Layer& layer : spec.layers)
    if (const model::State* state = state_of(layer)) block = std::max(block, aligned(row_bytes(*state)));
  block = std::max(block, aligned(divided_up(bytes, kMostStateBlocks)));
  const int first_group = static_cast<int>(cache.groups.size());
  StatePacker packer(block, first_group);
  cache.states = place_states(spec, packer);
  while (!packer.is_sound()) {  // the ends of blocks that no row fits made them too many
    block = aligned(block + block / 8);
    packer = StatePacker(block, first_group);
    cache.states = place_states(spec, packer);
  }
  cache.bytes_per_block = Bytes(block);
  for (std::int64_t i = 0; i < packer.num_blocks(); ++i) cache.groups.emplace_back(schedule::StateCache{});
  return {};
}

}  // namespace

const model::State* state_of(const model::Layer& layer) {
  if (const auto* state = std::get_if<model::State>(&layer.mixer)) return state;
  return layer.side_states.empty() ? nullptr : &layer.side_states.front();
}

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

Result<EmbeddedCache> lay_out_cache(const model::ModelSpec& spec, const CacheFormat& format, int block_size) {
  EmbeddedCache cache;
  cache.block_size = block_size;
  cache.format = format;
  std::vector<Kind> kinds;
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    PLIMSOLL_TRY(const Bytes bytes, kv_layer_bytes_per_token(spec.layers[i], format));
    if (bytes.value == 0) continue;
    const auto window = window_of(spec.layers[i]);
    auto kind = std::ranges::find(kinds, window, &Kind::window_tokens);
    if (kind == kinds.end()) kind = kinds.insert(kind, Kind{window, {}, {}});
    kind->layers.push_back(static_cast<int>(i));
    kind->bytes.push_back(bytes.value);
  }
  PLIMSOLL_TRY(cache.bytes_per_token, kv_bytes_per_token(spec, format));
  const std::int64_t capacity =
      kinds.empty() ? 0 : best_capacity(kinds, std::max<std::int64_t>(spec.context_tokens(), 1));
  const auto block = checked_product(capacity, block_size);
  if (!block)
    return fail(ErrorCode::kUsage, "a cache block of this size does not fit 63 bits", "--block-size",
                "ask for less");
  cache.bytes_per_block = Bytes(*block);
  cache.places.assign(spec.layers.size(), {-1, 0});
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
  PLIMSOLL_TRY_VOID(lay_out_states(spec, cache));
  if (cache.groups.empty() && !model::is_encoder(spec))
    return fail(ErrorCode::kUnsupported, "no layer of this model keeps anything of a sequence", "config.json",
                "serve it with another engine");
  return cache;
}

}  // namespace plimsoll::memory
