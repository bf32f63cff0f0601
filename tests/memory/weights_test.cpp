// SPDX-License-Identifier: Apache-2.0
#include "memory/weights.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "facts/catalogue.h"
#include "memory/kv_cache.h"
#include "tests/memory/worked_case.h"
#include "tests/testing/golden.h"

namespace plimsoll::memory {
namespace {

using testing::gb_text;
using testing::WorkedCase;

TEST(Weights, TheFormulaPagesWorkedCase) {
  const WorkedCase page("weights.md");
  for (const auto& [size, id] : {std::pair<std::string, const char*>{"8b", "meta-llama/Llama-3.1-8B"},
                                 {"70b", "meta-llama/Llama-3.1-70B"}}) {
    const auto spec = model::read_spec(facts::find_catalogue(id)->config_json(), id);
    ASSERT_TRUE(spec) << spec.error().describe();
    const std::int64_t parameters = model::count_parameters(*spec).value_or(-1);
    EXPECT_EQ(parameters, page.integer(size + "_parameters"));
    const auto text = [&](WeightFormat format) {
      return gb_text(static_cast<double>(weights_bytes(parameters, format)->value), 1);
    };
    EXPECT_EQ(weights_bytes(parameters, WeightFormat::kBFloat16)->value, page.integer(size + "_bf16_bytes"));
    EXPECT_EQ(text(WeightFormat::kBFloat16), page.text(size + "_bf16_gb"));
    EXPECT_EQ(text(WeightFormat::kFp8), page.text(size + "_fp8_gb"));
    EXPECT_EQ(text(WeightFormat::kInt4), page.text(size + "_int4_gb"));
  }
}

TEST(Weights, OddHalvesAreRoundedUpAndNonsenseIsRefused) {
  EXPECT_EQ(weights_bytes(3, WeightFormat::kInt4)->value, 2);
  EXPECT_EQ(weights_bytes(0, WeightFormat::kInt4)->value, 0);
  EXPECT_FALSE(weights_bytes(-1, WeightFormat::kInt8));
  EXPECT_FALSE(weights_bytes(INT64_MAX, WeightFormat::kInt8));
}

TEST(Weights, FormatsReadBackAsTheyPrint) {
  using enum WeightFormat;
  for (const WeightFormat format : {kFloat32, kBFloat16, kFloat16, kFp8, kInt8, kInt4})
    EXPECT_EQ(parse_weight_format(to_string(format)), format);
  EXPECT_EQ(parse_weight_format("bfloat16"), kBFloat16);
  EXPECT_FALSE(parse_weight_format("int3"));
  EXPECT_FALSE(parse_weight_format(""));
}

// What a reference implementation's cache held, counted by element, for every model at hand that is all
// attention.
TEST(GoldenModels, KvBytesAndParametersAreThoseMeasured) {
  const auto names = testing::present(
      "models", {"gpt_oss", "llama4_text", "llama_bias", "llama_f16", "llama_f32", "llama_headdim32",
                 "llama_k256", "llama_mqa", "llama_plain", "llama_rope_linear", "llama_rope_llama3",
                 "llama_rope_yarn", "llama_sharded", "llama_tied", "llama_v5config", "qwen2", "qwen3"});
  ASSERT_FALSE(names.empty());
  int compared = 0;
  for (const std::string& name : names) {
    const std::string folder = testing::golden_path("models/" + name);
    const auto config = read_json_file(folder + "/config.json");
    const auto expected = read_json_file(folder + "/expected.json");
    ASSERT_TRUE(config && expected) << name;
    const auto spec = model::read_spec(*config, name);
    ASSERT_TRUE(spec) << name << ": " << spec.error().describe();
    const auto bytes = kv_bytes_per_token(*spec, DType::kBF16);
    ASSERT_TRUE(bytes) << name;
    EXPECT_EQ(Json(bytes->value), (*expected)["kv"]["bytes_per_token_bf16"]) << name;
    EXPECT_EQ(Json(model::count_parameters(*spec).value_or(-1)), (*expected)["params_total"]) << name;
    ++compared;
  }
  EXPECT_GE(compared, 13);
}

TEST(GoldenModels, StoredBytesAreThoseOfTheTensorsInUse) {
  const auto artifact = artifact::open(testing::golden_path("models/llama_plain"));
  ASSERT_TRUE(artifact) << artifact.error().describe();
  const auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec);
  EXPECT_EQ(stored_weights_bytes(**artifact, *spec), Bytes(427'136));  // expected.json: stored_by_dtype
  const auto bare = artifact::open(testing::golden_path("models/llama_plain/config.json"));
  ASSERT_TRUE(bare);
  EXPECT_FALSE(stored_weights_bytes(**bare, *spec));
}

}  // namespace
}  // namespace plimsoll::memory
