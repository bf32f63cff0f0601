// SPDX-License-Identifier: Apache-2.0
#include "facts/support.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

namespace plimsoll::facts {
namespace {

std::string_view status(ServingEngine engine, std::string_view architecture, std::string_view type = "") {
  return to_string(support_of(engine, architecture, type).status);
}

TEST(Support, RegistriesHaveEachArchitectureOnce) {
  std::set<std::pair<ServingEngine, std::string_view>> seen;
  for (const Listing& row : all_listings()) {
    EXPECT_TRUE(seen.emplace(row.engine, row.architecture).second) << row.architecture;
    EXPECT_FALSE(row.architecture.empty());
  }
  EXPECT_GT(seen.size(), 700U);
}

TEST(Support, TypesOfConfigsAreSorted) {
  const auto types = config_types();
  EXPECT_TRUE(std::is_sorted(types.begin(), types.end()));
  EXPECT_EQ(std::adjacent_find(types.begin(), types.end()), types.end());
  for (const char* known : {"llama", "deepseek_v3", "kimi_k2", "minimax_m2"})
    EXPECT_TRUE(std::binary_search(types.begin(), types.end(), std::string_view(known))) << known;
  for (const char* unknown : {"phi-msft", "nemotron-nas", "qwen", ""})
    EXPECT_FALSE(std::binary_search(types.begin(), types.end(), std::string_view(unknown))) << unknown;
}

TEST(Support, KnownRows) {
  const auto llama = support_of(ServingEngine::kVllm, "LlamaForCausalLM", "llama");
  EXPECT_EQ(llama.status, SupportStatus::kSupported);
  EXPECT_EQ(llama.lora, true);
  EXPECT_EQ(llama.mtp, false);
  EXPECT_EQ(llama.multimodal, false);
  EXPECT_EQ(support_of(ServingEngine::kVllm, "DeepseekV3ForCausalLM", "deepseek_v3").mtp, true);
  EXPECT_EQ(support_of(ServingEngine::kVllm, "Qwen2_5_VLForConditionalGeneration", "qwen2_5_vl").multimodal,
            true);
  const auto qwen = support_of(ServingEngine::kVllm, "Qwen4ExpForConditionalGeneration", "qwen4_exp");
  EXPECT_EQ(qwen.since, "0.30.0");
  EXPECT_EQ(qwen.mtp, true);
  EXPECT_EQ(status(ServingEngine::kLlamaCpp, "Qwen4ExpForConditionalGeneration"), "partial");
  EXPECT_EQ(status(ServingEngine::kSglang, "Qwen4ExpForConditionalGeneration"), "supported");
  EXPECT_EQ(status(ServingEngine::kTgi, "LlamaForCausalLM"), "supported");
}

TEST(Support, WhatAnEngineGaveUpSaysWhen) {
  const auto mllama = support_of(ServingEngine::kVllm, "MllamaForConditionalGeneration", "mllama");
  EXPECT_EQ(mllama.status, SupportStatus::kUnsupported);
  EXPECT_EQ(mllama.until, "0.10.2");
  // Ray Serve runs a pinned vLLM: what left before it is gone, what left after it is still there.
  EXPECT_EQ(status(ServingEngine::kRayServe, "MllamaForConditionalGeneration"), "unsupported");
  EXPECT_EQ(status(ServingEngine::kRayServe, "LlamaForCausalLM"), "supported");
}

TEST(Support, NoRowIsUnknown) {
  for (const ServingEngine engine : serving_engines()) {
    const auto support = support_of(engine, "NoSuchForCausalLM", "");
    EXPECT_EQ(support.status, SupportStatus::kUnknown) << to_string(engine);
    EXPECT_EQ(support.multimodal, std::nullopt);
    EXPECT_TRUE(support.since.empty());
    const bool is_examined = engine != ServingEngine::kOllama;
    EXPECT_TRUE(!is_examined || support.source.starts_with("https://")) << support.source;
    EXPECT_TRUE(std::regex_search(std::string(support.source), std::regex(R"(\b20\d\d-[01]\d-[0-3]\d$)")))
        << support.source;  // the day it was read
  }
  EXPECT_EQ(status(ServingEngine::kOllama, "LlamaForCausalLM"), "unknown");
}

TEST(Support, QuantizedWeights) {
  EXPECT_EQ(reads_quantization(ServingEngine::kVllm, "awq"), true);
  EXPECT_EQ(reads_quantization(ServingEngine::kVllm, "bitsandbytes"), false);
  EXPECT_EQ(reads_quantization(ServingEngine::kSglang, "bitsandbytes"), true);
  EXPECT_EQ(reads_quantization(ServingEngine::kLlamaCpp, "gguf"), true);
  EXPECT_EQ(reads_quantization(ServingEngine::kLlamaCpp, "awq"), false);
  EXPECT_EQ(reads_quantization(ServingEngine::kNim, "awq"), std::nullopt);
}

TEST(Support, LlamaCppKnowsItsOwnNames) {
  for (const char* name : {"gemma3", "phi3", "gpt-oss", "qwen3moe", "deepseek2", "llama", "bert"})
    EXPECT_EQ(to_string(support_of_gguf(ServingEngine::kLlamaCpp, name).status), "supported") << name;
  for (const char* name : {"clip", "nobodys", ""})
    EXPECT_EQ(to_string(support_of_gguf(ServingEngine::kLlamaCpp, name).status), "unknown") << name;
  EXPECT_EQ(to_string(support_of_gguf(ServingEngine::kVllm, "gemma3").status), "unknown");
  const auto names = gguf_architectures();
  EXPECT_TRUE(std::is_sorted(names.begin(), names.end()));
}

TEST(Support, ClassesThatLlamaCppReadsByTheirProjector) {
  for (const char* name : {"Lfm2VlForConditionalGeneration", "Idefics3ForConditionalGeneration",
                           "SmolVLMForConditionalGeneration", "Granite4VisionForConditionalGeneration"}) {
    const auto support = support_of(ServingEngine::kLlamaCpp, name, "");
    EXPECT_EQ(to_string(support.status), "supported") << name;
    EXPECT_EQ(support.multimodal, true) << name;
  }
}

// llama.cpp's converter reads these; what it does not, no folder of its kind can become a GGUF file.
TEST(Support, WeightsThatLlamaCppConverts) {
  for (const char* method : {"gguf", "mxfp4", "fp8", "gptq", "compressed-tensors", "modelopt", "bitnet"})
    EXPECT_EQ(reads_quantization(ServingEngine::kLlamaCpp, method), true) << method;
  for (const char* method : {"awq", "bitsandbytes", "nobodys"})
    EXPECT_EQ(reads_quantization(ServingEngine::kLlamaCpp, method), false) << method;
}

}  // namespace
}  // namespace plimsoll::facts
