// SPDX-License-Identifier: Apache-2.0
#include "memory/kv_cache.h"

#include <gtest/gtest.h>

#include "tests/memory/worked_case.h"

namespace plimsoll::memory {
namespace {

using testing::gb_text;
using testing::LlamaShape;
using testing::WorkedCase;

TEST(KvCache, TheFormulaPagesWorkedCase) {
  const WorkedCase page("kv_cache.md");
  for (const std::string size : {"8b", "70b"}) {
    const auto at = [&](const char* name) { return static_cast<int>(page.integer(size + name)); };
    LlamaShape shape = size == "8b" ? testing::kLlama8B : testing::kLlama70B;
    shape.layers = at("_layers");
    shape.q_heads = at("_q_heads");
    shape.kv_heads = at("_kv_heads");
    shape.head_dim = at("_head_dim");
    const auto spec = llama(shape);
    const auto bytes = kv_bytes_per_token(spec, DType::kBF16);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(bytes->value, page.integer(size + "_bytes_per_token"));
    const auto per_token = static_cast<double>(bytes->value);
    EXPECT_EQ(gb_text(per_token * 8192, 2), page.text(size + "_gb_at_8k"));
    EXPECT_EQ(gb_text(per_token * 131072, 1), page.text(size + "_gb_at_128k"));
  }
  const auto spec = llama(testing::kLlama8B);
  EXPECT_EQ(kv_bytes_per_token_without_gqa(spec, DType::kBF16).value,
            page.integer("8b_bytes_per_token_without_gqa"));
  const Bytes token = *kv_bytes_per_token(spec, DType::kBF16);
  EXPECT_EQ((token * 1000).value, page.integer("8b_bytes_of_1000_tokens"));
  EXPECT_EQ((token * 4000).value, page.integer("8b_bytes_of_4000_tokens"));
}

TEST(KvCache, HeadsAreSplitOrCopiedOverRanks) {
  const auto spec = llama(testing::kLlama8B);  // 8 KV heads
  EXPECT_EQ(kv_bytes_per_token(spec, DType::kBF16, 2)->value, 65'536);
  EXPECT_EQ(kv_bytes_per_token(spec, DType::kBF16, 8)->value, 16'384);
  EXPECT_EQ(kv_bytes_per_token(spec, DType::kBF16, 16)->value, 16'384);  // one copy each
  for (const int ranks : {3, 12}) {
    const auto bytes = kv_bytes_per_token(spec, DType::kBF16, ranks);
    ASSERT_FALSE(bytes) << ranks;
    EXPECT_EQ(bytes.error().code, ErrorCode::kNo);
  }
  EXPECT_EQ(kv_bytes_per_token(spec, DType::kBF16, 0).error().code, ErrorCode::kUsage);
}

TEST(KvCache, TheCachesTypeCounts) {
  const auto spec = llama(testing::kLlama8B);
  EXPECT_EQ(kv_bytes_per_token(spec, DType::kF8E4M3)->value, 65'536);
  EXPECT_EQ(kv_bytes_per_token(spec, DType::kF32)->value, 262'144);
  EXPECT_EQ(kv_bytes_per_token(spec, DType::kQ8_0)->value, 65'536 * 34 / 32);
}

TEST(KvCache, BlocksThatDoNotDivideAHeadAreRefused) {
  auto shape = testing::kLlama8B;
  shape.head_dim = 24;  // no whole block of 32, although all heads together would fill some
  const auto bytes = kv_bytes_per_token(llama(shape), DType::kQ8_0);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kUnsupported);
}

TEST(KvCache, AbsurdShapesAreRefusedNotOverflowed) {
  auto shape = testing::kLlama8B;
  shape.kv_heads = shape.q_heads = shape.head_dim = INT32_MAX;
  EXPECT_FALSE(kv_bytes_per_token(llama(shape), DType::kF32));
  EXPECT_EQ(kv_bytes_per_token_without_gqa(llama(shape), DType::kF32).value, 0);
  shape.kv_heads = 0;
  EXPECT_EQ(kv_bytes_per_token(llama(shape), DType::kF32).error().code, ErrorCode::kUsage);
}

TEST(KvCache, EveryKindOfLayerHasItsRule) {
  model::Layer latent{.mixer = model::Latent{16, 512, 64, 128, 128}, .ffn = {}};
  EXPECT_EQ(kv_layer_bytes_per_token(latent, DType::kBF16)->value, 1152);
  model::Layer state{.mixer = model::State{"mamba", 4096}, .ffn = {}};
  EXPECT_EQ(kv_layer_bytes_per_token(state, DType::kBF16)->value, 0);
  EXPECT_EQ(kv_layer_bytes_per_token({.mixer = model::NoMixer{}, .ffn = {}}, DType::kBF16)->value, 0);
}

}  // namespace
}  // namespace plimsoll::memory
