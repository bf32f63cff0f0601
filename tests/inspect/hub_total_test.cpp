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

// The total is told, and is the sum of these.
void expect_causes(const Result<Report>& report, const std::map<std::string, std::int64_t>& causes) {
  ASSERT_TRUE(report) << report.error().describe();
  ASSERT_TRUE(report->parameters.hub_total);
  EXPECT_EQ(causes_of(*report), causes);
  EXPECT_EQ(explained(*report), *report->parameters.hub_total);
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
    ASSERT_NO_FATAL_FAILURE(expect_causes(report, one.causes));
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

// What the catalogue's figure holds beside this config's parameters, each with how it is told.
TEST(HubTotal, CausesWithTheirDetails) {
  struct Case {
    const char* id;
    std::map<std::string, std::int64_t> causes;
    const char* detail;  // of one of them
  };
  const std::int64_t qwen_experts = 94LL * 128 * 3 * 4096 * 1536, qwen_matrices = 94LL * 128 * 3;
  const Case cases[] = {
      {"google/gemma-3-4b-it",
       {{"vocabulary_rows", 64LL * 2560}},
       "262,208 rows where vocab_size is 262,144"},
      {"codellama/CodeLlama-34b-hf",
       {{"vocabulary_rows", -16LL * 2 * 8192}},
       "32,000 rows where vocab_size is 32,016"},
      {"deepseek-ai/DeepSeek-V2-Lite-Chat",
       {{"unstated_config", 27LL * (2048 * 3072 - 2048 * 1536 - 1536 - 1536 * 3072)}},
       "queries by one matrix in place of two of the class's rank"},
      {"meta-llama/Llama-4-Scout-17B-16E-Instruct",
       {{"unstated_config", 416'754'176}},
       "the released vision tower, 1,408 wide, in place of the class's"},
      {"google/gemma-4-E2B-it",
       {{"unstated_config", 307'183'904},
        {"shared_kv_stored", 16LL * (2 * 1536 * 256 + 256) + 4LL * (2 * 1536 * 512 + 512)},
        {"stored_buffers", 35}},
       "the class's audio tower"},
      {"XiaomiMiMo/MiMo-V2-Flash",
       {{"mtp", 3LL * 329'273'408}, {"quantization_scales", 18'717'312}, {"stored_buffers", 47LL * 256}},
       "of keys quantized in parts, one for each KV head"},
      {"nvidia/Qwen3-235B-A22B-NVFP4",
       {{"packed_4bit", -qwen_experts / 2}, {"quantization_scales", qwen_experts / 16 + 2 * qwen_matrices}},
       "of the experts alone"},
      {"nvidia/MiniMax-M3-NVFP4",
       {{"packed_4bit", -57LL * 128 * 3 * 6144 * 3072 / 2}, {"stored_buffers", 57LL * 128}},
       "of the experts alone"},
      {"nvidia/Qwen3.6-35B-A3B-NVFP4",
       {{"mtp", 844'640'768}, {"rounding", -22'704}},
       "published as a multiple of 100,000: within 50,000"},
  };
  for (const Case& one : cases) {
    SCOPED_TRACE(one.id);
    const auto report = inspect(one.id);
    ASSERT_NO_FATAL_FAILURE(expect_causes(report, one.causes));
    EXPECT_EQ(finding_of(*report, "HUB_TOTAL_UNEXPLAINED"), nullptr);
    const auto& differences = report->parameters.differences;
    EXPECT_TRUE(std::any_of(differences.begin(), differences.end(),
                            [&](const Difference& difference) { return difference.detail == one.detail; }));
    EXPECT_NE(dump(to_json(*report)["parameters"]).find(one.detail), std::string::npos);
  }
}

// Two of modelopt's checkpoints whose scales the hub counts, but for those without a shape.
TEST(HubTotal, ScalesWithoutAShapeAreNotShown) {
  for (const char* id : {"nvidia/DeepSeek-V3.2-NVFP4", "nvidia/GLM-5-NVFP4"}) {
    SCOPED_TRACE(id);
    const auto report = inspect(id);
    ASSERT_TRUE(report) << report.error().describe();
    EXPECT_EQ(finding_of(*report, "HUB_TOTAL_UNEXPLAINED"), nullptr);
    const auto causes = causes_of(*report);
    EXPECT_EQ(causes.at("quantization_scales") * 8, -causes.at("packed_4bit"));
    EXPECT_EQ(explained(*report), *report->parameters.hub_total);
  }
}

// The listed figure is one vector above what the published file holds (269,060,552 bytes, of them 30,536 of
// header: 134,515,008 weights). One row of a table would be as much: it is not taken for one.
TEST(HubTotal, WhatStaysUnexplained) {
  const auto report = inspect("HuggingFaceTB/SmolLM2-135M-Instruct");
  ASSERT_TRUE(report) << report.error().describe();
  const std::map<std::string, std::int64_t> rest{{"unexplained", 576}};
  EXPECT_EQ(causes_of(*report), rest);
  EXPECT_EQ(explained(*report), *report->parameters.hub_total);
  const auto* finding = finding_of(*report, "HUB_TOTAL_UNEXPLAINED");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("576 more"), std::string::npos) << finding->message;
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

// Without a published figure: what the hub leaves out of modelopt's files is not in the total either, and a
// part that the config leaves out makes it unknown.
TEST(HubTotal, WhatAConfigDeclares) {
  const std::string model =
      R"({"architectures":["MixtralForCausalLM"],"model_type":"mixtral","hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,"vocab_size":320,
    "num_local_experts":4,"num_experts_per_tok":2,"max_position_embeddings":128,"torch_dtype":"bfloat16")";
  const std::string modelopt =
      R"({"quant_algo":"NVFP4","group_size":16,"exclude_modules":["lm_head","*self_attn*"]})";
  const std::int64_t experts = 2LL * 4 * 3 * 64 * 96;
  ModelFolder inside("declared-inside"), beside("declared-beside");
  inside.write("config.json",
               model + R"(,"quantization_config":{"quant_method":"modelopt",)" + modelopt.substr(1) + "}");
  beside.write("config.json", model + "}");
  beside.write("hf_quant_config.json", R"({"producer":{"name":"modelopt"},"quantization":)" + modelopt + "}");
  const std::map<std::string, std::int64_t> packed{{"packed_4bit", -experts / 2}};
  EXPECT_EQ(causes_of(inside.inspected()), packed);
  auto with_scales = packed;
  with_scales["quantization_scales"] = experts / 16;
  const Report report = beside.inspected();
  EXPECT_EQ(causes_of(report), with_scales);
  EXPECT_EQ(explained(report), report.parameters.hub_total);
  ModelFolder silent("deepseek-silent");
  silent.write("config.json", R"({"architectures":["DeepseekV2ForCausalLM"],"model_type":"deepseek_v2",
    "hidden_size":64,"num_hidden_layers":2,"num_attention_heads":4,"intermediate_size":96,"vocab_size":320,
    "kv_lora_rank":16,"qk_rope_head_dim":8,"qk_nope_head_dim":16,"v_head_dim":16,"n_routed_experts":4,
    "num_experts_per_tok":2,"n_shared_experts":1,"moe_intermediate_size":32,"first_k_dense_replace":1,
    "max_position_embeddings":128,"torch_dtype":"bfloat16"})");
  const Report unknown = silent.inspected();
  EXPECT_FALSE(unknown.parameters.hub_total);
  EXPECT_NE(finding_of(unknown, "HUB_TOTAL_UNKNOWN"), nullptr);
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
