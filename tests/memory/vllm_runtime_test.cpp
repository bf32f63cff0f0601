// SPDX-License-Identifier: Apache-2.0
#include "memory/vllm_runtime.h"

#include <gtest/gtest.h>

#include <cmath>

#include "facts/catalogue.h"
#include "tests/memory/worked_case.h"

namespace plimsoll::memory {
namespace {

constexpr Bytes kH100{85'018'877'624};  // 79.18 GiB

model::ModelSpec spec_of(std::string_view id) {
  const auto spec = model::read_spec(facts::find_catalogue(id)->config_json(), id);
  EXPECT_TRUE(spec);
  return *spec;
}

VllmBatch batch_of(const char* release, Bytes memory, std::string_view name, std::int64_t length = 8192) {
  return vllm_batch(vllm_rules(release), {memory, name}, length, {}, {});
}

TEST(VllmRuntime, BatchesFollowTheRelease) {
  const Bytes small(24 * kGiB), large(80 * kGiB), largest(180 * kGiB), unified(120 * kGiB);
  EXPECT_EQ(batch_of("0.6.4", small, "", 20'000).tokens, 20'000);
  EXPECT_EQ(batch_of("0.6.4", small, "", 35'000).tokens, 2048);
  EXPECT_EQ(batch_of("0.8.2", small, "T4").sequences, 1024);
  EXPECT_EQ(batch_of("0.8.2", large, "A100-SXM4-80GB").tokens, 2048);
  EXPECT_EQ(batch_of("0.8.5", large, "A100-SXM4-80GB").tokens, 8192);
  EXPECT_EQ(batch_of("0.11.0", large, "A100-SXM4-80GB").sequences, 256);
  EXPECT_EQ(batch_of("0.11.0", large, "H100-SXM5-80GB").sequences, 1024);
  EXPECT_EQ(batch_of("0.29.0", largest, "B200").tokens, 8192);
  EXPECT_EQ(batch_of("0.30.0", largest, "B200").tokens, 16'384);
  EXPECT_EQ(batch_of("0.32.0", unified, "DGX-Spark-GB10").tokens, 8192);
  EXPECT_EQ(batch_of("0.33.0", unified, "DGX-Spark-GB10").tokens, 2048);
  // No more than there can be.
  EXPECT_EQ(batch_of("0.33.0", large, "", 4).tokens, 4096);
  const VllmBatch asked = vllm_batch(vllm_rules("0.33.0"), {large, ""}, 8192, 512, 2000);
  EXPECT_EQ(asked.tokens, 512);
  EXPECT_EQ(asked.sequences, 512);
}

TEST(VllmRuntime, TheWorkedCase) {
  const testing::WorkedCase page("vllm_budget.md");
  const VllmRules& rules = vllm_rules("0.11.0");
  EXPECT_EQ(vllm_budget(rules, kH100, 0.9).value, page.integer("budget"));
  const VllmBatch batch = batch_of("0.11.0", kH100, "H100-SXM5-80GB", 131'072);
  EXPECT_EQ(batch.tokens, page.integer("batch_tokens"));
  EXPECT_EQ(batch.sequences, page.integer("batch_sequences"));
  const facts::VllmRuntime one{0, 8, 1.0, 0, 0, 0, 0, 0, 0, 0, 0, ""};
  const auto runtime =
      vllm_runtime(spec_of("meta-llama/Llama-3.1-8B-Instruct"), {.batch = batch}, rules, one);
  EXPECT_EQ(runtime.sampler.value, page.integer("sampler_copies_of_logits"));
  EXPECT_EQ(runtime.total(), runtime.sampler);
}

TEST(VllmRuntime, TheShareIsRoundedAsTheReleaseDoes) {
  const Bytes memory(1001);
  EXPECT_EQ(vllm_budget(vllm_rules("0.13.0"), memory, 0.9).value, 900);
  EXPECT_EQ(vllm_budget(vllm_rules("0.14.0"), memory, 0.9).value, 901);
  EXPECT_DOUBLE_EQ(vllm_largest_utilization(vllm_rules("0.33.0"), Bytes(1000), Bytes(895)), 0.89);
  EXPECT_EQ(vllm_largest_utilization(vllm_rules("0.33.0"), Bytes(1000), Bytes(1)), 0.0);
}

TEST(VllmRuntime, TheLargerOfForwardAndSampler) {
  const auto spec = spec_of("meta-llama/Llama-3.1-8B-Instruct");
  const VllmRules& rules = vllm_rules("0.33.0");
  const facts::VllmRuntime fit{0, 20, 2.0, 3.0, 3.0, 100, 500, 200, 50, 0, 0, ""};
  VllmRuntimeSettings settings{.batch = {8192, 1}};
  auto runtime = vllm_runtime(spec, settings, rules, fit);
  // The widest layer of 14,336 and the width of 4,096, three vectors each.
  EXPECT_EQ(runtime.forward.value, 8192LL * 3 * (14'336 + 4'096) * 2);
  EXPECT_EQ(runtime.total().value, runtime.forward.value + 300 * kMiB);
  settings.is_eager = true;
  settings.tensor_parallel = 4;
  settings.has_drafts = true;
  runtime = vllm_runtime(spec, settings, rules, fit);
  EXPECT_EQ(runtime.forward.value, 8192LL * 3 * (14'336 / 4 + 4'096) * 2);
  EXPECT_EQ(runtime.graphs.value, 0);
  EXPECT_EQ(runtime.non_torch.value, 500 * kMiB);
  EXPECT_EQ(runtime.drafts.value, 50 * kMiB);
  settings.batch.sequences = 1'000'000;
  runtime = vllm_runtime(spec, settings, rules, fit);
  EXPECT_EQ(runtime.total().value, runtime.sampler.value + 550 * kMiB);
}

// Experts of a token write their outputs at full width.
TEST(VllmRuntime, ExpertsOfATokenCount) {
  const auto spec = spec_of("Qwen/Qwen3-30B-A3B-Thinking-2507");
  const facts::VllmRuntime fit{0, 20, 0.0, 0.0, 3.0, 0, 0, 0, 0, 64, 128, ""};
  VllmRuntimeSettings settings{.batch = {1000, 1}};
  const auto whole = vllm_runtime(spec, settings, vllm_rules("0.33.0"), fit);
  EXPECT_EQ(whole.forward.value, 1000LL * 8 * (2048 + 768) * 2);
  EXPECT_EQ(whole.band.value, 128 * kMiB);
  settings.tensor_parallel = 4;
  EXPECT_EQ(vllm_runtime(spec, settings, vllm_rules("0.33.0"), fit).forward.value,
            1000LL * 8 * (2048 + 192) * 2);
  settings.is_expert_parallel = true;
  EXPECT_EQ(vllm_runtime(spec, settings, vllm_rules("0.33.0"), fit).forward, whole.forward);
}

TEST(VllmRuntime, ConstantsOfEveryRelease) {
  EXPECT_EQ(&facts::vllm_runtime("0.33.0"), &facts::vllm_runtimes()[0]);
  EXPECT_EQ(&facts::vllm_runtime("garbage"), &facts::vllm_runtimes()[0]);
  EXPECT_EQ(&facts::vllm_runtime("0.1.0"), &facts::vllm_runtimes().back());
  EXPECT_GT(facts::vllm_runtime("0.16.0").sampler_copies, 2 * facts::vllm_runtime("0.17.0").sampler_copies);
  for (const facts::VllmRuntime& row : facts::vllm_runtimes()) {
    EXPECT_GT(row.band_mib, 0);
    EXPECT_GT(row.wide_band_mib, row.band_mib);
    EXPECT_FALSE(row.source.empty());
  }
}

}  // namespace
}  // namespace plimsoll::memory
