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

// What a layer costs: the first token, every further one, the indexer's keys, the state, a sequence.
struct Costs {
  std::int64_t first, growing, index_keys, state, sequence;
  bool operator==(const Costs&) const = default;
};

Costs costs_of(const model::Layer& layer, std::int64_t tokens) {
  return {kv_layer_bytes_per_token(layer, DType::kBF16)->value,
          kv_layer_growing_bytes_per_token(layer, DType::kBF16)->value,
          indexer_layer_bytes_per_token(layer, DType::kBF16)->value,
          state_layer_bytes(layer, DType::kBF16)->value,
          layer_bytes_per_sequence(layer, DType::kBF16, DType::kBF16, tokens)->value};
}

model::Layer attention_layer() {
  return {.mixer = model::Attention{.q_heads = 16, .kv_heads = 2, .head_dim = 128}, .ffn = {}};
}

TEST(KvCache, EveryKindOfAttentionHasItsRule) {
  model::Layer layer = attention_layer();
  auto& attention = std::get<model::Attention>(layer.mixer);
  EXPECT_EQ(costs_of(layer, 1000), (Costs{1024, 1024, 0, 0, 1'024'000}));
  attention.window_tokens = 128;
  EXPECT_EQ(costs_of(layer, 1000), (Costs{1024, 0, 0, 0, 131'072}));
  EXPECT_EQ(costs_of(layer, 100), (Costs{1024, 0, 0, 0, 102'400}));
  attention.window_tokens.reset();
  attention.chunk_tokens = 256;
  EXPECT_EQ(costs_of(layer, 1000), (Costs{1024, 0, 0, 0, 262'144}));
  attention.chunk_tokens.reset();
  attention.value_head_dim = 64;
  EXPECT_EQ(costs_of(layer, 10), (Costs{768, 768, 0, 0, 7680}));
  attention.value_head_dim = 0;
  attention.indexer =
      model::Indexer{.heads = 4, .head_dim = 128, .selected_tokens = 512, .tokens_per_key = 4};
  EXPECT_EQ(costs_of(layer, 1000), (Costs{1024, 1024, 64, 0, 1'088'000}));
  layer.kv_source = 3;
  EXPECT_EQ(costs_of(layer, 1000), (Costs{0, 0, 0, 0, 0}));
  layer = attention_layer();
  std::get<model::Attention>(layer.mixer).is_cross = true;
  EXPECT_EQ(costs_of(layer, 1000), (Costs{0, 0, 0, 0, 0}));
}

TEST(KvCache, LatentVectorsMayBeCompressedAndDoubled) {
  model::Layer layer{.mixer = model::Latent{.q_heads = 16, .kv_lora_rank = 512, .qk_rope_head_dim = 64},
                     .ffn = {}};
  EXPECT_EQ(costs_of(layer, 1000), (Costs{1152, 1152, 0, 0, 1'152'000}));
  layer.num_mixers = 2;
  EXPECT_EQ(costs_of(layer, 1000), (Costs{2304, 2304, 0, 0, 2'304'000}));
  layer.num_mixers = 1;
  auto& latent = std::get<model::Latent>(layer.mixer);
  latent.window_tokens = 128;
  latent.tokens_per_entry = 4;
  EXPECT_EQ(costs_of(layer, 1000), (Costs{1152, 288, 0, 0, 1152 * (128 + 250)}));
}

TEST(KvCache, StatesDoNotGrow) {
  const model::State state{.kind = model::StateKind::kGatedDeltaNet,
                           .heads = 48,
                           .recurrent_elements = 48 * 128 * 128,
                           .convolution_elements = 10'240 * 3,
                           .recurrent_dtype = DType::kF32};
  model::Layer layer{.mixer = state, .ffn = {}};
  EXPECT_EQ(costs_of(layer, 262'144), (Costs{0, 0, 0, 3'207'168, 3'207'168}));
  EXPECT_EQ(costs_of({.mixer = model::NoMixer{}, .ffn = {}}, 10), (Costs{0, 0, 0, 0, 0}));
  layer = attention_layer();
  layer.side_states = {state};
  EXPECT_EQ(costs_of(layer, 1), (Costs{1024, 1024, 0, 3'207'168, 3'208'192}));
}

TEST(KvCache, ASequenceThatDoesNotFitIsAnError) {
  const auto bytes = layer_bytes_per_sequence(attention_layer(), DType::kBF16, DType::kBF16, INT64_MAX / 2);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().code, ErrorCode::kMalformed);
}

}  // namespace
}  // namespace plimsoll::memory
