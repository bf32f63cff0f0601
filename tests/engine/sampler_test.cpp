// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <span>

namespace plimsoll::engine {
namespace {

const std::vector<float> kLogits = {0.0F, 2.0F, 1.0F, -1.0F, 2.0F};

SamplingParams seeded(double temperature) {
  SamplingParams params;
  params.temperature = temperature;
  params.seed = 7;
  return params;
}

std::optional<TokenId> choose(Sampler& sampler, std::span<const float> logits, std::int64_t generated) {
  static SamplerBuffers buffers;
  return sampler.choose(logits, generated, buffers);
}

std::map<TokenId, int> draw_many(const SamplingParams& params, int draws) {
  Sampler sampler(params, {});
  std::map<TokenId, int> counts;
  for (int i = 0; i < draws; ++i) ++counts[*choose(sampler, kLogits, i)];
  return counts;
}

TEST(Sampler, GreedyTakesTheFirstOfTheLargest) {
  Sampler sampler(seeded(0), {});
  EXPECT_EQ(choose(sampler, kLogits, 0), 1);
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
  EXPECT_EQ(choose(repeated, kLogits, 0), 2);  // 2/4 < 1

  params = seeded(0);
  params.presence_penalty = 1.5;
  Sampler present({params}, {});
  EXPECT_EQ(choose(present, kLogits, 0), 1);
  EXPECT_EQ(choose(present, kLogits, 1), 4);
  EXPECT_EQ(choose(present, kLogits, 2), 2);

  params = seeded(0);
  params.logit_bias = {{3, 100.0}, {99, 5.0}};
  Sampler biased(params, {});
  EXPECT_EQ(choose(biased, kLogits, 0), 3);

  params = seeded(0);
  params.stop_token_ids = {1, 4};
  params.min_tokens = 1;
  Sampler waiting(params, {});
  EXPECT_EQ(choose(waiting, kLogits, 0), 2);
  EXPECT_EQ(choose(waiting, kLogits, 1), 1);
}

// vLLM keeps the model's ends from being chosen before min_tokens even when ignore_eos lets them end nothing.
TEST(Sampler, IgnoredEndsWaitForMinTokensToo) {
  auto params = seeded(0);
  params.ignored_stop_ids = {1};
  params.min_tokens = 1;
  params.repetition_penalty = 1.5;  // a forbidden token stays forbidden whatever comes after
  Sampler sampler(params, std::vector<TokenId>{1});
  EXPECT_EQ(choose(sampler, kLogits, 0), 4);
  params.min_tokens = 0;
  Sampler free({params}, {});
  EXPECT_EQ(choose(free, kLogits, 1), 1);
}

// vLLM raises a temperature between 0 and 0.01 to 0.01; only 0 itself is greedy.
TEST(Sampler, TinyTemperaturesAreRaised) {
  const std::vector<float> close = {1.0F, 1.005F};
  Sampler sampler(seeded(1e-9), {});
  int lower = 0;
  for (int i = 0; i < 1000; ++i) lower += choose(sampler, close, i) == 0 ? 1 : 0;
  EXPECT_NEAR(lower, 1000 / (1 + std::exp(0.5)), 4 * std::sqrt(1000 * 0.38 * 0.62));  // four deviations
}

TEST(Sampler, LogitsWithoutANumberChooseNothing) {
  Sampler sampler(seeded(1.0), {});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(choose(sampler, std::vector<float>{nan, nan}, 0));
  EXPECT_FALSE(choose(sampler, std::vector<float>{-INFINITY}, 0));
  EXPECT_FALSE(choose(sampler, std::vector<float>{0, INFINITY}, 0));
}

// A repetition penalty of 1e-40 once made every logit infinite and the draw empty.
TEST(Sampler, ExtremesOfEveryParameterStillChooseAToken) {
  const std::vector<TokenId> prompt = {0, 1, 2, 3, 4};
  for (const double extreme : {1e-300, 1e-40, 1e-5, 1e5, 1e40, 1e300}) {
    for (const auto set : {&SamplingParams::temperature, &SamplingParams::repetition_penalty,
                           &SamplingParams::presence_penalty, &SamplingParams::frequency_penalty,
                           &SamplingParams::top_p, &SamplingParams::min_p, &SamplingParams::typical_p}) {
      auto params = seeded(1.0);
      params.*set = extreme;
      Sampler sampler(params, prompt);
      for (int i = 0; i < 3; ++i) {
        const auto token = choose(sampler, kLogits, i);
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
  EXPECT_EQ(logprob.rank, 3);                               // two are above it
  EXPECT_EQ(token_logprob(kLogits, 4, 0).rank, 2);          // ties count as above
  EXPECT_EQ(token_logprob(kLogits, 2, 99).top.size(), 5u);  // no more than there are
}

TEST(Logprobs, AreThoseOfALongDoublePass) {
  std::vector<float> logits(5000);
  for (std::size_t i = 0; i < logits.size(); ++i)
    logits[i] = static_cast<float>(i * 7919 % 5000) / 250.0F - 12.0F;
  long double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<long double>(logit));
  std::vector<TokenId> by_rank(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) by_rank[4999 - i * 7919 % 5000] = static_cast<TokenId>(i);
  const auto logprob = token_logprob(logits, by_rank[123], 20);
  EXPECT_EQ(logprob.rank, 124);
  const auto exact = [&](TokenId token) {
    return static_cast<double>(static_cast<long double>(logits[static_cast<std::size_t>(token)]) -
                               std::log(sum));
  };
  EXPECT_NEAR(logprob.logprob, exact(by_rank[123]), 1e-12);  // the rounding of 5,000 additions of doubles
  ASSERT_EQ(logprob.top.size(), 20u);
  for (std::size_t i = 0; i < 20; ++i) {
    EXPECT_EQ(logprob.top[i].first, by_rank[i]);
    EXPECT_NEAR(logprob.top[i].second, exact(by_rank[i]), 1e-12);
  }
}

}  // namespace
}  // namespace plimsoll::engine
