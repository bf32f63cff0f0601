// SPDX-License-Identifier: Apache-2.0
#include "engine/router.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/kernels.h"

namespace plimsoll::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// How much an expert is wanted.
class Choice {
 public:
  Choice(std::span<const float> scores, std::span<const float> bias) : scores_(scores), bias_(bias) {}
  float of(std::size_t expert) const { return scores_[expert] + (bias_.empty() ? 0.0F : bias_[expert]); }

  /// The best one of [first, last) that is not among `chosen`; last when there is none.
  std::size_t best(std::size_t first, std::size_t last, std::span<const ChosenExpert> chosen) const {
    std::size_t found = last;
    float highest = kNever;
    for (std::size_t e = first; e < last; ++e) {
      const bool is_taken = std::ranges::any_of(
          chosen, [&](const ChosenExpert& other) { return other.expert == static_cast<std::int32_t>(e); });
      if (is_taken || (found != last && !(of(e) > highest))) continue;
      found = e;
      highest = of(e);
    }
    return found;
  }

 private:
  std::span<const float> scores_, bias_;
};

float group_score(const model::Router& router, const Choice& choice, std::size_t first, std::size_t last) {
  float best = kNever, second = kNever;
  for (std::size_t e = first; e < last; ++e) {
    const float value = choice.of(e);
    if (value > best)
      second = std::exchange(best, value);
    else
      second = std::max(second, value);
  }
  return router.sums_two_of_group && last - first > 1 ? best + second : best;
}

}  // namespace

void choose_experts(const model::Router& router, std::span<float> logits, std::span<const float> score_bias,
                    std::span<ChosenExpert> chosen) {
  if (router.scores == model::Router::Scores::kSoftmax)
    kernels::softmax(logits.data(), std::ssize(logits));
  else
    for (float& value : logits) value = 1.0F / (1.0F + std::exp(-value));
  const Choice choice(logits, score_bias);
  const std::size_t groups = static_cast<std::size_t>(router.groups), size = logits.size() / groups;
  const auto score_of = [&](std::size_t group) {
    return group_score(router, choice, group * size, (group + 1) * size);
  };
  // A group is open when fewer than so many others are before it.
  const auto is_open = [&](std::size_t group) {
    int before = 0;
    for (std::size_t other = 0; other < groups; ++other)
      before += score_of(other) > score_of(group) || (other < group && score_of(other) == score_of(group));
    return before < router.groups_per_token;
  };
  float sum = 0;
  for (std::size_t k = 0; k < chosen.size(); ++k) {
    std::size_t best = logits.size();
    for (std::size_t group = 0; group < groups; ++group) {
      if (groups > 1 && !is_open(group)) continue;
      const std::size_t found = choice.best(group * size, (group + 1) * size, chosen.first(k));
      if (found == (group + 1) * size) continue;
      if (best == logits.size() || choice.of(found) > choice.of(best)) best = found;
    }
    if (best == logits.size())
      best = choice.best(0, logits.size(), chosen.first(k));  // the groups are used up
    chosen[k] = {static_cast<std::int32_t>(best), logits[best]};
    sum += logits[best];
  }
  const float scale = static_cast<float>(router.scale) / (router.is_normalized ? sum + 1e-20F : 1.0F);
  for (ChosenExpert& one : chosen) one.weight *= scale;
}

}  // namespace plimsoll::engine
