// SPDX-License-Identifier: Apache-2.0
// Rows for SGLang: its share of a GPU, its pools, its own line, and what is refused.
#include <gtest/gtest.h>

#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

Request asked(const std::string& gpu, std::string_view id = "meta-llama/Llama-3.1-8B") {
  Request request = request_for("sglang", gpu, id);
  request.settings.max_model_len = 8192;
  return request;
}

TEST(SglangRow, BytesGivenAreTokens) {
  auto request = asked("");
  request.settings.kv_cache_bytes = Bytes(16 * kGiB);
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(true));
  EXPECT_EQ(row["kv_tokens"], Json(131'072));
  EXPECT_EQ(row["max_concurrency"], Json(16.0));
  EXPECT_EQ(row["error_bar_bytes"], Json(0));
  EXPECT_EQ(row["log_line"],
            Json("max_total_num_tokens=131072, chunked_prefill_size=8192, max_prefill_tokens=16384, "
                 "max_running_requests=4096, context_len=8192"));
}

TEST(SglangRow, WhatTheShareLeaves) {
  const Json row = row_of(asked("80GiB"));
  EXPECT_EQ(row["fits"], Json(true));
  // 79.5 GiB free x 0.98, less weights and 2.5 GiB of graphs.
  const std::int64_t budget = row["budget_bytes_per_gpu"].as_integer().value_or(0);
  EXPECT_EQ(budget, static_cast<std::int64_t>(79.5 * static_cast<double>(kGiB) * 0.98));
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"],
            Json(budget - row["weights_bytes_per_gpu"].as_integer().value_or(0) - 5 * kGiB / 2));
  EXPECT_GT(row["error_bar_bytes"].as_integer().value_or(0), kGiB);
  auto request = asked("80GiB");
  request.settings.memory_utilization = 0.5;
  EXPECT_LT(row_of(request)["kv_tokens"].as_integer().value_or(0), row["kv_tokens"].as_integer().value_or(0));
}

TEST(SglangRow, PoolsOfWindows) {
  auto request = asked("", "openai/gpt-oss-120b");
  request.settings.kv_cache_bytes = Bytes(8 * kGiB);
  const Json row = row_of(request);
  EXPECT_EQ(row["kv_bytes_per_token_per_gpu"], Json(73'728));
  EXPECT_EQ(row["kv_tokens"], Json(8 * kGiB * 10 / (36'864 * 18)));
  EXPECT_TRUE(finding_of(row, "TWO_POOLS"));
}

TEST(SglangRow, PipelineStages) {
  auto request = asked("80GiB:6");
  request.settings.tensor_parallel = 2;
  request.settings.pipeline_parallel = 3;
  const Json row = row_of(request);
  EXPECT_EQ(row["pipeline_parallel"], Json(3));
  const auto& ranks = row["ranks"].items();
  ASSERT_EQ(ranks.size(), 3U);
  // 32 layers: the last two stages have one more. 4 heads of 128, keys and values, in 16 bit.
  EXPECT_EQ(ranks[0]["layers"], Json(10));
  EXPECT_EQ(ranks[2]["layers"], Json(11));
  EXPECT_EQ(ranks[0]["bytes_per_block"], Json(10 * 2048));
  EXPECT_EQ(row["kv_bytes_per_token_per_gpu"], Json(11 * 2048));
  EXPECT_EQ(row["kv_tokens"], Json(row["kv_cache_bytes_per_gpu"].as_integer().value_or(0) / (11 * 2048)));
  // 512 + 1.5 x 8,192 + 128 x 6 + 2 x 256 MiB, no prefill graphs; nothing is sized behind graphs.
  EXPECT_EQ(row["budget_bytes_per_gpu"],
            Json(static_cast<std::int64_t>(79.5 * static_cast<double>(kGiB) * 0.828)));
  request.settings.tensor_parallel = 3;
  EXPECT_FALSE(make_plan(request));  // 9 ranks are not 6 GPUs
}

TEST(SglangRow, DraftsOfTheModelsOwn) {
  Request request = request_for("sglang", "", "deepseek-ai/DeepSeek-V3");
  request.settings.kv_cache_bytes = Bytes(8 * kGiB);
  request.settings.max_model_len = 8192;
  request.settings.tensor_parallel = 8;
  const Json plain = row_of(request);
  EXPECT_EQ(plain["kv_bytes_per_token_per_gpu"], Json(61 * 1152));
  request.settings.num_speculative_tokens = 3;
  const Json row = row_of(request);
  EXPECT_EQ(row["kv_bytes_per_token_per_gpu"], Json(62 * 1152));
  EXPECT_TRUE(row["log_line"].as_string()->find("max_running_requests=48,") != std::string::npos);
  EXPECT_GT(row["weights_bytes_per_gpu"].as_integer().value_or(0),
            plain["weights_bytes_per_gpu"].as_integer().value_or(0));
  EXPECT_FALSE(finding_of(row, "DRAFT_BESIDE_POOL"));
  request.settings.pipeline_parallel = 2;
  EXPECT_FALSE(make_plan(request));
}

TEST(SglangRow, Refusals) {
  const Json small = row_of(asked("16GiB"));
  EXPECT_EQ(small["fits"], Json(false));
  EXPECT_TRUE(small["engine_message"].as_string()->starts_with("Not enough memory. Please try to increase"));
  auto request = asked("");
  request.settings.kv_cache_bytes = Bytes(kGiB / 2);
  const Json shorter = row_of(request);
  EXPECT_EQ(shorter["fits"], Json(false));
  EXPECT_EQ(shorter["estimated_max_model_len"], Json(4096));
  request.settings.num_speculative_tokens = 3;
  const auto drafts = make_plan(request);
  ASSERT_FALSE(drafts);  // no layers that draft
  EXPECT_EQ(drafts.error().code, ErrorCode::kUnsupported);
  request.settings.num_speculative_tokens = 0;
  request.settings.tensor_parallel = 3;
  EXPECT_TRUE(finding_of(row_of(request), "TP_DIVISIBILITY"));
  EXPECT_FALSE(make_plan(request_for("sglang", "")));
}

}  // namespace
}  // namespace plimsoll::plan
