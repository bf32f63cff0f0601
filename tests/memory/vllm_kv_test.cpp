// SPDX-License-Identifier: Apache-2.0
// vLLM's own planning, row by row: groups, pages, blocks, tokens, requests, refusals.
#include "memory/vllm_kv.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>

#include "base/json.h"
#include "tests/memory/worked_case.h"
#include "tests/testing/golden.h"

namespace plimsoll::memory {
namespace {

std::vector<Json> rows_of(const std::string& path) {
  std::vector<Json> rows;
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);) {
    auto row = parse_json(line, path);
    EXPECT_TRUE(row) << row.error().describe();
    if (row) rows.push_back(std::move(*row));
  }
  return rows;
}

std::int64_t integer(const Json& row, const char* key) {
  return row[key].as_integer().value_or(-1);
}

std::string text(const Json& row, const char* key) {
  const auto* value = row[key].as_string();
  return value ? *value : std::string();
}

const model::ModelSpec& spec_of(const std::string& name) {
  static std::map<std::string, model::ModelSpec> specs;
  if (const auto known = specs.find(name); known != specs.end()) return known->second;
  const std::string path = testing::golden_path("vllm_kv/configs/" + name + "_config.json");
  const auto config = read_json_file(path);
  EXPECT_TRUE(config) << path;
  auto spec = model::read_spec(*config, path);
  EXPECT_TRUE(spec) << spec.error().describe();
  return specs.emplace(name, spec ? std::move(*spec) : model::ModelSpec()).first->second;
}

Result<VllmKvPlan> plan_of(const Json& row) {
  const model::ModelSpec& spec = spec_of(text(row, "model"));
  VllmLayerSettings layer_settings;
  const std::string dtype = text(row, "kv_cache_dtype");
  layer_settings.cache = dtype == "fp8_ds_mla" ? VllmCacheType::kFp8DsMla
                         : dtype == "fp8"      ? VllmCacheType::k8Bit
                                               : VllmCacheType::k16Bit;
  layer_settings.tensor_parallel = static_cast<int>(integer(row, "tp"));
  layer_settings.gdn_exports_checkpoint = integer(row, "prefill_checkpoint_blocks") == 1;
  VllmKvSettings settings;
  settings.block_size = integer(row, "block_size_in");
  settings.max_model_len = integer(row, "max_model_len");
  settings.max_num_batched_tokens = integer(row, "max_num_batched_tokens");
  settings.batches_in_flight = static_cast<int>(integer(row, "max_concurrent_batches"));
  settings.state_mode =
      text(row, "mamba_cache_mode") == "none" ? VllmStateMode::kNone : VllmStateMode::kAlign;
  settings.is_hybrid_manager_on = !row["hybrid_manager_disabled"].as_bool().value_or(false);
  settings.pipeline_parallel = static_cast<int>(integer(row, "pp"));
  PLIMSOLL_TRY(const auto layers, vllm_layers(spec, layer_settings));
  return plan_vllm_kv(layers, static_cast<std::int64_t>(spec.layers.size()), settings,
                      vllm_rules(text(row, "vllm")), Bytes(integer(row, "available_bytes")));
}

void expect_groups(const Json& row, const VllmKvPlan& plan) {
  ASSERT_EQ(plan.groups.size(), row["groups"].size());
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const Json& group = row["groups"].items()[i];
    EXPECT_EQ(engine_name(plan.groups[i].kind), text(group, "kind"));
    EXPECT_EQ(plan.groups[i].num_layers, integer(group, "layers"));
    EXPECT_EQ(plan.groups[i].block_size, integer(group, "block_size"));
    EXPECT_EQ(plan.groups[i].blocks_per_request, integer(group, "blocks_per_request"));
  }
  ASSERT_EQ(plan.bytes_per_block.size(), row["bytes_per_block"].size());
  for (std::size_t i = 0; i < plan.bytes_per_block.size(); ++i)
    EXPECT_EQ(plan.bytes_per_block[i].value, row["bytes_per_block"].items()[i].as_integer());
}

