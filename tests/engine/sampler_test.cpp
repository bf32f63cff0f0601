// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>

namespace plimsoll::engine {
namespace {

const std::vector<float> kLogits = {0.0F, 2.0F, 1.0F, -1.0F, 2.0F};

SamplingParams seeded(double temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 7;
  return params;
}

std::map<TokenId, int> draw_many(const SamplingParams& params, int draws) {
  Sampler sampler(params, {});
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[*sampler.choose(kLogits, i)];
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  Sampler sampler(seeded(0), {});
  EXPECT_EQ(sampler.choose(kLogits, 0), 1);
}

TEST(Sampler, DrawsFollowTheSoftmax) {
  const auto counts = draw_many(seeded(1.0), 20'000);
  double sum = 0;
  for (const double logit : kLogits) sum += std::exp(logit);
  for (std::size_t i = 0; i < kLogits.size(); ++i) {
    const double expected = std::exp(kLogits[i]) / sum;
    // Four standard deviations of a binomial over 20,000 draws.
    EXPECT_NEAR(counts.at(static_cast<TokenId>(i)) / 20'000.0, expected, 4 * std::sqrt(expected / 20'000.0));
  }
}

TEST(Sampler, TheSameSeedDrawsTheSame) {
  EXPECT_EQ(draw_many(seeded(1.0), 100), draw_many(seeded(1.0), 100));
}

TEST(Sampler, TopKTopPAndMinPCut) {
  auto params = seeded(1.0);
  params.top_k = 2;
  for (const auto& [token, count] : draw_many(params, 500)) EXPECT_TRUE(token == 1 || token == 4) << token;
  params = seeded(1.0);
  params.top_p = 0.5;  // the two largest hold 0.39 each: one is not enough, two are
  for (const auto& [token, count] : draw_many(params, 500)) EXPECT_TRUE(token == 1 || token == 4) << token;
  params = seeded(1.0);
  params.min_p = 0.3;  // exp(1-2) = 0.37 stays, exp(0-2) = 0.14 goes
  const auto kept = draw_many(params, 500);
  EXPECT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept.count(0), 0u);
}

TEST(Sampler, PenaltiesBiasAndMinTokens) {
  auto params = seeded(0);
  params.repetition_penalty = 4.0;
  const std::vector<TokenId> prompt = {1, 4};
  Sampler repeated(params, prompt);
  EXPECT_EQ(repeated.choose(kLogits, 0), 2);  // 2/4 < 1

  params = seeded(0);
  params.presence_penalty = 1.5;
  Sampler present({params}, {});
  EXPECT_EQ(present.choose(kLogits, 0), 1);
  EXPECT_EQ(present.choose(kLogits, 1), 4);
  EXPECT_EQ(present.choose(kLogits, 2), 2);

  params = seeded(0);
  params.logit_bias = {{3, 100.0}, {99, 5.0}};
  Sampler biased(params, {});
  EXPECT_EQ(biased.choose(kLogits, 0), 3);

  params = seeded(0);
  params.stop_token_ids = {1, 4};
  params.min_tokens = 1;
  Sampler waiting(params, {});
  EXPECT_EQ(waiting.choose(kLogits, 0), 2);
  EXPECT_EQ(waiting.choose(kLogits, 1), 1);
}

TEST(Sampler, LogitsWithoutANumberChooseNothing) {
  Sampler sampler(seeded(1.0), {});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(sampler.choose(std::vector<float>{nan, nan}, 0));
  EXPECT_FALSE(sampler.choose(std::vector<float>{-INFINITY}, 0));
  EXPECT_FALSE(sampler.choose(std::vector<float>{0, INFINITY}, 0));
}

// A repetition penalty of 1e-40 once made every logit infinite and the draw empty.
TEST(Sampler, ExtremesOfEveryParameterStillChooseAToken) {
  const std::vector<TokenId> prompt = {0, 1, 2, 3, 4};
  for (const double extreme : {1e-300, 1e-40, 1e-5, 1e5, 1e40, 1e300}) {
    for (const auto set : {&SamplingParams::temperature, &SamplingParams::repetition_penalty,
                           &SamplingParams::presence_penalty, &SamplingParams::frequency_penalty,
                           &SamplingParams::top_p, &SamplingParams::min_p}) {
      auto params = seeded(1.0);
      params.*set = extreme;
      Sampler sampler(params, prompt);
      for (int i = 0; i < 3; ++i) {
        const auto token = sampler.choose(kLogits, i);
        ASSERT_TRUE(token) << extreme;
        EXPECT_LT(*token, 5);
      }
    }
  }
}

TEST(Logprobs, AreTheLogSoftmaxWithTiesByLowerId) {
  const auto logprob = token_logprob(kLogits, 2, 3);
  double sum = 0;
  for (const double logit : kLogits) sum += std::exp(logit);
  EXPECT_NEAR(logprob.logprob, 1.0 - std::log(sum), 1e-9);
  ASSERT_EQ(logprob.top.size(), 3u);
  EXPECT_EQ(logprob.top[0].first, 1);
  EXPECT_EQ(logprob.top[1].first, 4);
  EXPECT_EQ(logprob.top[2].first, 2);
  EXPECT_NEAR(logprob.top[0].second, 2.0 - std::log(sum), 1e-9);
}

}  // namespace
}  // namespace plimsoll::engine
