// SPDX-License-Identifier: Apache-2.0
// Packed formats of keys and values, and the cache of compressed latent vectors.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

constexpr const char* kV4 = "nvidia/DeepSeek-V4-Flash-NVFP4";

Request v4_request(const char* engine, double gib, std::int64_t length, int batch) {
  Request request = request_for(engine, "", kV4);
  request.settings.kv_cache_bytes = Bytes(std::llround(gib * static_cast<double>(kGiB)));
  request.settings.max_model_len = length;
  request.settings.max_num_batched_tokens = batch;
  return request;
}

std::int64_t token_bytes(const char* engine, const char* format, const char* id) {
  Request request = request_for(engine, "", id);
  request.settings.kv_cache_bytes = Bytes(4 * kGiB);
  request.settings.max_model_len = 4096;
  request.settings.kv_cache_dtype = format;
  return row_of(request)["kv_bytes_per_token_per_gpu"].as_integer().value_or(-1);
}

// 36 layers of 8 heads with keys and values of 128.
TEST(VllmCacheKinds, PackedFormatsTakeTheirBits) {
  const char* qwen = "Qwen/Qwen3-4B";
  EXPECT_EQ(token_bytes("vllm@0.20", "int8_per_token_head", qwen), 36 * 8 * (128 + 128 + 8));
  EXPECT_EQ(token_bytes("vllm@0.25", "int4_per_token_head", qwen), 36 * 8 * (64 + 64 + 8));
  EXPECT_EQ(token_bytes("vllm@0.20", "nvfp4", qwen), 36 * 8 * (64 + 8 + 64 + 8));
  const auto ends_in_16_bit = [](std::int64_t head) { return 8 * (32 * head + 4 * 512); };
  EXPECT_EQ(token_bytes("vllm@0.20", "turboquant_k8v4", qwen), ends_in_16_bit(128 + 64 + 4));
  EXPECT_EQ(token_bytes("vllm@0.20", "turboquant_4bit_nc", qwen), ends_in_16_bit(64 + 2 + 64 + 4));
  EXPECT_EQ(token_bytes("vllm@0.20", "turboquant_k3v4_nc", qwen), ends_in_16_bit(48 + 2 + 64 + 4));
  EXPECT_EQ(token_bytes("vllm@0.20", "turboquant_3bit_nc", qwen), ends_in_16_bit(48 + 2 + 48 + 4));
}

// Where layers keep states, no layer stays in 16 bit: 16 layers of 4 heads with keys and values of 256.
TEST(VllmCacheKinds, NoEndsBesideStates) {
  EXPECT_EQ(token_bytes("vllm@0.24", "turboquant_k8v4", "Qwen/Qwen3.5-27B"), 16 * 4 * (256 + 128 + 4));
}

TEST(VllmCacheKinds, FormatsComeWithTheirRelease) {
  Request request = request_for("vllm@0.19", "H100");
  request.settings.kv_cache_dtype = "nvfp4";
  EXPECT_EQ(make_plan(request).error().code, ErrorCode::kUnsupported);
  request.engine = *facts::parse_engine("vllm@0.24");
  EXPECT_TRUE(make_plan(request));
  request.settings.kv_cache_dtype = "int4_per_token_head";
  EXPECT_EQ(make_plan(request).error().code, ErrorCode::kUnsupported);
  Request latent = request_for("vllm", "", "deepseek-ai/DeepSeek-V2-Lite-Chat");
  latent.settings.kv_cache_bytes = Bytes(4 * kGiB);
  latent.settings.kv_cache_dtype = "turboquant_k8v4";
  EXPECT_EQ(make_plan(latent).error().code, ErrorCode::kUnsupported);
  latent.settings.kv_cache_dtype = "int8_per_token_head";
  EXPECT_EQ(row_of(latent)["kv_bytes_per_token_per_gpu"].as_integer(), 27 * (576 + 8));
}