TEST(VllmKv, EveryRowOfTheEnginesOwnPlanning) {
  const auto rows = rows_of(testing::golden_path("vllm_kv/golden_kv.jsonl"));
  ASSERT_FALSE(rows.empty());
  std::size_t refused = 0;
  for (const Json& row : rows) {
    SCOPED_TRACE(dump(row).substr(0, 300));
    const auto plan = plan_of(row);
    ASSERT_TRUE(plan) << plan.error().describe();
    const std::string error = text(row, "error");
    EXPECT_EQ(plan->fits, error.empty());
    EXPECT_EQ(plan->message, error.empty() ? text(row, "log_line") : error);
    if (!error.empty()) {
      ++refused;
      EXPECT_EQ(plan->longest_len, integer(row, "auto_max_model_len"));
      continue;
    }
    expect_groups(row, *plan);
    EXPECT_EQ(plan->num_blocks, integer(row, "num_blocks"));
    EXPECT_EQ(plan->block_size, integer(row, "block_size"));
    EXPECT_EQ(plan->kv_tokens, integer(row, "kv_cache_size_tokens"));
    EXPECT_NEAR(plan->max_concurrency, row["max_concurrency"].as_double().value_or(-1), 1e-9);
    if (HasFailure()) break;
  }
  std::cout << rows.size() << " rows, of which " << refused << " do not fit\n";
}

// A hybrid with compressed index keys, rings, and a state that ranks do not split, packed into one block.
Result<VllmKvPlan> plan_of_packed(const Json& row, const model::ModelSpec& spec) {
  VllmLayerSettings layer_settings;
  if (text(row, "kv_cache_dtype") == "fp8") layer_settings.cache = VllmCacheType::k8Bit;
  layer_settings.tensor_parallel = static_cast<int>(integer(row, "tp"));
  layer_settings.num_speculative_tokens = static_cast<int>(integer(row, "num_speculative_tokens"));
  layer_settings.recurrent_dtype = dtype_from_config(text(row, "mamba_ssm_cache_dtype"));
  layer_settings.has_fp8_index_keys = text(row, "indexer_kv_dtype") == "fp8";
  layer_settings.gdn_exports_checkpoint = row["flashinfer_gdn_checkpoint"].as_bool().value_or(false);
  VllmKvSettings settings;
  settings.max_model_len = integer(row, "max_model_len");
  settings.num_speculative_tokens = layer_settings.num_speculative_tokens;
  settings.state_mode =
      text(row, "mamba_cache_mode") == "none" ? VllmStateMode::kNone : VllmStateMode::kAlign;
  if (layer_settings.gdn_exports_checkpoint) settings.kernel_tokens = 64;
  PLIMSOLL_TRY(const auto layers, vllm_layers(spec, layer_settings));
  return plan_vllm_kv(layers, static_cast<std::int64_t>(spec.layers.size()), settings, vllm_rules("0.33.0"),
                      Bytes(integer(row, "available_bytes")));
}

void expect_packed(const Json& row, const VllmKvPlan& plan) {
  std::int64_t blocks = 0;
  ASSERT_EQ(plan.groups.size(), row["groups"].size());
  for (std::size_t i = 0; i < plan.groups.size(); ++i) {
    const Json& group = row["groups"].items()[i];
    EXPECT_EQ(engine_name(plan.groups[i].kind), text(group, "kind"));
    EXPECT_EQ(plan.groups[i].num_layers, integer(group, "layers"));
    EXPECT_EQ(plan.groups[i].blocks_per_request, integer(group, "blocks_per_request"));
    blocks += plan.groups[i].blocks_per_request;
  }
  EXPECT_EQ(blocks, integer(row, "blocks_per_request"));
  EXPECT_EQ(plan.num_blocks, integer(row, "num_blocks"));
  EXPECT_EQ(plan.kv_tokens, integer(row, "kv_cache_size_tokens"));
  EXPECT_NEAR(plan.max_concurrency, row["max_concurrency"].as_double().value_or(-1), 1e-9);
}

TEST(VllmKv, EveryRowOfAPackedHybrid) {
  const std::string path = testing::golden_path("qwen38/config.json");
  const auto config = read_json_file(path);
  ASSERT_TRUE(config) << path;
  const auto spec = model::read_spec(*config, path);
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto rows = rows_of(testing::golden_path("qwen38/golden_kv.jsonl"));
  ASSERT_FALSE(rows.empty());
  for (const Json& row : rows) {
    SCOPED_TRACE(dump(row).substr(0, 400));
    const auto plan = plan_of_packed(row, *spec);
    ASSERT_TRUE(plan) << plan.error().describe();
    const std::string error = text(row, "error");
    EXPECT_EQ(plan->fits, error.empty());
    EXPECT_EQ(plan->message, error.empty() ? text(row, "log_line") : error);
    EXPECT_EQ(plan->block_size, integer(row, "attention_block_size"));
    EXPECT_EQ(plan->bytes_per_block.front().value, integer(row, "bytes_per_block"));
    if (error.empty())
      expect_packed(row, *plan);
    else
      EXPECT_EQ(plan->longest_len, integer(row, "estimated_max_len"));
    if (HasFailure()) break;
  }
  std::cout << rows.size() << " rows\n";
}

