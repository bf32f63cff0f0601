// SPDX-License-Identifier: Apache-2.0
// Flags of vLLM that are refused, as the engine would, and flags that move weights.
#include <gtest/gtest.h>

#include <cmath>

#include "base/json.h"
#include "tests/plan/requests.h"
#include "tests/testing/golden.h"

namespace plimsoll::plan {
namespace {

TEST(VllmFlags, WhatTheEngineRefusesIsRefused) {
  const auto code = [](auto change) {
    Request request = request_for("vllm", "H100");
    change(request.settings);
    const auto plan = make_plan(request);
    return plan ? std::optional<ErrorCode>() : std::optional(plan.error().code);
  };
  EXPECT_EQ(code([](Settings& s) { s.memory_utilization = std::nan(""); }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings& s) { s.memory_utilization = 1.5; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings& s) { s.num_blocks = INT64_MAX; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings& s) { s.dtype = "foo"; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings& s) { s.dtype = "float32"; }), ErrorCode::kUnsupported);
  for (const char* dtype : {"float64", "float8_e4m3fn", "int8"})
    EXPECT_EQ(code([&](Settings& s) { s.dtype = dtype; }), ErrorCode::kUsage) << dtype;
  // Above the batch that the engine takes by itself.
  EXPECT_EQ(code([](Settings& s) { s.max_num_seqs = 20'000; }), ErrorCode::kUsage);
  EXPECT_EQ(code([](Settings& s) { s.dtype = "half"; }), std::nullopt);
  EXPECT_EQ(code([](Settings& s) { s.max_num_seqs = 4096, s.max_num_batched_tokens = 2048; }),
            ErrorCode::kUsage);
}

// The sentence of a start that was to choose its length itself.
TEST(VllmFlags, NoLengthIsFoundInItsOwnWords) {
  Request request = request_for("vllm", "");
  request.settings.kv_cache_bytes = Bytes(1000);
  request.settings.longest_model_len = true;
  EXPECT_EQ(
      *row_of(request)["engine_message"].as_string(),
      "Cannot auto-fit max_model_len: not enough GPU memory available to serve even a single token. Try "
      "increasing `gpu_memory_utilization`.");
}

TEST(VllmFlags, TypesOfActivationsByEngine) {
  const auto code = [](const char* engine, const char* dtype) {
    auto request = request_for(engine, "H100");
    request.settings.dtype = dtype;
    const auto plan = make_plan(request);
    return plan ? std::optional<ErrorCode>() : plan.error().code;
  };
  for (const char* engine : {"vllm", "sglang", "any"}) {
    EXPECT_EQ(code(engine, "bfloat16"), std::nullopt) << engine;
    EXPECT_EQ(code(engine, "float32"), ErrorCode::kUnsupported) << engine;
    EXPECT_EQ(code(engine, "foo"), ErrorCode::kUsage) << engine;
  }
  EXPECT_EQ(code("llama.cpp", "bfloat16"), ErrorCode::kUsage);
  EXPECT_EQ(code("llama.cpp", "auto"), std::nullopt);
}

TEST(VllmFlags, NoLengthIsChosenBeforeItsRelease) {
  const auto plan_of = [](const char* engine) {
    auto request = request_for(engine, "H100");
    request.settings.longest_model_len = true;
    return make_plan(request);
  };
  EXPECT_TRUE(plan_of("vllm@0.14.0"));
  EXPECT_EQ(plan_of("vllm@0.13.0").error().code, ErrorCode::kUnsupported);
}

// A layout that cannot be is stated as it was asked for, with a GPU or without.
TEST(VllmFlags, ImpossibleLayoutsAreStated) {
  auto request = request_for("vllm", "");
  request.settings.kv_cache_bytes = Bytes(kGiB);
  request.settings.tensor_parallel = 7;
  const Json wide = row_of(request);
  EXPECT_EQ(wide["fits"], Json(false));
  EXPECT_EQ(wide["tensor_parallel"], Json(7));
  request = request_for("vllm", "H100:33");
  request.settings.pipeline_parallel = 33;
  const Json deep = row_of(request);
  EXPECT_EQ(deep["fits"], Json(false));
  EXPECT_EQ(deep["tensor_parallel"], Json(1));
  EXPECT_EQ(deep["pipeline_parallel"], Json(33));
}

// Encoders: split with the rest by default, whole on each rank by a flag; a search's memory tells them apart.
TEST(VllmFlags, EncodersAreSplitOrWhole) {
  auto request = request_for("vllm", "H100:2", "nvidia/Qwen3.6-27B-NVFP4");
  request.settings.max_model_len = 32'768;
  const auto weights = [&] { return row_of(request)["weights_bytes_per_gpu"].as_integer().value_or(0); };
  const std::int64_t split = weights();
  request.settings.has_whole_encoders = true;
  const std::int64_t whole = weights();
  request.settings.is_language_only = true;
  const std::int64_t none = weights();
  const double parts = static_cast<double>(whole - split) / static_cast<double>(whole - none);
  EXPECT_GT(parts, 0.45);  // half of it, but for embeddings, norms and what is added after a row is split
  EXPECT_LT(parts, 0.5);
}

// What is not known of an encoder is said: its class where several ranks hold it, its share where it is left
// out of weights that are no formula's.
TEST(VllmFlags, AnUnknownEncoderIsSaid) {
  auto request = request_for("vllm", "H100:2", "nvidia/Qwen3.6-27B-NVFP4");
  request.settings.max_model_len = 32'768;
  EXPECT_FALSE(finding_of(row_of(request), "ENCODER_SHARE"));
  request.models.front().spec.architecture = "NobodyForConditionalGeneration";
  EXPECT_TRUE(finding_of(row_of(request), "ENCODER_SHARE"));
  request.settings.is_language_only = true;
  EXPECT_FALSE(finding_of(row_of(request), "ENCODER_SHARE"));
  request.models.front().spec.has_all_weights = false;
  request.models.front().spec.weights.clear();
  EXPECT_TRUE(finding_of(row_of(request), "ENCODER_SHARE"));
}

TEST(VllmFlags, TablesOnTheGpuByFlag) {
  const std::string path = testing::golden_path("qwen38/config.json");
  const auto config = read_json_file(path);
  ASSERT_TRUE(config);
  auto spec = model::read_spec(*config, path);
  ASSERT_TRUE(spec);
  auto request = request_for("vllm@0.33.0", "B200:8");
  Model& model = request.models.front() = {};
  model.spec = std::move(*spec);
  read_declared(*config, std::nullopt, model);
  request.settings.max_model_len = 32'768;
  const Json in_host = row_of(request);
  ASSERT_TRUE(finding_of(in_host, "TABLE_IN_HOST"));
  request.settings.has_tables_on_gpu = true;
  const Json on_gpu = row_of(request);
  EXPECT_FALSE(finding_of(on_gpu, "TABLE_IN_HOST"));
  EXPECT_EQ(*on_gpu["weights_bytes_per_gpu"].as_integer() - *in_host["weights_bytes_per_gpu"].as_integer(),
            102'400'491'520 / 8);
}

}  // namespace
}  // namespace plimsoll::plan
