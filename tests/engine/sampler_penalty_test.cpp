// SPDX-License-Identifier: Apache-2.0
// Bias and penalties against vLLM's formulas as docs/formulas/sampling.md has them, worked out anew from
// whole histories; and the page's worked case.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "engine/sampler.h"
#include "tests/testing/worked_case.h"

namespace plimsoll::engine {
namespace {

enum class Order { kBiasFirst, kBiasLast };

std::vector<double> adjusted(const std::vector<float>& logits, const SamplingParams& params,
                             const std::vector<TokenId>& prompt, const std::vector<TokenId>& output,
                             Order order = Order::kBiasFirst) {
  std::vector<double> result(logits.begin(), logits.end());
  const auto add_bias = [&] {
    for (const auto& [token, bias] : params.logit_bias) result[static_cast<std::size_t>(token)] += bias;
  };
  if (order == Order::kBiasFirst) add_bias();
  for (std::size_t i = 0; i < result.size(); ++i) {
    const auto token = static_cast<TokenId>(i);
    const auto in_output = static_cast<double>(std::count(output.begin(), output.end(), token));
    const bool is_seen = in_output > 0 || std::find(prompt.begin(), prompt.end(), token) != prompt.end();
    if (is_seen) result[i] *= result[i] > 0 ? 1 / params.repetition_penalty : params.repetition_penalty;
    result[i] -= params.frequency_penalty * in_output;
    result[i] -= in_output > 0 ? params.presence_penalty : 0;
  }
  if (order == Order::kBiasLast) add_bias();
  return result;
}

TokenId arg_max(const std::vector<double>& values) {
  return static_cast<TokenId>(std::max_element(values.begin(), values.end()) - values.begin());
}

TEST(SamplerPenalties, AreTheFormulasOverWholeHistories) {
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 1);
  const auto uniform = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  SamplerBuffers buffers;
  int differs_without = 0, differs_in_order = 0;
  for (int trial = 0; trial < 200; ++trial) {
    SamplingParams params;
    params.temperature = 0;
    params.repetition_penalty = uniform(0.5, 2);
    params.frequency_penalty = uniform(-2, 2);
    params.presence_penalty = uniform(-2, 2);
    for (TokenId token = 0; token < 24; token += 3) params.logit_bias.emplace_back(token, uniform(-3, 3));
    const std::vector<TokenId> prompt = {1, 1, 5, 9};
    std::vector<TokenId> output;
    Sampler sampler(params, prompt);
    for (int step = 0; step < 20; ++step) {
      std::vector<float> logits(24);
      for (float& logit : logits) logit = normal(random);
      const TokenId expected = arg_max(adjusted(logits, params, prompt, output));
      differs_without += arg_max(adjusted(logits, {}, prompt, output)) != expected ? 1 : 0;
      differs_in_order +=
          arg_max(adjusted(logits, params, prompt, output, Order::kBiasLast)) != expected ? 1 : 0;
      const auto chosen = sampler.choose(logits, step, buffers);
      ASSERT_EQ(chosen, expected) << "trial " << trial << ", step " << step;
      output.push_back(*chosen);
    }
  }
  EXPECT_GT(differs_without, 1000);  // of 4,000: the comparison has something to see
  EXPECT_GT(differs_in_order, 100);
}

// Each draw of a penalized sequence follows the distribution of its own history: one output token is forced,
// then the second draw is counted.
TEST(SamplerPenalties, TheWorkedCaseOfThePage) {
  const testing::WorkedCase page("sampling.md");
  const std::vector<float> logits = {2.0F, 1.5F, 1.0F, 0.5F, -1.0F, -2.0F};
  SamplingParams params;
  params.temperature = 0.8;
  params.logit_bias = {{2, 1.0}};
  params.repetition_penalty = 1.25;
  params.frequency_penalty = 0.3;
  params.presence_penalty = 0.2;
  params.min_p = 0.05;
  params.top_k = 4;
  params.top_p = 0.9;
  const std::vector<TokenId> prompt = {0, 4};
  const auto values = adjusted(logits, params, prompt, {1});
  for (std::size_t i = 0; i < values.size(); ++i)
    EXPECT_NEAR(values[i], std::stod(page.text("adjusted logit " + std::to_string(i))), 5e-5);

  std::vector<int> counts(logits.size());
  constexpr int kDraws = 100'000;
  SamplerBuffers buffers;
  for (int i = 0; i < kDraws; ++i) {
    params.seed = static_cast<std::uint64_t>(i);
    Sampler sampler(params, prompt);
    std::vector<float> forced(logits.size(), -100.0F);
    forced[1] = 100.0F;
    ASSERT_EQ(sampler.choose(forced, 0, buffers), 1);
    ++counts[static_cast<std::size_t>(*sampler.choose(logits, 1, buffers))];
  }
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double expected = std::stod(page.text("probability " + std::to_string(i)));
    // Five standard deviations of a binomial, and half a unit of the page's last digit.
    EXPECT_NEAR(counts[i] / double{kDraws}, expected, 5 * std::sqrt(expected / kDraws) + 5e-5) << i;
  }
}

}  // namespace
}  // namespace plimsoll::engine