TEST(VllmKv, TheWorkedCase) {
  const testing::WorkedCase page("vllm_kv_cache.md");
  const VllmKvSettings settings{.max_model_len = 8192};
  const auto plan_for = [&](const model::ModelSpec& spec) {
    const auto layers = vllm_layers(spec, {});
    EXPECT_TRUE(layers);
    return plan_vllm_kv(*layers, static_cast<std::int64_t>(spec.layers.size()), settings, vllm_rules(""),
                        Bytes(16 * kGiB));
  };
  const auto plain = plan_for(testing::llama(testing::kLlama8B));
  ASSERT_TRUE(plain);
  EXPECT_EQ(plain->groups.front().page.value, page.integer("8b_page"));
  EXPECT_EQ(plain->bytes_per_block.front().value, page.integer("8b_bytes_per_block"));
  EXPECT_EQ(plain->num_blocks, page.integer("8b_blocks"));
  EXPECT_EQ(plain->kv_tokens, page.integer("8b_tokens"));
  EXPECT_EQ(plain->groups.front().blocks_per_request, page.integer("8b_blocks_of_a_request"));

  const model::ModelSpec& spec = spec_of("hand--Qwen3-Next-80B-A3B");
  EXPECT_EQ(vllm_layers(spec, {})->front().state_bytes.value, page.integer("next_state"));
  const auto hybrid = plan_for(spec);
  ASSERT_TRUE(hybrid);
  EXPECT_EQ(hybrid->block_size, page.integer("next_block"));
  EXPECT_EQ(hybrid->groups.front().page.value, page.integer("next_page"));
  EXPECT_EQ(static_cast<std::int64_t>(hybrid->groups.size()), page.integer("next_groups"));
  EXPECT_EQ(hybrid->bytes_per_block.front().value, page.integer("next_bytes_per_block"));
  EXPECT_EQ(hybrid->num_blocks, page.integer("next_blocks"));
  EXPECT_EQ(hybrid->kv_tokens, page.integer("next_tokens"));
}

TEST(VllmKv, StagesTakeTheRestBackwards) {
  EXPECT_EQ(pipeline_stages(5, 1), std::vector<int>(5, 0));
  EXPECT_EQ(pipeline_stages(7, 2), (std::vector<int>{0, 0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(pipeline_stages(6, 4), (std::vector<int>{0, 1, 1, 2, 2, 3}));
  EXPECT_EQ(pipeline_stages(2, 4), (std::vector<int>{1, 2}));
}

TEST(VllmKv, RefusesSettingsThatMakeNoSense) {
  const auto layers = vllm_layers(testing::llama(testing::kLlama8B), {});
  ASSERT_TRUE(layers);
  for (const VllmKvSettings& settings :
       {VllmKvSettings{}, VllmKvSettings{.block_size = 0, .max_model_len = 1},
        VllmKvSettings{.max_model_len = 1, .batches_in_flight = 0},
        VllmKvSettings{.max_model_len = 1, .pipeline_parallel = 0}}) {
    const auto plan = plan_vllm_kv(*layers, 32, settings, vllm_rules(""), Bytes(1));
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kUsage);
  }
}

TEST(VllmKv, NothingIsLeftForTheCache) {
  const auto layers = vllm_layers(testing::llama(testing::kLlama8B), {});
  const auto plan = plan_vllm_kv(*layers, 32, {.max_model_len = 8}, vllm_rules(""), Bytes(-5));
  ASSERT_TRUE(plan);
  EXPECT_FALSE(plan->fits);
  EXPECT_EQ(plan->longest_len, 0);
  EXPECT_EQ(plan->message.find("No available memory"), 0U);
}

TEST(VllmRules, TheNewestReleaseThatIsNoNewer) {
  EXPECT_EQ(vllm_rules("0.28.5").minor, 28);
  EXPECT_EQ(vllm_rules("0.32.9").minor, 32);
  EXPECT_EQ(vllm_rules("").minor, 33);
  EXPECT_EQ(vllm_rules("1.0").minor, 33);
  EXPECT_EQ(vllm_rules("0.27.1").patch, 0);
  EXPECT_EQ(vllm_rules("0.11.2").grouping, VllmGrouping::kLeast);
  EXPECT_EQ(vllm_rules("0.9.0").grouping, VllmGrouping::kNone);
  EXPECT_EQ(vllm_rules("0.1.2").minor, 6);
}

}  // namespace
}  // namespace plimsoll::memory
