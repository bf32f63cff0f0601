// SPDX-License-Identifier: Apache-2.0
// The choice of experts against the definition, in double precision and by sorting.
#include "engine/router.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

namespace plimsoll::engine {
namespace {

struct Expected {
  std::vector<std::int32_t> experts;
  std::vector<double> weights;
};

Expected defined(const model::Router& router, const std::vector<float>& logits,
                 const std::vector<float>& bias, std::size_t per_token) {
  const std::size_t n = logits.size();
  std::vector<double> scores(n), wanted(n);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  for (std::size_t i = 0; i < n; ++i) {
    const auto logit = static_cast<double>(logits[i]);
    scores[i] =
        router.scores == model::Router::Scores::kSoftmax ? std::exp(logit) / sum : 1 / (1 + std::exp(-logit));
    wanted[i] = scores[i] + (bias.empty() ? 0.0 : static_cast<double>(bias[i]));
  }
  const std::size_t groups = static_cast<std::size_t>(router.groups), size = n / groups;
  std::vector<std::size_t> order(groups);
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> group_scores(groups);
  for (std::size_t g = 0; g < groups; ++g) {
    std::vector<double> in_group(wanted.begin() + static_cast<std::ptrdiff_t>(g * size),
                                 wanted.begin() + static_cast<std::ptrdiff_t>((g + 1) * size));
    std::ranges::sort(in_group, std::greater());
    group_scores[g] = in_group[0] + (router.sums_two_of_group && size > 1 ? in_group[1] : 0.0);
  }
  std::ranges::stable_sort(order,
                           [&](std::size_t a, std::size_t b) { return group_scores[a] > group_scores[b]; });
  std::vector<std::int32_t> open;
  for (std::size_t g = 0; g < static_cast<std::size_t>(router.groups_per_token); ++g)
    for (std::size_t e = order[g] * size; e < (order[g] + 1) * size; ++e)
      open.push_back(static_cast<std::int32_t>(e));
  std::ranges::sort(open);
  std::ranges::stable_sort(open, [&](std::int32_t a, std::int32_t b) {
    return wanted[static_cast<std::size_t>(a)] > wanted[static_cast<std::size_t>(b)];
  });
  Expected expected;
  double total = 0;
  for (std::size_t k = 0; k < per_token; ++k) {
    expected.experts.push_back(open[k]);
    expected.weights.push_back(scores[static_cast<std::size_t>(open[k])]);
    total += expected.weights.back();
  }
  for (double& weight : expected.weights) weight *= router.scale / (router.is_normalized ? total : 1.0);
  return expected;
}

TEST(Router, ChoosesAndWeighsAsDefined) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  for (const auto scores : {model::Router::Scores::kSoftmax, model::Router::Scores::kSigmoid})
    for (const bool is_normalized : {false, true})
      for (const int groups : {1, 4})
        for (const bool has_bias : {false, true})
          for (int round = 0; round < 50; ++round) {
            model::Router router{.scores = scores, .is_normalized = is_normalized, .scale = 2.5};
            router.groups = groups;
            router.groups_per_token = std::max(1, groups / 2);
            router.sums_two_of_group = round % 2 == 0;
            std::vector<float> logits(16), bias(has_bias ? 16 : 0);
            for (float& value : logits) value = normal(random);
            for (float& value : bias) value = normal(random) / 4;
            const Expected expected = defined(router, logits, bias, 4);
            std::vector<ChosenExpert> chosen(4);
            choose_experts(router, logits, bias, chosen);
            for (std::size_t k = 0; k < 4; ++k) {
              EXPECT_EQ(chosen[k].expert, expected.experts[k]);
              EXPECT_NEAR(static_cast<double>(chosen[k].weight), expected.weights[k], 1e-5);
            }
          }
}

TEST(Router, EqualScoresGoToTheLowerExpertAndNobodyIsChosenTwice) {
  std::vector<float> logits(8, 0.5F);
  std::vector<ChosenExpert> chosen(8);
  choose_experts({.is_normalized = true}, logits, {}, chosen);
  for (std::size_t k = 0; k < 8; ++k) {
    EXPECT_EQ(chosen[k].expert, static_cast<std::int32_t>(k));
    EXPECT_NEAR(static_cast<double>(chosen[k].weight), 0.125, 1e-6);
  }
}

// NaN out of broken weights must choose some expert, never one that is not there.
TEST(Router, NotANumberChoosesWithinTheExperts) {
  std::vector<float> logits(8, NAN);
  std::vector<ChosenExpert> chosen(3);
  model::Router router;
  router.groups = 4;
  router.groups_per_token = 2;
  choose_experts(router, logits, {}, chosen);
  std::vector<std::int32_t> experts;
  for (const ChosenExpert& one : chosen) experts.push_back(one.expert);
  std::ranges::sort(experts);
  EXPECT_TRUE(std::ranges::adjacent_find(experts) == experts.end());
  EXPECT_GE(experts.front(), 0);
  EXPECT_LT(experts.back(), 8);
}

}  // namespace
}  // namespace plimsoll::engine