// Three starts that were posted: 6.66 GiB are needed where 5.44 are there; 52.66 where 23.37 are; 50.51 GiB
// hold 752,889 tokens, 7.66 requests.
TEST(VllmCacheKinds, CompressedVectorsAsRecorded) {
  const Json small = row_of(v4_request("vllm@0.22", 5.44, 30'000, 16'384));
  EXPECT_EQ(small["fits"], Json(false));
  EXPECT_NEAR(*small["required_kv_cache_bytes_per_gpu"].as_double() / kGiB, 6.66, 0.005);
  EXPECT_NEAR(*small["estimated_max_model_len"].as_double(), 13'528, 24);
  const Json wide = row_of(v4_request("vllm@0.27.1", 23.37, 131'072, 65'536));
  EXPECT_NEAR(*wide["required_kv_cache_bytes_per_gpu"].as_double() / kGiB, 52.66, 0.005);
  EXPECT_NEAR(*wide["estimated_max_model_len"].as_double(), 58'148, 24);
  const Json low = row_of(v4_request("vllm@0.27.1", 50.505, 98'304, 8192));
  const Json high = row_of(v4_request("vllm@0.27.1", 50.515, 98'304, 8192));
  EXPECT_LE(*low["kv_tokens"].as_integer(), 752'889);
  EXPECT_GE(*high["kv_tokens"].as_integer(), 752'889);
  EXPECT_NEAR(*high["max_concurrency"].as_double(), 7.66, 0.005);
}

// 43 windows, 21 layers that compress by 4, 20 by 128; pages of 37,440, 8,640 and 1,728 bytes.
TEST(VllmCacheKinds, ABlockOfCompressedVectorsByRelease) {
  const auto block = [](const char* engine) {
    return *row_of(v4_request(engine, 50, 32'768, 8192))["bytes_per_block"].as_integer();
  };
  EXPECT_EQ(block("vllm@0.23"), 22 * (37'440 + 8'640 + 1'728));
  EXPECT_EQ(block("vllm@0.25"), 22 * 37'440 + 21 * 8'640 + 20 * 1'728);
  EXPECT_EQ(block("vllm@0.28"), 21 * (37'440 + 8'640) + 20 * 1'728);
  EXPECT_EQ(block("vllm@0.33"), 21 * (37'440 + 8'640) + 20 * 1'728);
}

TEST(VllmCacheKinds, WhatNoReleaseLaysOutIsRefused) {
  const auto code = [](Request request) {
    const auto plan = make_plan(request);
    return plan ? std::optional<ErrorCode>() : std::optional(plan.error().code);
  };
  EXPECT_EQ(code(v4_request("vllm@0.19", 50, 32'768, 8192)), ErrorCode::kUnsupported);
  Request request = v4_request("vllm", 50, 32'768, 8192);
  request.settings.kv_cache_dtype = "bfloat16";
  EXPECT_EQ(code(request), ErrorCode::kUnsupported);
  request.settings.kv_cache_dtype = "fp8";
  EXPECT_EQ(code(request), std::nullopt);
  request.settings.hybrid_manager = false;
  EXPECT_EQ(code(request), ErrorCode::kUnsupported);
  request.settings.hybrid_manager = true;
  request.settings.block_size = 64;
  EXPECT_EQ(code(request), ErrorCode::kUsage);
}

// Each stage holds its own layers' pages.
TEST(VllmCacheKinds, StagesOfCompressedVectors) {
  Request request = v4_request("vllm@0.33", 50, 32'768, 8192);
  request.settings.pipeline_parallel = 2;
  const Json row = row_of(request);
  EXPECT_EQ(row["ranks"].items().size(), 2u);
  const std::int64_t whole = 21 * (37'440 + 8'640) + 20 * 1'728;
  const std::int64_t widest = *row["bytes_per_block"].as_integer();
  EXPECT_LT(widest, whole);
  EXPECT_GE(widest, whole / 2);
}

}  // namespace
}  // namespace plimsoll::plan
