// SPDX-License-Identifier: Apache-2.0
// 100,000 draws of each sampler, and of their order, against the exact distribution: a plain reading of
// docs/formulas/sampling.md in double precision, by sorting everything. Each case is also held against orders
// and cuts that are wrong, which the same draws have to refute: so the test is known to see them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>
#include <random>

#include "engine/sampler.h"

namespace plimsoll::engine {
namespace {

constexpr int kDraws = 100'000;
constexpr int kDrawsOfTies = 15'000;  // one of 700 equals is missing once in 10^9 seeds

using Probabilities = std::vector<double>;  // [vocab]; 0: never
/// One step of the pipeline; the probabilities it is given sum to 1.
using Cut = std::function<void(Probabilities&)>;

// Keeps the first tokens, least key first and then the lower id, while `goes_on` of what is kept so far.
void keep_while(Probabilities& p, const std::function<double(double)>& key,
                const std::function<bool(std::size_t count, double mass)>& goes_on) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i)
    if (p[i] > 0) order.push_back(i);
  std::stable_sort(order.begin(), order.end(), [&](auto a, auto b) { return key(p[a]) < key(p[b]); });
  Probabilities kept(p.size(), 0.0);
  double mass = 0;
  for (std::size_t n = 0; n < order.size() && (n == 0 || goes_on(n, mass)); ++n)
    mass += kept[order[n]] = p[order[n]];
  p = kept;
}

Cut top_k(std::size_t k) {
  return [=](Probabilities& p) { keep_while(p, std::negate<>(), [=](auto n, double) { return n < k; }); };
}
Cut top_p(double share) {
  return [=](Probabilities& p) { keep_while(p, std::negate<>(), [=](auto, double m) { return m < share; }); };
}
Cut min_p(double share) {
  return [=](Probabilities& p) {
    const double least = share * *std::max_element(p.begin(), p.end());
    for (double& value : p) value = value < least ? 0 : value;
  };
}
Cut typical_p(double share) {
  return [=](Probabilities& p) {
    double entropy = 0;
    for (const double value : p) entropy -= value > 0 ? value * std::log(value) : 0;
    keep_while(
        p, [=](double value) { return std::abs(-std::log(value) - entropy); },
        [=](auto, double m) { return m < share; });
  };
}
Cut temperature(double t) {
  return [=](Probabilities& p) {
    for (double& value : p) value = value > 0 ? std::pow(value, 1 / t) : 0;
  };
}

Probabilities exact(const std::vector<float>& logits, const std::vector<Cut>& cuts) {
  Probabilities p;
  for (const float logit : logits) p.push_back(std::exp(static_cast<double>(logit)));
  const auto normalize = [&] {
    const double sum = std::accumulate(p.begin(), p.end(), 0.0);
    for (double& value : p) value /= sum;
  };
  normalize();
  for (const Cut& cut : cuts) {
    cut(p);
    normalize();
  }
  return p;
}

struct Fit {
  double chi_square = 0;
  double limit = 0;  // exceeded once in a million seeds when the distribution is the expected one
};

// Tokens that are expected less than ten times are counted together, as the statistic needs.
Fit fit(const std::vector<int>& counts, const Probabilities& expected) {
  Fit result;
  double rare_expected = 0, rare_counted = 0;
  int cells = 0;
  const auto add = [&](double counted, double awaited) {
    result.chi_square += (counted - awaited) * (counted - awaited) / awaited;
    ++cells;
  };
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const double awaited = expected[i] * kDraws;
    if (awaited == 0 && counts[i] > 0) return {INFINITY, 0};  // what is cut must never come
    if (awaited >= 10) {
      add(counts[i], awaited);
    } else {
      rare_expected += awaited;
      rare_counted += counts[i];
    }
  }
  if (rare_expected > 0) add(rare_counted, std::max(rare_expected, 1.0));
  // Wilson and Hilferty's approximation of the quantile; 4.753 is the normal one of 1e-6.
  const double freedom = std::max(cells - 1, 1), spread = 2 / (9 * freedom);
  result.limit = freedom * std::pow(1 - spread + 4.753 * std::sqrt(spread), 3);
  return result;
}

