// SPDX-License-Identifier: Apache-2.0
#include "memory/cache_format.h"

#include <gtest/gtest.h>

#include "memory/embedded.h"
#include "memory/kv_cache.h"

namespace plimsoll::memory {
namespace {

TEST(CacheFormat, IsNamedAsOtherEnginesNameIt) {
  EXPECT_FALSE(embedded_cache_format("auto")->has_value());
  for (const auto& [spelling, name] : {std::pair("bf16", "bf16"),
                                       {"bfloat16", "bf16"},
                                       {"float32", "f32"},
                                       {"fp8", "fp8"},
                                       {"fp8_e4m3", "fp8"},
                                       {"int8", "int8"},
                                       {"int8_per_token_head", "int8"}}) {
    const auto format = embedded_cache_format(spelling);
    ASSERT_TRUE(format && *format) << spelling;
    EXPECT_EQ(to_string(**format), name);
  }
  for (const char* other : {"float16", "fp8_e5m2", "fp8_ds_mla", "nvfp4", "q8_0"})
    EXPECT_EQ(embedded_cache_format(other).error().code, ErrorCode::kUnsupported) << other;
  EXPECT_EQ(embedded_cache_format("int9").error().code, ErrorCode::kUsage);
  EXPECT_EQ(embedded_cache_format("int9").error().fix, "give auto, bfloat16, float32, fp8 or int8");
}

TEST(CacheFormat, TheComputeModeDecidesWhereNothingIsAsked) {
  EXPECT_EQ(embedded_cache_format(EmbeddedCompute::kAuto, {}), DType::kBF16);
  EXPECT_EQ(embedded_cache_format(EmbeddedCompute::kFloat32, {}), DType::kF32);
  EXPECT_EQ(embedded_cache_format(EmbeddedCompute::kFloat32, DType::kF8E4M3), DType::kF8E4M3);
}

// The worked case of docs/formulas/embedded_engine.md, section 1.
TEST(CacheFormat, EveryVectorHasItsOwnScale) {
  const CacheFormat int8 = **embedded_cache_format("int8"), fp8 = **embedded_cache_format("fp8");
  model::Layer layer{.mixer = model::Attention{.q_heads = 16, .kv_heads = 3, .head_dim = 64}, .ffn = {}};
  EXPECT_EQ(kv_layer_bytes_per_token(layer, DType::kBF16)->value, 2 * 3 * 64 * 2);
  EXPECT_EQ(kv_layer_bytes_per_token(layer, fp8)->value, 2 * 3 * 64);
  EXPECT_EQ(kv_layer_bytes_per_token(layer, int8)->value, 2 * 3 * (64 + 4));
  layer.mixer = model::Latent{.q_heads = 16, .kv_lora_rank = 512, .qk_rope_head_dim = 64};
  EXPECT_EQ(kv_layer_bytes_per_token(layer, fp8)->value, 576);
  EXPECT_EQ(kv_layer_bytes_per_token(layer, int8)->value, 580);
}

}  // namespace
}  // namespace plimsoll::memory
