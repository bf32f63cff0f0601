// SPDX-License-Identifier: Apache-2.0
#include "inspect/support_checks.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

Json row_of(const Report& report, std::string_view engine) {
  for (const Json& row : report.support.items())
    if (row["engine"] == Json(engine)) return row;
  return {};
}

Report inspected(const std::string& config) {
  ModelFolder folder;
  folder.write("config.json", config);
  return folder.inspected();
}

TEST(SupportChecks, EveryEngineHasARow) {
  const Report report = inspected(std::string(kSmallLlama));
  for (const char* engine :
       {"vllm", "sglang", "llama.cpp", "tgi", "nim", "ray-serve", "ollama", "plimsoll"}) {
    const Json row = row_of(report, engine);
    EXPECT_FALSE(row.is_null()) << engine;
    EXPECT_FALSE(row["source"].is_null()) << engine;
  }
  EXPECT_EQ(row_of(report, "vllm")["status"], Json("supported"));
  EXPECT_EQ(row_of(report, "nim")["status"], Json("unknown"));
}

TEST(SupportChecks, OurOwnRowIsTheEnginesAnswer) {
  EXPECT_EQ(row_of(inspected(std::string(kSmallLlama)), "plimsoll")["status"], Json("supported"));
  std::string text(kSmallLlama);
  text.pop_back();
  const auto awq = [&](const char* bits) {
    return inspected(text + R"(,"quantization_config":{"quant_method":"awq","bits":)" + bits + "}}");
  };
  EXPECT_EQ(row_of(awq("4"), "plimsoll")["status"], Json("supported"));
  const Report quantized = awq("8");  // a width that it does not read
  EXPECT_EQ(row_of(quantized, "plimsoll")["status"], Json("unsupported"));
  EXPECT_NE(row_of(quantized, "plimsoll")["note"].as_string()->find("awq"), std::string::npos);
  EXPECT_EQ(row_of(quantized, "vllm")["features"]["quantization"]["supported"], Json(true));
  const Report unknown = inspected(R"({"architectures":["NobodyForCausalLM"]})");
  EXPECT_EQ(row_of(unknown, "plimsoll")["status"], Json("unsupported"));
  EXPECT_EQ(row_of(unknown, "vllm")["status"], Json("unknown"));
}

TEST(SupportChecks, QuantizedWeightsThatAnEngineDoesNotRead) {
  std::string text(kSmallLlama);
  text.pop_back();
  const Report report =
      inspected(text + R"(,"quantization_config":{"quant_method":"bitsandbytes","load_in_4bit":true}})");
  EXPECT_EQ(row_of(report, "vllm")["status"], Json("unsupported"));
  EXPECT_EQ(row_of(report, "sglang")["status"], Json("supported"));
}

TEST(SupportChecks, WhatAnEngineGaveUp) {
  const Report report =
      inspected(R"({"architectures":["MllamaForConditionalGeneration"],"model_type":"mllama"})");
  const auto* finding = finding_of(report, "SUPPORT_REMOVED");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("0.10.2"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::inspect
