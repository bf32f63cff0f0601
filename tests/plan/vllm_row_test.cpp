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

Json group_in(Request request, const char* release) {
  request.engine = *facts::parse_engine(std::string("vllm@") + release);
  return row_of(request)["kv_groups"].items()[0];
}

TEST(VllmRow, WhatCachedPrefixesKeepOfStates) {
  auto mamba = request_of("nvidia/Nemotron-H-56B-Base-8K");
  auto delta = request_of("Qwen/Qwen3-Next-80B-A3B-Instruct");
  for (auto* request : {&mamba, &delta}) request->settings.prefix_caching = true;
  const auto states = [](const Request& request, const char* release) {
    const Json group = group_in(request, release);
    return std::pair(group["blocks_per_request"].as_integer(), group["block_size"].as_integer());
  };
  using States = decltype(states(mamba, ""));
  EXPECT_EQ(states(mamba, "0.11.0"), States(1, 8192));
  EXPECT_EQ(states(mamba, "0.11.2"), States(4, 2176));  // whole chunks of 128; states in 16 bit
  EXPECT_EQ(states(delta, "0.11.2"), States(1, 8192));
  EXPECT_EQ(states(mamba, "0.19.1"), States(4, 2176));
  EXPECT_EQ(states(mamba, "0.27.1"), States(2, 4224));
  EXPECT_EQ(states(delta, "0.19.1"), States(2, 544));
  EXPECT_EQ(states(mamba, "0.28.0"), States(2, 4128));
  mamba.settings.state_mode = delta.settings.state_mode = memory::VllmStateMode::kAll;
  EXPECT_EQ(states(mamba, "0.28.0"), States(2, 4224));
  EXPECT_EQ(states(delta, "0.28.0"), States(2, 544));
  mamba.settings.prefix_caching = false;
  EXPECT_EQ(states(mamba, "0.28.0"), States(1, 8192));
}

TEST(VllmRow, StagesOfMixturesOverlapWithABatchMoreFromOneReleaseOn) {
  auto request = request_of("openai/gpt-oss-120b");
  request.settings.pipeline_parallel = 2;
  request.settings.max_num_batched_tokens = 512;
  const auto blocks = [&](const char* release) { return group_in(request, release)["blocks_per_request"]; };
  EXPECT_EQ(blocks("0.25.0"), Json((127 + 512 + 15) / 16 + 1));
  EXPECT_EQ(blocks("0.28.0"), Json((127 + 2 * 512 + 15) / 16 + 1));
  EXPECT_EQ(blocks("0.29.0"), Json((127 + 3 * 512 + 15) / 16 + 1));
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
  const auto plan = make_plan(request);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().code, ErrorCode::kUsage);
  for (const char* dtype : {"q8_0", "float32", "fp8_ds_mla"}) {
    auto odd = request_of(kSmall);
    odd.settings.kv_cache_dtype = dtype;
    EXPECT_FALSE(make_plan(odd)) << dtype;
  }
}

// The parts of the bill make up the budget, to the byte.
TEST(VllmRow, DividesAGpu) {
  for (const char* engine : {"vllm@0.33.0", "vllm@0.19.1", "vllm@0.11.0", "vllm@0.7.3"}) {
    auto request = request_of(kSmall, engine);
    request.settings.kv_cache_bytes.reset();
    request.targets.push_back(*parse_target("H100"));
    const Json row = row_of(request);
    EXPECT_EQ(row["fits"], Json(true)) << engine;
    std::int64_t sum = 0;
    for (const Json& part : row["memory"].items()) {
      sum += *part["bytes"].as_integer();
      EXPECT_TRUE(*part["bytes"].as_integer() > 0 || part["why"].as_string()) << *part["part"].as_string();
    }
    EXPECT_EQ(Json(sum), row["budget_bytes_per_gpu"]) << engine;
    EXPECT_GT(*row["error_bar_bytes"].as_integer(), 0);
    EXPECT_EQ(row["kv_cache_limited_by"], Json("memory"));
  }
}

