// SPDX-License-Identifier: Apache-2.0
#include "memory/embedded_cache.h"

#include <gtest/gtest.h>

#include <map>

#include "tests/testing/worked_case.h"

namespace plimsoll::memory {
namespace {

model::Layer attention_layer(int kv_heads, int head_dim, std::optional<std::int64_t> window) {
  model::Attention attention;
  attention.q_heads = attention.kv_heads = kv_heads;
  attention.head_dim = head_dim;
  attention.window_tokens = window;
  return {attention, {}};
}

// `pattern`: f for a layer that keeps all, w for a window of 1,024.
model::ModelSpec spec_of(const std::string& pattern, std::int64_t context = 131'072) {
  model::ModelSpec spec;
  spec.native_context_tokens = context;
  for (const char kind : pattern)
    spec.layers.push_back(
        attention_layer(2, 64, kind == 'w' ? std::optional<std::int64_t>(1024) : std::nullopt));
  return spec;
}

std::string repeated(const std::string& part, int times) {
  std::string whole;
  for (int i = 0; i < times; ++i) whole += part;
  return whole;
}

// Every layer has a place of its own in a block of its group, and the group is of its kind.
void expect_sound(const model::ModelSpec& spec, const EmbeddedCache& cache) {
  ASSERT_EQ(cache.places.size(), spec.layers.size());
  std::vector<std::int64_t> used(cache.groups.size());
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const auto& place = cache.places[i];
    const auto group = static_cast<std::size_t>(place.group);
    const auto& attention = std::get<model::Attention>(spec.layers[i].mixer);
    const auto* windowed = std::get_if<schedule::WindowedCache>(&cache.groups.at(group));
    EXPECT_EQ(windowed ? std::optional(windowed->window) : std::nullopt, attention.window_tokens);
    EXPECT_EQ(place.offset_bytes, used[group]);  // in the order of the layers, without a gap
    used[group] += 2LL * 2 * attention.kv_heads * attention.head_dim * cache.block_size;
  }
  for (const std::int64_t bytes : used) EXPECT_LE(bytes, cache.bytes_per_block.value);
}

constexpr std::int64_t kLayerToken = 2LL * 2 * 2 * 64;  // keys and values of 2 heads of 64 in bf16

TEST(EmbeddedCache, EqualLayersAreOneGroupWithoutWaste) {
  for (const char* pattern : {"ffff", "wwww", "fffffff"}) {
    const auto spec = spec_of(pattern);
    const auto cache = lay_out_cache(spec, DType::kBF16, 16);
    ASSERT_TRUE(cache);
    expect_sound(spec, *cache);
    EXPECT_EQ(cache->groups.size(), 1u);
    EXPECT_EQ(cache->bytes_per_block.value, 16 * cache->bytes_per_token.value);
  }
}

TEST(EmbeddedCache, OneFullAndTwoWindowedLayersAreThreeGroups) {
  const auto spec = spec_of("fww");
  const auto cache = lay_out_cache(spec, DType::kBF16, 16);
  ASSERT_TRUE(cache);
  expect_sound(spec, *cache);
  EXPECT_EQ(cache->groups.size(), 3u);
  EXPECT_EQ(cache->bytes_per_block.value, 16 * kLayerToken);
  EXPECT_TRUE(cache->is_growing());
  // 8,192 tokens: all blocks once, and twice what lies in a window while 512 tokens are computed.
  EXPECT_EQ(cache->blocks_for(8192, 512), 512 + 2 * (1 + (1023 + 512 + 15) / 16));
}

// Gemma 3 27B's shape: 10 layers keep all, 52 a window. Six tables of ten layers hold hardly more than
// eleven of five.
TEST(EmbeddedCache, FewTablesGoBeforeTheLastByte) {
  const auto spec = spec_of(repeated("wwwwwf", 10) + "ww");
  const auto cache = lay_out_cache(spec, DType::kBF16, 16);
  ASSERT_TRUE(cache);
  expect_sound(spec, *cache);
  const testing::WorkedCase page("embedded_engine.md");
  EXPECT_EQ(std::ssize(cache->groups), page.integer("mixed_groups"));
  EXPECT_EQ(cache->bytes_per_block.value, page.integer("mixed_bytes_per_block"));
  EXPECT_EQ(cache->blocks_for(8192, 512), page.integer("mixed_blocks_of_8192_tokens"));
}

TEST(EmbeddedCache, LayersOfUnequalWidthFitToo) {
  auto spec = spec_of("fwwfww");
  spec.layers[0] = attention_layer(2, 128, std::nullopt);
  spec.layers[3] = attention_layer(2, 128, std::nullopt);
  for (std::size_t i : {1u, 2u, 4u, 5u}) spec.layers[i] = attention_layer(3, 64, 1024);
  const auto cache = lay_out_cache(spec, DType::kBF16, 16);
  ASSERT_TRUE(cache);
  expect_sound(spec, *cache);
}

// Never more tables than a step can afford, whatever the pattern.
TEST(EmbeddedCache, ManyLayersStayWithinSixteenTables) {
  for (int full = 1; full <= 40; full += 3)
    for (int windowed = 1; windowed <= 90; windowed += 7) {
      const auto spec = spec_of(std::string(static_cast<std::size_t>(full), 'f') +
                                std::string(static_cast<std::size_t>(windowed), 'w'));
      const auto cache = lay_out_cache(spec, DType::kBF16, 16);
      ASSERT_TRUE(cache);
      expect_sound(spec, *cache);
      EXPECT_LE(cache->groups.size(), 16u) << full << " " << windowed;
    }
}

TEST(EmbeddedCache, RefusesWhatKeepsNothing) {
  model::ModelSpec spec;
  spec.layers.push_back({model::NoMixer{}, {}});
  EXPECT_EQ(lay_out_cache(spec, DType::kBF16, 16).error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(lay_out_cache(model::ModelSpec{}, DType::kBF16, 16).error().code, ErrorCode::kUnsupported);
}

model::Layer state_layer(int heads, int head_dim, int state_size, std::int64_t channels, int kernel) {
  model::State state;
  state.kind = model::StateKind::kMamba2;
  state.heads = heads;
  state.head_dim = head_dim;
  state.state_size = state_size;
  state.groups = 1;
  state.recurrent_elements = std::int64_t{heads} * head_dim * state_size;
  state.convolution_elements = channels * (kernel - 1);
  state.kernel = kernel;
  return {state, {}};
}

/// Every row is somewhere, once, in order, and no two share a byte.
void expect_rows_apart(const model::ModelSpec& spec, const EmbeddedCache& cache) {
  std::map<std::pair<int, std::int64_t>, std::int64_t> ends;  // (group, first byte) to the byte behind
  for (std::size_t i = 0; i < spec.layers.size(); ++i) {
    const model::State* state = state_of(spec.layers[i]);
    if (!state) continue;
    const auto expect_all = [&](const std::vector<StateRows>& places, std::int64_t rows, std::int64_t bytes) {
      std::int64_t next = 0;
      for (const StateRows& place : places) {
        EXPECT_EQ(place.first, next);
        EXPECT_TRUE(std::holds_alternative<schedule::StateCache>(
            cache.groups.at(static_cast<std::size_t>(place.group))));
        next += place.count;
        ends[{place.group, place.offset_bytes}] = place.offset_bytes + place.count * bytes;
      }
      EXPECT_EQ(next, rows);
    };
    expect_all(cache.states[i].recurrent, state->rows(), 4LL * state->state_size);
    expect_all(cache.states[i].convolution, state->channels(), 4LL * (state->kernel - 1));
  }
  int group = -1;
  std::int64_t end = 0;
  for (const auto& [place, behind] : ends) {
    if (place.first != group) end = 0;
    EXPECT_GE(place.second, end);
    EXPECT_LE(behind, cache.bytes_per_block.value);
    group = place.first;
    end = behind;
  }
}

TEST(EmbeddedCache, StatesFillBlocksOfTheAttentionOneByOne) {
  model::ModelSpec spec = spec_of("f");
  for (int i = 0; i < 3; ++i) spec.layers.push_back(state_layer(4, 32, 16, 160, 4));
  spec.layers.push_back(spec.layers.front());
  const auto cache = lay_out_cache(spec, DType::kBF16, 16);
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->bytes_per_token.value, 2 * kLayerToken);
  EXPECT_EQ(cache->bytes_per_block.value, 16 * 2 * kLayerToken);
  const std::int64_t layer = 4LL * 4 * 32 * 16 + 4 * 160 * 3;  // whole multiples of 64
  EXPECT_EQ(cache->state_bytes.value, 3 * layer);
  const std::int64_t blocks = (3 * layer + cache->bytes_per_block.value - 1) / cache->bytes_per_block.value;
  EXPECT_EQ(std::ssize(cache->groups), 1 + blocks);
  EXPECT_EQ(cache->blocks_for(100, 512), 7 + blocks);
  EXPECT_EQ(cache->blocks_for(1600, 512), 100 + blocks);
  EXPECT_EQ(cache->places[1].group, -1);
  expect_rows_apart(spec, *cache);
}

TEST(EmbeddedCache, StatesAloneAreOneBlock) {
  model::ModelSpec spec;
  for (int i = 0; i < 5; ++i) spec.layers.push_back(state_layer(3, 32, 24, 144, 4));
  const auto cache = lay_out_cache(spec, DType::kBF16, 16);
  ASSERT_TRUE(cache);
  EXPECT_EQ(cache->groups.size(), 1u);
  EXPECT_EQ(cache->bytes_per_block, cache->state_bytes);
  EXPECT_EQ(cache->blocks_for(1'000'000, 512), 1);
  EXPECT_FALSE(cache->is_growing());
  expect_rows_apart(spec, *cache);
}

TEST(EmbeddedCache, LargeStatesMakeBlocksLargerRatherThanTablesMore) {
  model::ModelSpec spec = spec_of("f");
  for (int i = 0; i < 300; ++i) spec.layers.push_back(state_layer(64, 64, 128, 8448, 4));
  const auto cache = lay_out_cache(spec, DType::kBF16, 1);
  ASSERT_TRUE(cache);
  EXPECT_LE(std::ssize(cache->groups), 1 + 1024);
  EXPECT_GT(std::ssize(cache->groups), 900);
  expect_rows_apart(spec, *cache);
}

TEST(EmbeddedCache, StatesThatDoNotFit63BitsAreRefused) {
  model::ModelSpec spec;
  spec.layers.push_back(state_layer(1 << 12, 1 << 13, 1 << 30, 16, 4));
  spec.layers.resize(4096, spec.layers.front());
  const auto cache = lay_out_cache(spec, DType::kBF16, 16);
  ASSERT_FALSE(cache);
  EXPECT_EQ(cache.error().code, ErrorCode::kMalformed);
}

}  // namespace
}  // namespace plimsoll::memory
