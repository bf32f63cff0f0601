// SPDX-License-Identifier: Apache-2.0
// What another release makes of the same question, and which release moved what.
#include "memory/memory.h"
#include "tests/plan/requests.h"

namespace plimsoll::plan {
namespace {

Request upgrade(const char* from, const char* to, const std::string& gpu, std::string_view id) {
  Request request = request_for(from, gpu, id);
  request.against = *facts::parse_engine(to);
  return request;
}

const Json& change_of(const Json& document, std::string_view field) {
  static const Json none;
  for (const Json& change : document["against"]["changes"].items())
    if (*change["field"].as_string() == field) return change;
  return none;
}

TEST(Against, NamesBothValuesTheDifferenceAndTheRelease) {
  Request request = upgrade("vllm@0.19.1", "vllm@0.33.0", "24GB", "Qwen/Qwen3-8B");
  request.settings.max_model_len = 8192;
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan) << plan.error().describe();
  const Json document = to_json(*plan);
  EXPECT_EQ(document["against"]["engine"]["version"], Json("0.33.0"));
  const Json& share = change_of(document, "gpu_memory_utilization");
  EXPECT_EQ(share["before"], Json(0.90));
  EXPECT_EQ(share["after"], Json(0.92));
  EXPECT_NEAR(*share["difference"].as_double(), 0.02, 1e-9);
  ASSERT_EQ(share["releases"].size(), 1U);
  EXPECT_EQ(share["releases"].items()[0], Json("0.20.0"));
  const Json& budget = change_of(document, "budget_bytes_per_gpu");
  EXPECT_EQ(*budget["difference"].as_integer(),
            *budget["after"].as_integer() - *budget["before"].as_integer());
  EXPECT_TRUE(change_of(document, "weights_bytes_per_gpu").is_null());  // the same in both
  EXPECT_EQ(document["against"]["rows"].size(), 1U);
  EXPECT_EQ(document["rows"].items()[0]["gpu_memory_utilization"], Json(0.90));
  EXPECT_EQ(document["against"]["basis"]["/rows/0/kv_tokens"]["kind"], Json("calibrated"));
}

// A change that two releases make is told with both.
TEST(Against, BatchesOfLargeGpus) {
  const auto plan = make_plan(upgrade("vllm@0.8.3", "vllm@0.33.0", "H200", "Qwen/Qwen3-8B"));
  ASSERT_TRUE(plan);
  const Json document = to_json(*plan);
  EXPECT_TRUE(change_of(document, "max_num_batched_tokens").is_null());  // 8,192 by name, then by size
  const auto b200 = make_plan(upgrade("vllm@0.8.3", "vllm@0.33.0", "B200", "Qwen/Qwen3-8B"));
  const Json told = to_json(*b200);
  const Json& batches = change_of(told, "max_num_batched_tokens");
  ASSERT_EQ(batches["releases"].size(), 2U);
  EXPECT_EQ(batches["before"], Json(2048));
  EXPECT_EQ(batches["after"], Json(16'384));
  EXPECT_EQ(batches["releases"].items()[0], Json("0.8.4"));
  EXPECT_EQ(batches["releases"].items()[1], Json("0.30.0"));
}

TEST(Against, GroupsOfWindowsAreLaidOutAnew) {
  const auto plan = make_plan(upgrade("vllm@0.11.0", "vllm@0.33.0", "H100:2", "google/gemma-3-27b-it"));
  ASSERT_TRUE(plan);
  const Json document = to_json(*plan);
  EXPECT_TRUE(change_of(document, "kv_tokens")["before"].as_integer());
  const Json& rules = document["against"]["rules"];
  ASSERT_GT(rules.size(), 8U);
  EXPECT_EQ(rules.items()[0]["release"], Json("0.11.1"));
  const std::string text = to_text(*plan);
  EXPECT_NE(text.find("starts as before"), std::string::npos) << text;
  EXPECT_NE(text.find("0.29.0  one block is kept back"), std::string::npos) << text;
}

// 0.92 of the memory and no estimate for graphs before; the way back is told by the same releases.
TEST(Against, SaysWhetherItStillStarts) {
  auto request = upgrade("vllm@0.19.1", "vllm@0.33.0", "H100", "Qwen/Qwen3-8B");
  const auto settled = make_plan(request);
  ASSERT_TRUE(settled);
  request.settings.kv_cache_bytes = settled->rows[0].required_kv_cache;  // 0.29 keeps one block back
  const auto plan = make_plan(request);
  ASSERT_TRUE(plan);
  EXPECT_TRUE(plan->rows[0].fits);
  EXPECT_FALSE(plan->against->rows[0].fits);
  EXPECT_FALSE(plan->fits());
  const Json document = to_json(*plan);
  EXPECT_EQ(change_of(document, "fits")["releases"].items()[0], Json("0.29.0"));
  EXPECT_NE(to_text(*plan).find("will not start: To serve at least one request"), std::string::npos);
  std::swap(request.engine, *request.against);
  const Json back = to_json(*make_plan(request));
  EXPECT_EQ(change_of(back, "fits")["releases"].items()[0], Json("0.29.0"));
}

TEST(Against, WantsTwoReleasesOfVllm) {
  for (const auto& [one, two] : {std::pair("plimsoll", "vllm"), {"vllm", "any"}}) {
    const auto plan = make_plan(upgrade(one, two, "24GB", "Qwen/Qwen3-8B"));
    ASSERT_FALSE(plan);
    EXPECT_EQ(plan.error().code, ErrorCode::kUsage);
  }
}

TEST(Against, EveryChangeOfTheRulesIsTold) {
  const auto changes = memory::vllm_changes();
  for (std::size_t i = 1; i < changes.size(); ++i) {
    EXPECT_FALSE(changes[i].what.empty());
    EXPECT_LT(std::tie(changes[i - 1].major, changes[i - 1].minor, changes[i - 1].patch),
              std::tie(changes[i].major, changes[i].minor, changes[i].patch));
  }
}

}  // namespace
}  // namespace plimsoll::plan