// Recorded: 51.38 GiB with 0.11.0 at 0.9 of 79.18 GiB.
TEST(VllmRow, ARecordedStartLiesInTheBand) {
  auto request = request_of(kSmall, "vllm@0.11.0");
  request.settings.kv_cache_bytes.reset();
  request.targets.push_back(*parse_target("H100"));
  request.targets[0].memory = Bytes(85'018'877'624);
  const Json row = row_of(request);
  EXPECT_NEAR(static_cast<double>(*row["kv_cache_bytes_per_gpu"].as_integer()) / kGiB, 51.38,
              static_cast<double>(*row["error_bar_bytes"].as_integer()) / kGiB);
}

TEST(VllmRow, FreeMemoryIsAskedFor) {
  auto request = request_of(kSmall, "vllm@0.33.0");
  request.settings.kv_cache_bytes.reset();
  request.targets.push_back(*parse_target("24GiB"));
  request.targets[0].available = Bytes(22 * kGiB);
  const Json row = row_of(request);
  EXPECT_EQ(row["fits"], Json(false));
  ASSERT_EQ(row["findings"].items()[0]["id"], Json("FREE_MEMORY"));
  EXPECT_NE(row["findings"].items()[0]["fix"].as_string()->find("0.91"), std::string::npos);
  EXPECT_NE(row["engine_message"].as_string()->find(
                "Free memory on device cuda:0 (22.0/24.0 GiB) on startup is less than desired GPU memory "
                "utilization (0.92, 22.08 GiB)."),
            std::string::npos)
      << *row["engine_message"].as_string();
  // Older releases looked at what others took instead.
  request.engine = *facts::parse_engine("vllm@0.8.5");
  const auto before = *row_of(request)["kv_cache_bytes_per_gpu"].as_integer();
  request.targets[0].available.reset();
  EXPECT_EQ(*row_of(request)["kv_cache_bytes_per_gpu"].as_integer() - before, 2 * kGiB);
}

TEST(VllmRow, StagesHoldTheirOwnWeights) {
  auto request = request_of("meta-llama/Llama-3.1-70B");
  request.settings.pipeline_parallel = 4;
  const Json row = row_of(request);
  ASSERT_EQ(row["ranks"].size(), 4U);
  std::int64_t sum = 0;
  for (const Json& rank : row["ranks"].items()) sum += *rank["weights_bytes"].as_integer();
  // Tables of the rotary embedding are on each stage.
  EXPECT_GT(sum, 141'107'412'992);
  EXPECT_LT(sum, 141'107'412'992 + 4 * 40'000'000);
  EXPECT_GT(*row["ranks"].items()[0]["weights_bytes"].as_integer(),
            *row["ranks"].items()[1]["weights_bytes"].as_integer());
}

TEST(VllmRow, ReleasesSayTokensDifferently) {
  auto request = request_of("google/gemma-3-27b-it", "vllm@0.33.0");
  const auto now = row_of(request)["kv_tokens"].as_integer();
  request.engine = *facts::parse_engine("vllm@0.19.1");
  const auto before = row_of(request)["kv_tokens"].as_integer();
  ASSERT_TRUE(now && before);
  EXPECT_NE(*now, *before);
}

TEST(VllmRow, AutoTakesTheCheckpointsCacheByRelease) {
  const auto type_of = [](const char* id, const char* engine, const char* asked) {
    auto request = request_of(id, engine);
    request.settings.kv_cache_dtype = asked;
    return row_of(request)["kv_cache_dtype"];
  };
  constexpr const char* kModelopt = "nvidia/Qwen3.5-122B-A10B-NVFP4";
  EXPECT_EQ(type_of(kModelopt, "vllm@0.13.0", "auto"), Json("bf16"));
  EXPECT_EQ(type_of(kModelopt, "vllm@0.14.0", "auto"), Json("fp8"));
  EXPECT_EQ(row_of(request_of(kModelopt))["findings"].items()[0]["id"], Json("KV_CACHE_DECLARED"));
  EXPECT_EQ(type_of(kModelopt, "vllm@0.33.0", "bfloat16"), Json("bf16"));
  EXPECT_EQ(type_of(kSmall, "vllm@0.33.0", "auto"), Json("bf16"));
  auto other = request_of(kModelopt);
  other.settings.quantization = memory::WeightFormat::kBFloat16;  // not that checkpoint
  EXPECT_EQ(row_of(other)["kv_cache_dtype"], Json("bf16"));
}

TEST(VllmRow, LatentVectorsWereFilledUp) {
  const auto bytes_of = [](const char* engine) {
    return row_of(request_of("deepseek-ai/DeepSeek-V2-Lite-Chat", engine))["kv_bytes_per_token_per_gpu"];
  };
  EXPECT_EQ(bytes_of("vllm@0.7.1"), Json(27 * 576 * 2));
  EXPECT_EQ(bytes_of("vllm@0.7.3"), Json(27 * 640 * 2));
  EXPECT_EQ(bytes_of("vllm@0.8.0"), Json(27 * 576 * 2));
}

TEST(VllmRow, GivenBlocksAreThePool) {
  const auto fits = [](const char* engine) {
    auto request = request_of(kSmall, engine);
    request.settings.num_blocks = 600;  // 512 for the longest request
    request.settings.kv_cache_bytes = Bytes(kGiB / 2);
    return row_of(request)["fits"];
  };
  EXPECT_EQ(fits("vllm@0.20.0"), Json(false));
  EXPECT_EQ(fits("vllm@0.21.0"), Json(true));
}

}  // namespace
}  // namespace plimsoll::plan
