// SPDX-License-Identifier: Apache-2.0
// Rows for vLLM: what flags mean, and what is refused.
#include <gtest/gtest.h>

#include "plan/plan.h"

namespace plimsoll::plan {
namespace {

constexpr const char* kSmall = "meta-llama/Llama-3.1-8B";

Request request_of(const char* id, const char* engine = "vllm") {
  Request request;
  request.engine = *facts::parse_engine(engine);
  request.models.push_back(*catalogue_model(*facts::find_catalogue(id)));
  request.settings.kv_cache_bytes = Bytes(16 * kGiB);
  request.settings.max_model_len = 8192;
  return request;
}

Json row_of(const Request& request) {
  const auto plan = make_plan(request);
  EXPECT_TRUE(plan) << plan.error().describe();
  return plan ? to_json(*plan)["rows"].items()[0] : Json();
}

TEST(VllmRow, CountsBlocksTokensAndRequests) {
  const Json row = row_of(request_of(kSmall));
  EXPECT_EQ(row["fits"], Json(true));
  EXPECT_EQ(row["num_blocks"], Json(8192));
  EXPECT_EQ(row["kv_tokens"], Json(131'072));
  EXPECT_EQ(row["max_concurrency"], Json(16.0));
  EXPECT_EQ(row["weights_bytes_per_gpu"], Json(16'060'522'496 + 33'554'944));
  EXPECT_EQ(row["kv_groups"].items()[0]["kind"], Json("FullAttentionSpec"));
  EXPECT_EQ(row["kv_cache_bytes_per_gpu"], Json(16 * kGiB));
  EXPECT_EQ(row["error_bar_bytes"], Json(0));
  EXPECT_EQ(row["estimated_max_model_len"], Json(131'056));  // one block is kept back
  EXPECT_EQ(row["log_line"],
            Json("GPU KV cache size: 131,072 tokens, Maximum concurrency for 8,192 tokens per "
                 "request: 16.00x"));
}

TEST(VllmRow, RefusesInTheEnginesWords) {
  auto request = request_of(kSmall);
  request.settings.max_model_len = 131'072;
  request.settings.kv_cache_bytes = Bytes(3 * kGiB);
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(false));
  EXPECT_TRUE(row["num_blocks"].is_null());
  EXPECT_EQ(row["estimated_max_model_len"], Json(24'560));
  EXPECT_EQ(row["required_kv_cache_bytes_per_gpu"], Json(16 * kGiB));
  EXPECT_NE(row["engine_message"].as_string()->find("(16.0 GiB KV cache is needed"), std::string::npos);
  request.settings.longest_model_len = true;
  const Json longest = row_of(request);
  EXPECT_EQ(longest["fits"], Json(true));
  EXPECT_EQ(longest["max_model_len"], Json(24'560));
}

TEST(VllmRow, RanksAndStages) {
  auto request = request_of("meta-llama/Llama-3.1-70B");
  request.settings.tensor_parallel = 2;
  request.settings.pipeline_parallel = 4;
  const Json row = row_of(request);
  EXPECT_EQ(row["tensor_parallel"], Json(2));
  EXPECT_EQ(row["pipeline_parallel"], Json(4));
  ASSERT_EQ(row["ranks"].size(), 4U);
  EXPECT_EQ(row["ranks"].items()[0]["layers"], Json(20));
  EXPECT_EQ(row["bytes_per_block"], Json(20 * 32'768));
  request.settings.tensor_parallel = 3;
  const Json impossible = row_of(request);
  EXPECT_EQ(impossible["fits"], Json(false));
  EXPECT_EQ(impossible["findings"].items()[0]["id"], Json("TP_DIVISIBILITY"));
  EXPECT_TRUE(impossible["weights_bytes_per_gpu"].is_null());
}

TEST(VllmRow, WhatCannotBeToldIsNotGuessed) {
  auto request = request_of(kSmall);
  request.settings.kv_cache_bytes.reset();
  request.targets.push_back(*parse_target("H100"));
  const auto plan = make_plan(request);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kUnsupported);
  EXPECT_EQ(plan.error().where, "--kv-cache-memory-bytes");
  for (const char* dtype : {"q8_0", "float32", "fp8_ds_mla"}) {
    auto odd = request_of(kSmall);
    odd.settings.kv_cache_dtype = dtype;
    EXPECT_FALSE(make_plan(odd)) << dtype;
  }
}

TEST(VllmRow, ReleasesSayTokensDifferently) {
  auto request = request_of("google/gemma-3-27b-it", "vllm@0.33.0");
  const auto now = row_of(request)["kv_tokens"].as_integer();
  request.engine = *facts::parse_engine("vllm@0.19.1");
  const auto before = row_of(request)["kv_tokens"].as_integer();
  ASSERT_TRUE(now && before);
  EXPECT_NE(*now, *before);
}

}  // namespace
}  // namespace plimsoll::plan
