// SPDX-License-Identifier: Apache-2.0
#include "engine/router.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "kernels/kernels.h"

namespace plimsoll::engine {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

/// How much an expert is wanted.
struct Choice {
  std::span<const float> scores, bias;
  float of(std::size_t expert) const { return scores[expert] + (bias.empty() ? 0.0F : bias[expert]); }
};

/// Never a NaN, so that groups have an order.
float group_score(const model::Router& router, const Choice& choice, std::size_t first, std::size_t last) {
  float best = kNever, second = kNever;
  for (std::size_t e = first; e < last; ++e) {
    const float value = choice.of(e);
    if (value > best)
      second = std::exchange(best, value);
    else
      second = std::max(second, value);
  }
  const float score = router.sums_two_of_group && last - first > 1 ? best + second : best;
  return std::isnan(score) ? kNever : score;
}

/// The best so far of what was shown in ascending order: best first, of equal ones the lower.
class Best {
 public:
  Best(const Choice& choice, std::span<ChosenExpert> kept) : choice_(choice), kept_(kept) {}

  void show(std::size_t expert) {
    const float value = choice_.of(expert);
    std::size_t place = count_;
    while (place > 0 && value > choice_.of(static_cast<std::size_t>(kept_[place - 1].expert))) --place;
    if (place == kept_.size()) return;
    count_ = std::min(count_ + 1, kept_.size());
    for (std::size_t i = count_ - 1; i > place; --i) kept_[i] = kept_[i - 1];
    kept_[place].expert = static_cast<std::int32_t>(expert);
  }

 private:
  const Choice& choice_;
  std::span<ChosenExpert> kept_;
  std::size_t count_ = 0;
};

struct GroupRank {
  float score = std::numeric_limits<float>::infinity();
  std::int64_t group = -1;
  bool is_before(const GroupRank& other) const {
    return score > other.score || (score == other.score && group < other.group);
  }
};

void choose(const model::Router& router, const Choice& choice, std::span<ChosenExpert> chosen) {
  const auto groups = static_cast<std::size_t>(router.groups), size = choice.scores.size() / groups;
  const auto rank_of = [&](std::size_t group) {
    return GroupRank{group_score(router, choice, group * size, (group + 1) * size),
                     static_cast<std::int64_t>(group)};
  };
  // The last group that is open: from the best one on, always the next.
  GroupRank last;
  for (int i = 0; groups > 1 && i < router.groups_per_token; ++i) {
    GroupRank next{kNever, std::numeric_limits<std::int64_t>::max()};
    for (std::size_t group = 0; group < groups; ++group)
      if (const GroupRank rank = rank_of(group); last.is_before(rank) && rank.is_before(next)) next = rank;
    last = next;
  }
  Best best(choice, chosen);
  for (std::size_t group = 0; group < groups; ++group) {
    if (groups > 1 && last.is_before(rank_of(group))) continue;
    for (std::size_t e = group * size; e < (group + 1) * size; ++e) best.show(e);
  }
}

}  // namespace

void choose_experts(const model::Router& router, std::span<float> logits, std::span<const float> score_bias,
                    std::span<ChosenExpert> chosen) {
  if (router.scores == model::Router::Scores::kSoftmax)
    kernels::softmax(logits.data(), std::ssize(logits));
  else
    for (float& value : logits) value = 1.0F / (1.0F + std::exp(-value));
  choose(router, {logits, score_bias}, chosen);
  float sum = 0;
  for (ChosenExpert& one : chosen) {
    one.weight = logits[static_cast<std::size_t>(one.expert)];
    sum += one.weight;
  }
  const float scale = static_cast<float>(router.scale) / (router.is_normalized ? sum + 1e-20F : 1.0F);
  for (ChosenExpert& one : chosen) one.weight *= scale;
}

}  // namespace plimsoll::engine
