// SPDX-License-Identifier: Apache-2.0
// Holds the engine in float32 mode, on each quantized layout of Hugging Face folders, to weights that were
// dequantized by the reference: the numbers themselves, logits and greedy tokens.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "artifact/artifact.h"
#include "base/json.h"
#include "engine/quantized_weights.h"
#include "engine/weights.h"
#include "memory/memory.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"
#include "tests/testing/tensor_file.h"

namespace plimsoll::engine {
namespace {

// As for unquantized models: float32 against another order of summation.
constexpr float kTolerance = 2e-3F;

struct Golden {
  std::string folder;
  Json expected;
  std::map<std::string, testing::FloatTensor> tensors;
};

Golden golden(const std::string& layout) {
  Golden result{testing::golden_path("quantized/" + layout), {}, {}};
  auto expected = read_json_file(result.folder + "/expected.json");
  EXPECT_TRUE(expected);
  if (expected) result.expected = std::move(*expected);
  result.tensors = testing::read_float_tensors(result.folder + "/expected.safetensors");
  return result;
}

// Factors are applied in another order than the reference's here and there: one rounding each.
void expect_close(std::span<const float> found, std::span<const float> expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    ASSERT_NEAR(found[i], expected[i], 1.5e-7F * std::fabs(expected[i])) << "weight " << i;
}

class GoldenLayout : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenLayout, RowsAreTheNumbersOfTheReference) {
  const Golden set = golden(GetParam());
  const auto artifact = artifact::open(set.folder);
  ASSERT_TRUE(artifact);
  const auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto weights = load_weights(**artifact, *spec);
  ASSERT_TRUE(weights) << weights.error().describe();
  ASSERT_EQ(set.expected["dequantized_probe"], Json("model.layers.0.mlp.down_proj.weight"));
  const StoredMatrix& down = weights->layers[0].ffn.down;
  std::vector<float> rows(static_cast<std::size_t>(down.rows * down.columns));
  widen_rows(down, 0, down.rows, rows.data());
  expect_close(rows, set.tensors.at("dequantized.model.layers.0.mlp.down_proj.weight").values);
  EXPECT_EQ(weights->stored, memory::stored_weights_bytes(**artifact, *spec));
  EXPECT_EQ(weights->stored.value, set.expected["stored_bytes"].as_integer());
}

class GoldenLayoutModel : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenLayoutModel, LogitsAndGreedyTokensMatchTheDequantizedReference) {
  const Golden set = golden(GetParam());
  const auto engine = load_model(set.folder, small_options(ComputeMode::kFloat32));
  ASSERT_TRUE(engine);
  for (const auto& [prompt, row] : set.expected["prompts"].members()) {
    SCOPED_TRACE(prompt);
    std::vector<TokenId> ids, expected;
    for (const Json& id : row["ids"].items()) ids.push_back(static_cast<TokenId>(*id.as_integer()));
    for (const Json& id : row["greedy24"].items()) expected.push_back(static_cast<TokenId>(*id.as_integer()));
    const Trace run = run_alone(*engine, ids, greedy(static_cast<std::int64_t>(expected.size())));
    EXPECT_EQ(run.tokens, expected) << "margin " << *row["min_margin"].as_double();
    const auto& last = set.tensors.at(prompt + ".last").values;
    ASSERT_EQ(run.step_logits.at(0).size(), last.size());
    for (std::size_t i = 0; i < last.size(); ++i)
      ASSERT_NEAR(run.step_logits[0][i], last[i], kTolerance) << i;
  }
}

std::vector<std::string> computed_layouts() {
  return testing::present(
      "quantized", {"awq_int4_gemm", "bnb_int8", "bnb_nf4", "bnb_nf4_double", "ct_fp8_dynamic",
                    "ct_fp8_static_tensor", "ct_nvfp4", "ct_w4a16_pack", "ct_w8a8_int8", "fp8_block128",
                    "gptq_int4_asym_desc_act", "gptq_int4_sym", "gptq_v2_int4_asym"});
}

INSTANTIATE_TEST_SUITE_P(Layouts, GoldenLayout, ::testing::ValuesIn(computed_layouts()),
                         [](const auto& test) { return test.param; });

std::vector<std::string> computed_models() {
  auto names = computed_layouts();
  for (const auto& name : testing::present("quantized", {"gpt_oss_mxfp4"})) names.push_back(name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Layouts, GoldenLayoutModel, ::testing::ValuesIn(computed_models()),
                         [](const auto& test) { return test.param; });

// The reference keeps gpt-oss's experts as [experts, in, out].
TEST(GoldenExperts, BlocksOfGptOssAreTheNumbersOfTheReference) {
  if (testing::present("quantized", {"gpt_oss_mxfp4"}).empty()) GTEST_SKIP() << "needs PLIMSOLL_GOLDEN";
  const Golden set = golden("gpt_oss_mxfp4");
  const auto artifact = artifact::open(set.folder);
  ASSERT_TRUE(artifact);
  const auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec);
  const auto weights = load_weights(**artifact, *spec);
  ASSERT_TRUE(weights) << weights.error().describe();
  EXPECT_EQ(weights->stored, memory::stored_weights_bytes(**artifact, *spec));
  EXPECT_EQ(weights->stored.value, set.expected["stored_bytes"].as_integer());
  const auto& expected = set.tensors.at("dequantized.model.layers.0.mlp.experts.down_proj");
  ASSERT_EQ(expected.shape, (std::vector<std::int64_t>{4, 64, 64}));
  for (std::int64_t expert = 0; expert < 4; ++expert) {
    const auto matrix =
        load_expert_blocks(**artifact, "model.layers.0.mlp.experts.down_proj", 4, expert, 64, 64);
    ASSERT_TRUE(matrix) << matrix.error().describe();
    std::vector<float> rows(64 * 64), transposed(64 * 64);
    widen_rows(*matrix, 0, 64, rows.data());
    for (std::size_t out = 0; out < 64; ++out)
      for (std::size_t in = 0; in < 64; ++in) transposed[in * 64 + out] = rows[out * 64 + in];
    expect_close(transposed,
                 std::span(expected.values).subspan(static_cast<std::size_t>(expert) * 4096, 4096));
  }
}

}  // namespace
}  // namespace plimsoll::engine
