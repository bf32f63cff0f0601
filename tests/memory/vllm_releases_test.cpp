// SPDX-License-Identifier: Apache-2.0
// What releases of vLLM do differently with the same layers, on figures worked out by hand.
#include <gtest/gtest.h>

#include "memory/vllm_kv.h"

namespace plimsoll::memory {
namespace {

constexpr std::int64_t kToken = 1024;  // bytes of one token in one layer

VllmLayer attention(int place, VllmKind kind = VllmKind::kFull, std::int64_t token = kToken) {
  return {
      .kind = kind, .layer = place, .token_bytes = Bytes(token), .reach = kind == VllmKind::kFull ? 0 : 32};
}

VllmLayer state(int place) {
  return {.kind = VllmKind::kState,
          .layer = place,
          .state_bytes = Bytes(1'000'000),
          .exports_checkpoint = true,
          .can_keep_all = true,
          .chunk_tokens = 256};
}

VllmKvPlan plan_of(const std::vector<VllmLayer>& layers, const char* release, VllmKvSettings settings = {},
                   Bytes available = Bytes(kGiB)) {
  if (settings.max_model_len == 0) settings.max_model_len = 1024;
  const auto plan = plan_vllm_kv(layers, static_cast<std::int64_t>(layers.size()), settings,
                                 vllm_rules(release), available);
  EXPECT_TRUE(plan) << release << plan.error().describe();
  return plan ? *plan : VllmKvPlan();
}

ErrorCode refusal_of(const std::vector<VllmLayer>& layers, const char* release,
                     VllmKvSettings settings = {}) {
  settings.max_model_len = 1024;
  const auto plan = plan_vllm_kv(layers, static_cast<std::int64_t>(layers.size()), settings,
                                 vllm_rules(release), Bytes(kGiB));
  EXPECT_FALSE(plan) << release;
  return plan ? ErrorCode::kNo : plan.error().code;
}

// Two groups of windows, (2, 1), and one of full layers: 5, 5 and 64 blocks for 1,024 tokens.
TEST(VllmReleases, WhatARequestIsHeldToNeed) {
  constexpr auto kWindow = VllmKind::kSlidingWindow;
  const std::vector<VllmLayer> layers = {attention(0, kWindow), attention(1, kWindow), attention(2, kWindow),
                                         attention(3), attention(4)};
  const VllmKvSettings settings{.max_num_batched_tokens = 32};
  constexpr std::int64_t kPage = 16 * kToken;
  EXPECT_EQ(plan_of(layers, "0.11.2", settings).required.value, (3 * 5 + 2 * 64) * kPage);
  EXPECT_EQ(plan_of(layers, "0.16.0", settings).required.value, 5 * 2 * kPage);
  EXPECT_EQ(plan_of(layers, "0.19.1", settings).required.value, (5 + 5 + 64) * 2 * kPage);
  VllmKvSettings halves = settings;
  halves.pipeline_parallel = 2;  // layers 0 to 2, and 3 and 4
  EXPECT_EQ(plan_of(layers, "0.11.2", halves).required.value, 2 * 64 * kPage);
}

TEST(VllmReleases, StagesCountedLayersOfOthersWhosePagesDiffer) {
  std::vector<VllmLayer> layers;
  for (int place = 0; place < 2; ++place) {
    layers.push_back(attention(place, VllmKind::kLatent, 1152));
    layers.push_back(attention(place, VllmKind::kIndexer, 132));
  }
  const VllmKvSettings settings{.max_model_len = 64, .pipeline_parallel = 2};
  const auto plan_in = [&](const char* release) {
    const auto plan = plan_vllm_kv(layers, 2, settings, vllm_rules(release), Bytes(kGiB));
    EXPECT_TRUE(plan);
    return plan ? plan->num_blocks : 0;
  };
  EXPECT_EQ(plan_in("0.16.0"), kGiB / (2 * 16 * 1284));
  EXPECT_EQ(plan_in("0.17.0"), kGiB / (16 * 1284));
}

TEST(VllmReleases, HowARefusalReads) {
  const std::vector<VllmLayer> layers = {attention(0)};
  const auto said = [&](const char* release, std::int64_t bytes) {
    return plan_of(layers, release, {}, Bytes(bytes)).message;
  };
  EXPECT_EQ(
      said("0.11.2", 500'000),
      "To serve at least one request with the models's max seq len (1024), (0.00 GiB KV cache is needed, "
      "which is larger than the available KV cache memory (0.00 GiB). Based on the available memory, the "
      "estimated maximum model length is 480. Try increasing `gpu_memory_utilization` or decreasing "
      "`max_model_len` when initializing the engine.");
  EXPECT_NE(said("0.11.2", 1).find("(0.00 GiB).  Try increasing"), std::string::npos);
  EXPECT_NE(said("0.13.0", 500'000).find("(0.00 GiB). Based"), std::string::npos);
  EXPECT_TRUE(said("0.13.0", 500'000)
                  .ends_with("the engine. See https://docs.vllm.ai/en/latest/configuration/"
                             "conserving_memory/ for more details."));
  EXPECT_NE(said("0.19.1", 1).find("(0.0 GiB). Try increasing"), std::string::npos);
  EXPECT_NE(said("0.22.0", 1).find("the model's max seq len"), std::string::npos);
  EXPECT_NE(said("0.22.0", 1).find("utilization` (which also controls CPU"), std::string::npos);
  EXPECT_TRUE(said("0.12.0", 0).ends_with("when initializing the engine."));
  EXPECT_TRUE(said("0.21.0", 0).ends_with("more details."));
  EXPECT_NE(said("0.33.0", -1)
                .find("the engine (this flag also controls CPU memory reservation on the CPU "
                      "backend, despite its name). See"),
            std::string::npos);
}

TEST(VllmReleases, BlocksBesideStates) {
  const std::vector<VllmLayer> layers = {state(0), attention(1)};
  const std::vector<VllmLayer> latent = {state(0), attention(1, VllmKind::kLatent, 576)};
  EXPECT_EQ(plan_of(layers, "0.19.1", {.block_size = 64}).block_size, 16 * 62);
  EXPECT_EQ(plan_of(layers, "0.20.0", {.block_size = 64}).block_size, 64 * 16);
  EXPECT_EQ(plan_of(latent, "0.11.0").block_size, 16 * 109);
  EXPECT_EQ(plan_of(latent, "0.11.1").block_size, 64 * 28);
  EXPECT_EQ(plan_of(latent, "0.20.0").block_size, 16 * 109);
  EXPECT_EQ(plan_of(latent, "0.27.0").block_size, 128 * 14);
  // Kernels that keep all states take whole chunks: 977 tokens hold a state.
  const VllmKvSettings all{
      .max_model_len = 4096, .state_mode = VllmStateMode::kAll, .num_speculative_tokens = 1};
  for (const auto& [release, blocks] : {std::pair("0.19.1", 4), std::pair("0.22.0", 5)}) {
    const auto plan = plan_of(layers, release, all);
    EXPECT_EQ(plan.groups.front().block_size, 1024);
    EXPECT_EQ(plan.groups.front().blocks_per_request, blocks);
  }
}

TEST(VllmReleases, PrefillLeavesCheckpoints) {
  const std::vector<VllmLayer> layers = {state(0), attention(1)};
  EXPECT_EQ(plan_of(layers, "0.28.0").groups.front().blocks_per_request, 2);
  EXPECT_EQ(plan_of(layers, "0.29.0").groups.front().blocks_per_request, 3);
}

TEST(VllmReleases, BlocksOfWindows) {
  const std::vector<VllmLayer> layers = {attention(0, VllmKind::kSlidingWindow)};
  EXPECT_EQ(plan_of(layers, "0.24.0", {.block_size = 64}).block_size, 64);
  EXPECT_EQ(plan_of(layers, "0.25.0", {.block_size = 64}).block_size, 16);
  // Beside full layers their pages are made as large, so that nothing changes.
  const std::vector<VllmLayer> mixed = {attention(0, VllmKind::kSlidingWindow), attention(1)};
  EXPECT_EQ(plan_of(mixed, "0.25.0", {.block_size = 64}).block_size, 64);
}

TEST(VllmReleases, StatesNeedTheHybridManager) {
  const std::vector<VllmLayer> layers = {state(0), attention(1)};
  for (const char* release : {"0.11.2", "0.19.1", "0.33.0"})
    EXPECT_EQ(refusal_of(layers, release, {.is_hybrid_manager_on = false}), ErrorCode::kUnsupported);
}

TEST(VllmReleases, RowsAndTypesOfLayers) {
  model::ModelSpec spec;
  spec.layers.resize(2);
  spec.layers[0].mixer = model::Latent{
      .kv_lora_rank = 512, .qk_rope_head_dim = 64, .indexer = model::Indexer{.heads = 1, .head_dim = 128}};
  model::State mamba{.kind = model::StateKind::kMamba2, .heads = 1, .recurrent_elements = 100};
  mamba.recurrent_dtype = DType::kF32;
  spec.layers[1].mixer = mamba;
  const auto layers_in = [&](const char* release) {
    const VllmRules& rules = vllm_rules(release);
    const auto layers = vllm_layers(spec, {.aligns_rows = rules.aligns_rows, .state_type = rules.state_type});
    EXPECT_TRUE(layers);
    return *layers;
  };
  EXPECT_FALSE(layers_in("0.30.0").front().aligns_blocks);
  EXPECT_TRUE(layers_in("0.31.0").front().aligns_blocks);
  EXPECT_EQ(layers_in("0.12.0").back().state_bytes.value, 200);
  EXPECT_EQ(layers_in("0.13.0").back().state_bytes.value, 400);
  std::get<model::State>(spec.layers[1].mixer).is_recurrent_dtype_assumed = true;
  EXPECT_EQ(layers_in("0.19.1").back().state_bytes.value, 200);
  EXPECT_EQ(layers_in("0.20.0").back().state_bytes.value, 400);
}

TEST(VllmReleases, WhichPagesAreMadeEqual) {
  constexpr auto kWindow = VllmKind::kSlidingWindow;
  const std::vector<VllmLayer> halves = {attention(0, kWindow, 512), attention(1)};
  EXPECT_EQ(refusal_of(halves, "0.11.2"), ErrorCode::kUnsupported);
  EXPECT_EQ(plan_of(halves, "0.12.0").groups.front().block_size, 32);
  const std::vector<VllmLayer> thirds = {attention(0, kWindow, 768), attention(1)};
  EXPECT_EQ(refusal_of(thirds, "0.23.0"), ErrorCode::kUnsupported);
  EXPECT_EQ(plan_of(thirds, "0.24.0").groups.front().page.value, 16 * kToken);
}

}  // namespace
}  // namespace plimsoll::memory
