// SPDX-License-Identifier: Apache-2.0
#include "memory/simple_accounting.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>

#include "memory/kv_cache.h"
#include "tests/memory/worked_case.h"

namespace plimsoll::memory {
namespace {

using testing::gb_text;
using testing::WorkedCase;

std::string one_decimal(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.1f", value);
  return text;
}

TEST(SimpleAccounting, TheFormulaPagesWorkedCase) {
  const WorkedCase page("simple_accounting.md");
  SimpleInput input;
  input.weights = Bytes(page.integer("weights_bytes"));
  input.kv_bytes_per_token = Bytes(page.integer("kv_bytes_per_token"));
  input.num_gpus = page.integer("gpus");
  input.gpu_memory = Bytes(page.integer("gpu_memory_bytes"));
  input.max_model_len = page.integer("max_model_len");
  const auto plan = plan_simple(input);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->budget.value, page.integer("budget_bytes"));
  EXPECT_EQ(plan->kv_cache.value, page.integer("kv_cache_bytes"));
  EXPECT_EQ(plan->kv_tokens.value, page.integer("kv_tokens"));
  EXPECT_EQ(one_decimal(plan->max_concurrency), page.text("requests"));
  EXPECT_TRUE(plan->fits);
}

TEST(SimpleAccounting, TheDocumentsEightRows) {
  struct Row {
    std::int64_t parameters, token_bytes;
    WeightFormat weights;
    int gpus, gigabytes;
    std::int64_t length;
    const char *weights_gb, *kv_gb;
    std::int64_t tokens;
    const char* requests;
    bool fits;
  };
  constexpr std::int64_t k8B = 8'030'261'248, k70B = 70'553'706'496;
  using enum WeightFormat;
  for (const Row& row : {
           Row{k8B, 131072, kBFloat16, 1, 24, 8192, "16.1", "4.0", 30'666, "3.7", true},
           Row{k8B, 131072, kBFloat16, 1, 24, 131072, "16.1", "4.0", 30'666, "0.2", false},
           Row{k8B, 131072, kBFloat16, 1, 80, 131072, "16.1", "55.5", 423'733, "3.2", true},
           Row{k70B, 327680, kBFloat16, 2, 80, 8192, "141.1", "2.1", 6'386, "0.8", false},
           Row{k70B, 327680, kBFloat16, 4, 80, 8192, "141.1", "145.3", 443'398, "54.1", true},
           Row{k70B, 327680, kFp8, 2, 80, 8192, "70.6", "72.6", 221'699, "27.1", true},
           Row{k70B, 163840, kFp8, 2, 80, 8192, "70.6", "72.6", 443'398, "54.1", true},
           Row{k70B, 327680, kInt4, 1, 80, 8192, "35.3", "36.3", 110'849, "13.5", true},
       }) {
    SimpleInput input;
    input.weights = *weights_bytes(row.parameters, row.weights);
    input.kv_bytes_per_token = Bytes(row.token_bytes);
    input.num_gpus = row.gpus;
    input.gpu_memory = Bytes(row.gigabytes * kGB);
    input.max_model_len = row.length;
    const auto plan = plan_simple(input);
    ASSERT_TRUE(plan);
    EXPECT_EQ(gb_text(static_cast<double>(input.weights.value), 1), row.weights_gb);
    EXPECT_EQ(gb_text(static_cast<double>(plan->kv_cache.value), 1), row.kv_gb);
    EXPECT_EQ(plan->kv_tokens.value, row.tokens);
    EXPECT_EQ(one_decimal(plan->max_concurrency), row.requests);
    EXPECT_EQ(plan->fits, row.fits);
  }
}

TEST(SimpleAccounting, WeightsThatDoNotFitLeaveNoTokens) {
  const auto plan = plan_simple({.weights = Bytes(141 * kGB),
                                 .kv_bytes_per_token = Bytes(327'680),
                                 .num_gpus = 1,
                                 .gpu_memory = Bytes(80 * kGB),
                                 .max_model_len = 8192});
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->fits);
  EXPECT_LT(plan->kv_cache.value, 0);
  EXPECT_EQ(plan->kv_tokens.value, 0);
  EXPECT_EQ(plan->max_concurrency, 0.0);
}

TEST(SimpleAccounting, NonsenseIsRefused) {
  const SimpleInput sound{.weights = Bytes(1),
                          .kv_bytes_per_token = Bytes(1),
                          .num_gpus = 1,
                          .gpu_memory = Bytes(24 * kGB),
                          .max_model_len = 1};
  ASSERT_TRUE(plan_simple(sound));
  const auto with = [&](auto change) {
    SimpleInput input = sound;
    change(input);
    return plan_simple(input).has_value();
  };
  EXPECT_FALSE(with([](SimpleInput& i) { i.num_gpus = 0; }));
  EXPECT_FALSE(with([](SimpleInput& i) { i.gpu_memory = Bytes(0); }));
  EXPECT_FALSE(with([](SimpleInput& i) { i.memory_utilization = 1.5; }));
  EXPECT_FALSE(with([](SimpleInput& i) { i.memory_utilization = std::nan(""); }));
  EXPECT_FALSE(with([](SimpleInput& i) { i.max_model_len = 0; }));
  EXPECT_FALSE(with([](SimpleInput& i) { i.kv_bytes_per_token = Bytes(0); }));
  EXPECT_FALSE(with([](SimpleInput& i) { i.num_gpus = i.gpu_memory.value = INT64_MAX / 2; }));
}

}  // namespace
}  // namespace plimsoll::memory
