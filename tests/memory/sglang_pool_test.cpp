// SPDX-License-Identifier: Apache-2.0
// SGLang's pools: tokens, windows, states, requests; the share that it takes by default.
#include "memory/sglang_pool.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/memory/worked_case.h"

namespace plimsoll::memory {
namespace {

using testing::llama;

constexpr testing::LlamaShape kQwen{28, 1536, 12, 2, 128, 8960, 151936, 32768};

SglangPool pool_of(const model::ModelSpec& spec, const SglangPoolSettings& settings, std::int64_t bytes) {
  const auto pool = sglang_pool(spec, settings, Bytes(bytes));
  EXPECT_TRUE(pool) << (pool ? "" : pool.error().describe());
  return pool ? *pool : SglangPool();
}

std::int64_t permille(std::int64_t gib, const SglangLayout& layout) {
  return std::lround(sglang_defaults(Bytes(gib * kGiB), layout).static_share * 1000);
}

model::ModelSpec with_windows() {
  model::ModelSpec spec = llama({2, 64, 4, 1, 64, 128, 1000, 4096});
  std::get<model::Attention>(spec.layers[0].mixer).window_tokens = 128;
  return spec;
}

TEST(SglangPool, WorkedCase) {
  const testing::WorkedCase page("sglang.md");
  const SglangPool pool = pool_of(llama(kQwen), {.context_tokens = 32'768}, 41 * kGiB);
  EXPECT_EQ(pool.token_bytes, Bytes(28'672));
  EXPECT_EQ(pool.tokens, page.integer("tokens_of_41_GiB"));
  EXPECT_EQ(pool.max_requests, page.integer("requests_of_32768_in_41_GiB"));
  EXPECT_EQ(permille(80, {}), page.integer("share_of_80_GiB_after_capture_permille"));
  EXPECT_EQ(permille(80, {.tensor_parallel = 8, .is_latent = true}),
            page.integer("share_of_80_GiB_latent_8_ranks_permille"));
  EXPECT_EQ(permille(24, {.is_eager = true}), page.integer("share_of_24_GiB_eager_permille"));
  EXPECT_EQ(permille(80, {.pipeline_parallel = 2}), page.integer("share_of_80_GiB_2_stages_permille"));
  EXPECT_EQ(pool_of(llama(kQwen), {.pipeline_parallel = 3, .context_tokens = 32'768}, 41 * kGiB).tokens,
            page.integer("tokens_of_41_GiB_on_3_stages"));
  EXPECT_EQ(pool_of(llama(kQwen), {.context_tokens = 32'768, .draft_tokens = 4, .draft_layers = 1}, 41 * kGiB)
                .tokens,
            page.integer("tokens_of_41_GiB_with_one_draft_layer"));
  const SglangPool two =
      pool_of(with_windows(), {.context_tokens = 4096, .has_window_pool = true}, 2'684'800);
  EXPECT_EQ(two.tokens, page.integer("gpt_oss_like_tokens"));
  EXPECT_EQ(two.window_tokens, page.integer("gpt_oss_like_window_tokens"));
}

// Free before weights, weights, share, and the tokens that the log has: what is printed has two decimals.
struct Start {
  const char* id;
  double behind_gib, weights_gib, share, beside_gib;
  std::int64_t token_bytes, tokens;
};

TEST(SglangPool, RecordedStarts) {
  for (const Start& start : {Start{"L046", 13.44, 3.25, 0.4, 0, 28'672, 126'333},
                             {"L047", 109.01, 3.25, 0.4, 0, 28'672, 1'557'709},
                             {"L053", 108.97, 3.27, 0.4, 0, 14'336, 3'113'713},
                             {"L137", 230.20, 56.98, 0.911, 51.75, 98'304, 1'669'816},
                             {"L250", 210.0, 73.58, 0.826, 0, 70'272, 2'454'421}}) {
    const double before = start.behind_gib + start.weights_gib;
    const double pool = before * start.share - start.weights_gib - start.beside_gib;
    const double logged = static_cast<double>(start.tokens * start.token_bytes) / static_cast<double>(kGiB);
    EXPECT_NEAR(pool, logged, 0.1) << start.id;
  }
}

TEST(SglangPool, PagesAndRanks) {
  const SglangPool pool =
      pool_of(llama(kQwen), {.tensor_parallel = 4, .page_size = 64, .context_tokens = 1024}, kGiB);
  EXPECT_EQ(pool.token_bytes, Bytes(14'336));  // two heads over four ranks: one each
  EXPECT_EQ(pool.tokens % 64, 0);
  EXPECT_EQ(pool.max_requests, 4096);
  EXPECT_FALSE(sglang_pool(llama(kQwen), {.tensor_parallel = 3, .context_tokens = 1024}, Bytes(kGiB)));
  EXPECT_FALSE(sglang_pool(llama(kQwen), {}, Bytes(kGiB)));
  EXPECT_EQ(pool_of(llama(kQwen), {.context_tokens = 1024}, -5).tokens, 0);
}

TEST(SglangPool, WindowsWithoutAPoolKeepAllTokens) {
  const SglangPool one = pool_of(with_windows(), {.context_tokens = 4096}, kMiB);
  EXPECT_EQ(one.token_bytes, Bytes(512));
  EXPECT_EQ(one.window_tokens, 0);
}

TEST(SglangPool, StatesTakeTheirShareFirst) {
  model::ModelSpec spec = llama(kQwen);
  spec.layers[0].mixer = model::State{.kind = model::StateKind::kGatedDeltaNet,
                                      .recurrent_elements = 1000,
                                      .convolution_elements = 48,
                                      .kernel = 4};
  const SglangPool pool = pool_of(spec, {.context_tokens = 1024}, 1'000'000'000);
  EXPECT_EQ(pool.state_bytes, Bytes(4096));
  EXPECT_EQ(pool.state_slots, (std::int64_t{9'000'000'000} / 19 - 4096) / 4096);
  EXPECT_EQ(pool.tokens, (1'000'000'000 - (pool.state_slots + 1) * 4096) / (27 * 1024));
  EXPECT_LE(pool.used(), Bytes(1'000'000'000));
  const SglangPool uncached =
      pool_of(spec, {.context_tokens = 1024, .max_requests = 100, .has_prefix_cache = false}, 1'000'000'000);
  EXPECT_EQ(uncached.state_slots, 100);
  EXPECT_EQ(uncached.max_requests, 100);
}

TEST(SglangPool, TheLastStagesHaveOneMore) {
  EXPECT_EQ(sglang_stages(8, 3), (std::vector<int>{0, 0, 1, 1, 1, 2, 2, 2}));
  EXPECT_EQ(sglang_stages(6, 3), (std::vector<int>{0, 0, 1, 1, 2, 2}));
  const SglangPool pool = pool_of(llama(kQwen), {.pipeline_parallel = 3, .context_tokens = 1024}, kGiB);
  EXPECT_EQ(pool.stages, (std::vector<Bytes>{Bytes(9216), Bytes(9216), Bytes(10'240)}));
  EXPECT_EQ(pool.token_bytes, Bytes(10'240));
}

TEST(SglangPool, StagesOfStatesCountAsTheOneWithMost) {
  model::ModelSpec spec = llama(kQwen);
  const model::State state{.kind = model::StateKind::kGatedDeltaNet,
                           .recurrent_elements = 1000,
                           .convolution_elements = 48,
                           .kernel = 4};
  for (const std::size_t layer : {0U, 1U, 20U}) spec.layers[layer].mixer = state;
  const SglangPool pool = pool_of(spec, {.pipeline_parallel = 2, .context_tokens = 1024}, 1'000'000'000);
  EXPECT_EQ(pool.state_bytes, Bytes(2 * 4096));
  EXPECT_EQ(pool.stages, (std::vector<Bytes>{Bytes(12 * 1024), Bytes(13 * 1024)}));
  EXPECT_EQ(pool.tokens, (1'000'000'000 - (pool.state_slots + 1) * 8192) / (13 * 1024));
}

TEST(SglangPool, DraftsKeepStatesOfEveryStep) {
  model::ModelSpec spec = llama(kQwen);
  spec.layers[0].mixer = model::State{.kind = model::StateKind::kGatedDeltaNet,
                                      .recurrent_elements = 1000,
                                      .convolution_elements = 48,
                                      .kernel = 4};
  SglangPoolSettings settings{.context_tokens = 1024, .max_requests = 48, .draft_tokens = 4};
  const SglangPool pool = pool_of(spec, settings, 1'000'000'000);
  const double budget = 1e9 * 0.9 / 1.9;
  EXPECT_EQ(pool.state_slots, static_cast<std::int64_t>((budget - 4096 * 5) / (4096 * (1 + 4.0 / 3))));
  EXPECT_EQ(pool.draft_state_bytes, Bytes(4096 * 4 * 49));
  EXPECT_EQ(pool.tokens, (1'000'000'000 - 4096 * 4 * 49 - (pool.state_slots + 1) * 4096) / (27 * 1024));
  settings.has_prefix_cache = false;
  EXPECT_EQ(pool_of(spec, settings, 1'000'000'000).state_slots, 48);
}

TEST(SglangPool, DraftsOfModelsWithWindowsAndIndexKeys) {
  const SglangPool windows =
      pool_of(with_windows(), {.context_tokens = 4096, .draft_layers = 3, .has_window_pool = true}, kMiB);
  EXPECT_EQ(windows.token_bytes, Bytes(256));
  EXPECT_EQ(windows.window_token_bytes, Bytes(4 * 256));
  model::ModelSpec spec = llama(kQwen);
  model::Latent latent{.q_heads = 16, .kv_lora_rank = 512, .qk_rope_head_dim = 64};
  latent.indexer = model::Indexer{.heads = 8, .head_dim = 128};
  spec.layers.assign(2, model::Layer());
  for (model::Layer& layer : spec.layers) layer.mixer = latent;
  EXPECT_EQ(pool_of(spec, {.context_tokens = 1024, .draft_layers = 1}, kMiB).token_bytes,
            Bytes(3 * (1152 + 132)));
}

TEST(SglangPool, SparseLatentsInEightBitKeepScalesAndIndexKeys) {
  model::ModelSpec spec = llama(kQwen);
  model::Latent latent{.q_heads = 16, .kv_lora_rank = 512, .qk_rope_head_dim = 64};
  latent.indexer = model::Indexer{.heads = 8, .head_dim = 128};
  spec.layers.assign(1, model::Layer());
  spec.layers[0].mixer = latent;
  EXPECT_EQ(pool_of(spec, {.cache_dtype = DType::kF8E4M3, .context_tokens = 1024}, kMiB).token_bytes,
            Bytes(656 + 132));
  EXPECT_EQ(pool_of(spec, {.context_tokens = 1024}, kMiB).token_bytes, Bytes(1152 + 132));
}

}  // namespace
}  // namespace plimsoll::memory
