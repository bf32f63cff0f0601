// SPDX-License-Identifier: Apache-2.0
// What the hub shows for published models, from their configs alone: the published total with the causes that
// set it apart, or nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "facts/catalogue.h"
#include "inspect/inspect.h"
#include "tests/inspect/model_folder.h"
#include "tests/inspect/published_rows.h"

namespace plimsoll::inspect {
namespace {

std::map<std::string, std::int64_t> causes_of(const Report& report) {
  std::map<std::string, std::int64_t> causes;
  for (const Difference& difference : report.parameters.differences)
    causes[std::string(to_string(difference.cause))] += difference.parameters;
  return causes;
}

std::int64_t explained(const Report& report) {
  std::int64_t sum = report.parameters.total.value_or(0);
  for (const Difference& difference : report.parameters.differences) sum += difference.parameters;
  return sum;
}

TEST(HubTotal, IsThePublishedOneOrNotTold) {
  std::size_t equal = 0, in_part = 0, untold = 0;
  for (const PublishedRow& row : published_rows()) {
    const std::string& use = row.cells.at("truth_use");
    const auto hub = row.number("params_hub");
    if (!hub || (use != "exact" && use != "hub_differs_for_a_cause")) continue;
    SCOPED_TRACE(row.model());
    const auto report = inspect(row.config());
    ASSERT_TRUE(report) << report.error().describe();
    if (!report->parameters.hub_total) {
      EXPECT_TRUE(report->parameters.differences.empty());
      EXPECT_TRUE(finding_of(*report, "HUB_TOTAL_UNEXPLAINED"));
      std::cout << row.model() << ": " << (report->parameters.total ? *hub - *report->parameters.total : *hub)
                << " unexplained\n";
      ++untold;
      continue;
    }
    EXPECT_EQ(report->parameters.hub_total, hub);
    EXPECT_EQ(explained(*report), *hub);
    const auto causes = causes_of(*report);
    EXPECT_EQ(causes.contains("unexplained"), finding_of(*report, "HUB_TOTAL_UNEXPLAINED") != nullptr);
    if (causes.contains("unexplained")) {
      std::cout << row.model() << ": " << causes.at("unexplained") << " unexplained\n";
      ++in_part;
      continue;
    }
    ++equal;
  }
  if (equal + in_part + untold == 0) GTEST_SKIP() << "PLIMSOLL_GOLDEN names no full set";
  EXPECT_GE(equal, 60U);
}

TEST(HubTotal, IdsOfTheCatalogueHaveTheirCauses) {
  struct Case {
    const char* id;
    std::map<std::string, std::int64_t> causes;
  };
  const Case cases[] = {
      {"Qwen/Qwen3-0.6B", {{"tied_head_stored", 151'936LL * 1024}}},
      {"Qwen/Qwen3-4B", {}},
      {"openai-community/gpt2", {{"stored_buffers", 12LL * 1024 * 1024}}},
      {"meta-llama/Llama-2-13b-hf", {{"stored_buffers", 40LL * 64}}},
      {"deepseek-ai/DeepSeek-V3",
       {{"mtp", 13'463'426'048}, {"quantization_scales", 41'540'496}, {"stored_buffers", 15'104}}},
      // The hub left the scales out of this one.
      {"deepseek-ai/DeepSeek-R1", {{"mtp", 13'463'426'048}, {"stored_buffers", 15'104}}},
      {"nvidia/GLM-5.1-NVFP4", {{"packed_4bit", -75LL * 256 * 3 * 6144 * 2048 / 2}}},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.id);
    const auto report = inspect(one.id);
    ASSERT_TRUE(report) << report.error().describe();
    ASSERT_TRUE(report->parameters.hub_total);
    EXPECT_EQ(causes_of(*report), one.causes);
    EXPECT_EQ(explained(*report), *report->parameters.hub_total);
    EXPECT_NE(to_json(*report).at_pointer("/basis")["/parameters/hub_total"]["source"].as_string(), nullptr);
  }
}

// The hub counts the scales of a checkpoint in fp8 whose config is published without its quantization.
TEST(HubTotal, ScalesThatNoConfigDeclares) {
  const auto report = inspect("zai-org/GLM-5.2");
  ASSERT_TRUE(report) << report.error().describe();
  const auto causes = causes_of(*report);
  EXPECT_EQ(causes.at("mtp"), 9'952'920'320);
  EXPECT_EQ(causes.at("quantization_scales"), 45'853'104);
  EXPECT_FALSE(causes.contains("unexplained"));
  EXPECT_EQ(explained(*report), *report->parameters.hub_total);
  EXPECT_EQ(finding_of(*report, "HUB_TOTAL_UNEXPLAINED"), nullptr);
}

// Causes that are known stay, with the rest named beside them.
TEST(HubTotal, WhatIsExplainedInPart) {
  const auto report = inspect("nvidia/Qwen3.6-35B-A3B-NVFP4");
  ASSERT_TRUE(report) << report.error().describe();
  const auto causes = causes_of(*report);
  ASSERT_TRUE(causes.contains("mtp"));
  EXPECT_EQ(causes.at("mtp"), 844'640'768);
  ASSERT_TRUE(causes.contains("unexplained"));
  EXPECT_GT(causes.at("unexplained"), -100'000);
  EXPECT_EQ(explained(*report), *report->parameters.hub_total);
  const auto* finding = finding_of(*report, "HUB_TOTAL_UNEXPLAINED");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("844,640,768"), std::string::npos) << finding->message;
}

// Two repositories of one config: the total of the other says nothing of the one that is named.
TEST(HubTotal, ANamedModelHasItsOwnTotal) {
  const auto* entry = facts::find_catalogue("nvidia/GLM-5-NVFP4");
  ASSERT_NE(entry, nullptr);
  ModelFolder folder("nvidia__GLM-5-NVFP4");
  folder.write("config.json", std::string(entry->config));
  const Report report = folder.inspected();
  if (const auto* finding = finding_of(report, "HUB_TOTAL_UNEXPLAINED")) {
    EXPECT_EQ(finding->message.find("GLM-5.1"), std::string::npos) << finding->message;
  }
  EXPECT_EQ(report.parameters.hub_total, 435'238'854'912);
}

TEST(HubTotal, AnotherConfigTakesNoPublishedTotal) {
  const auto entry = inspect("Qwen/Qwen3-0.6B");
  ASSERT_TRUE(entry);
  ModelFolder folder("Qwen3-0.6B");
  folder.write("config.json",
               R"({"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","hidden_size":1024,
    "num_hidden_layers":27,"num_attention_heads":16,"num_key_value_heads":8,"head_dim":128,
    "intermediate_size":3072,"vocab_size":151936,"max_position_embeddings":40960,"tie_word_embeddings":true,
    "rms_norm_eps":1e-06,"rope_theta":1000000,"torch_dtype":"bfloat16"})");
  const Report report = folder.inspected();
  EXPECT_FALSE(report.parameters.hub_total);
  EXPECT_EQ(finding_of(report, "HUB_TOTAL_UNEXPLAINED"), nullptr);
}

}  // namespace
}  // namespace plimsoll::inspect
