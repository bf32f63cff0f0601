// SPDX-License-Identifier: Apache-2.0
// Holds the engine in float32 mode to transformers on tiny models of every family (data/architectures):
// logits of all positions of a prompt, greedy tokens, and a test that both can fail.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/engine/loading.h"
#include "tests/testing/recorded_model.h"

namespace plimsoll::engine {
namespace {

// Of the largest logit. Recordings are rounded to 1.5e-5 of it; sums in another order change up to 1e-4.
constexpr float kTolerance = 3e-4F;

EngineOptions options_for(const testing::RecordedModel& model) {
  EngineOptions options = small_options(ComputeMode::kFloat32);
  options.max_model_len = static_cast<std::int64_t>(model.prompt.size() + model.greedy.size());
  options.max_num_batched_tokens = 10;  // prompts arrive in parts
  return options;
}

Trace run_recorded(const testing::RecordedModel& model, std::string_view broken = {}) {
  const testing::MadeFolder folder;
  testing::put_model(folder, model, broken);
  const auto engine = load_model(folder.path().string(), options_for(model));
  if (!engine) return {};
  SamplingParams params = greedy(static_cast<std::int64_t>(model.greedy.size()));
  params.return_prompt_logits = true;
  return run_alone(*engine, {model.prompt.begin(), model.prompt.end()}, params);
}

/// The largest difference at a position, in parts of the largest logit.
float difference_at(const testing::RecordedModel& model, const Trace& run, std::size_t position) {
  const auto &found = run.prompt_logits[position], &expected = model.logits[position];
  EXPECT_EQ(found.size(), expected.size());
  float largest = 0;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const float difference = std::fabs(found[i] - expected[i]) / model.scale;
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

class RecordedModels : public ::testing::TestWithParam<std::string> {};

TEST_P(RecordedModels, LogitsAndGreedyTokensMatchTransformers) {
  const auto model = testing::read_recorded(GetParam());
  const Trace run = run_recorded(model);
  ASSERT_EQ(run.prompt_logits.size(), model.prompt.size());
  for (std::size_t t = 0; t < model.prompt.size(); ++t)
    EXPECT_LT(difference_at(model, run, t), kTolerance) << "prompt position " << t;
  EXPECT_EQ(run.tokens, std::vector<TokenId>(model.greedy.begin(), model.greedy.end()));
}

INSTANTIATE_TEST_SUITE_P(Families, RecordedModels, ::testing::ValuesIn(testing::recorded_names()),
                         [](const auto& test) { return test.param; });

TEST(RecordedModel, OneRowOfOneMatrixIsSeen) {
  const auto model = testing::read_recorded("exaone4");
  const Trace run = run_recorded(model, "model.layers.1.self_attn.v_proj.weight");
  ASSERT_EQ(run.prompt_logits.size(), model.prompt.size());
  EXPECT_GT(difference_at(model, run, 5), 10 * kTolerance);
}

// Against the same formula in the recording program.
TEST(RecordedModel, WeightsAreTheReferences) {
  const std::vector<float> matrix{0.24639001488685608F, 0.2423679530620575F, -0.2290753722190857F,
                                  -0.03861090540885925F};
  EXPECT_EQ(testing::made_values("lm_head.weight", {2, 2}), matrix);
  const std::vector<float> norm{0.7743439078330994F, 0.8189100027084351F, 0.9510284662246704F};
  EXPECT_EQ(testing::made_values("model.norm.weight", {3}), norm);
  const std::vector<float> decay{0.052262187004089355F, 1.4862006902694702F};
  EXPECT_EQ(testing::made_values("a.A_log", {2}), decay);
}

}  // namespace
}  // namespace plimsoll::engine