// More tokens than a block of weights holds and than are sorted at once; no two alike.
std::vector<float> some_logits(std::size_t vocab, float spread) {
  std::mt19937 random(11);
  std::normal_distribution<float> normal(0, spread);
  std::vector<float> logits(vocab);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

std::vector<int> draw_many(const SamplingParams& params, const std::vector<float>& logits, int draws) {
  SamplerBuffers buffers;
  Sampler sampler(params, {});
  std::vector<int> counts(logits.size());
  for (int i = 0; i < draws; ++i) ++counts[static_cast<std::size_t>(*sampler.choose(logits, i, buffers))];
  return counts;
}

struct Case {
  std::string name;
  std::function<void(SamplingParams&)> set;
  std::vector<Cut> right;
  std::vector<std::vector<Cut>> wrong;
};

std::vector<Case> cases() {
  return {
      {"plain", [](auto&) {}, {}, {{temperature(1.05)}, {top_k(599)}}},
      {"temperature", [](auto& p) { p.temperature = 0.7; }, {temperature(0.7)}, {{}, {temperature(1 / 0.7)}}},
      {"top_k", [](auto& p) { p.top_k = 100; }, {top_k(100)}, {{top_k(99)}, {top_k(101)}}},
      {"top_p", [](auto& p) { p.top_p = 0.8; }, {top_p(0.8)}, {{top_p(0.79)}, {top_p(0.81)}}},
      {"min_p", [](auto& p) { p.min_p = 0.05; }, {min_p(0.05)}, {{min_p(0.045)}, {min_p(0.055)}}},
      {"typical_p",
       [](auto& p) { p.typical_p = 0.6; },
       {typical_p(0.6)},
       {{typical_p(0.59)}, {typical_p(0.61)}, {top_p(0.6)}}},
      {"top_k, then top_p",
       [](auto& p) { p.top_k = 60, p.top_p = 0.8; },
       {top_k(60), top_p(0.8)},
       {{top_p(0.8), top_k(60)}, {top_k(60)}, {top_p(0.8)}}},
      {"temperature, then min_p",
       [](auto& p) { p.temperature = 0.6, p.min_p = 0.1; },
       {temperature(0.6), min_p(0.1)},
       {{min_p(0.1), temperature(0.6)}}},
      {"min_p, then top_p",
       [](auto& p) { p.min_p = 0.1, p.top_p = 0.7; },
       {min_p(0.1), top_p(0.7)},
       {{top_p(0.7), min_p(0.1)}}},
      {"top_p, then typical_p",
       [](auto& p) { p.top_p = 0.8, p.typical_p = 0.5; },
       {top_p(0.8), typical_p(0.5)},
       {{typical_p(0.5), top_p(0.8)}}},
      {"all",
       [](auto& p) { p.temperature = 1.3, p.min_p = 0.05, p.top_k = 80, p.top_p = 0.85, p.typical_p = 0.7; },
       {temperature(1.3), min_p(0.05), top_k(80), top_p(0.85), typical_p(0.7)},
       {{min_p(0.05), top_k(80), top_p(0.85), typical_p(0.7), temperature(1.3)},
        {temperature(1.3), min_p(0.05), top_p(0.85), top_k(80), typical_p(0.7)},
        {temperature(1.3), min_p(0.05), top_k(80), typical_p(0.7), top_p(0.85)},
        {temperature(1.3), top_p(0.85), min_p(0.05), top_k(80), typical_p(0.7)}}},
  };
}

class SamplerDistribution : public ::testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Cases, SamplerDistribution, ::testing::Range(std::size_t{0}, cases().size()));

TEST_P(SamplerDistribution, IsTheExactOneAndNoOther) {
  const Case example = cases()[GetParam()];
  const auto logits = some_logits(600, 1.5F);
  SamplingParams params;
  params.seed = 20240607;
  example.set(params);
  const auto counts = draw_many(params, logits, kDraws);
  const Fit right = fit(counts, exact(logits, example.right));
  EXPECT_LT(right.chi_square, right.limit) << example.name;
  for (std::size_t i = 0; i < example.wrong.size(); ++i) {
    const Fit wrong = fit(counts, exact(logits, example.wrong[i]));
    EXPECT_GT(wrong.chi_square, wrong.limit) << example.name << ", wrong one " << i << " fits as well";
  }
}

// Equal logits: the lower ids stay, in every cut.
TEST(SamplerDistributionOfTies, KeepsTheLowerIds) {
  const std::vector<float> logits(700, 1.5F);
  const auto last_kept = [&](const std::function<void(SamplingParams&)>& set) {
    SamplingParams params;
    params.seed = 5;
    set(params);
    const auto counts = draw_many(params, logits, kDrawsOfTies);
    const auto last = std::find_if(counts.rbegin(), counts.rend(), [](int n) { return n > 0; });
    return counts.rend() - last;
  };
  EXPECT_EQ(last_kept([](auto& p) { p.top_k = 70; }), 70);
  EXPECT_EQ(last_kept([](auto& p) { p.top_p = 0.25; }), 175);
  EXPECT_EQ(last_kept([](auto& p) { p.typical_p = 0.5; }), 350);
  EXPECT_EQ(last_kept([](auto& p) { p.top_k = 100, p.top_p = 0.5, p.typical_p = 0.5; }), 25);
  EXPECT_EQ(last_kept([](auto& p) { p.min_p = 1.0; }), 700);
}

}  // namespace
}  // namespace plimsoll::engine
