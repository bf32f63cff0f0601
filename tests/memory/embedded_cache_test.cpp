// SPDX-License-Identifier: Apache-2.0
#include "memory/embedded_cache.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace plimsoll::memory
