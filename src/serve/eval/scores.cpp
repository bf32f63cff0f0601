// SPDX-License-Identifier: Apache-2.0
#include "serve/eval/scores.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::serve {
namespace {

/// What the softmax of a row needs.
struct Row {
  std::size_t top = 0;  // of equal ones the first
  double largest = 0;
  double log_sum = 0;  // ln sum exp(logit)
};

Row read_row(std::span<const float> logits) {
  Row row;
  for (std::size_t i = 1; i < logits.size(); ++i)
    if (logits[i] > logits[row.top]) row.top = i;
  row.largest = logits[row.top];
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - row.largest);
  row.log_sum = row.largest + std::log(sum);
  return row;
}

Estimate estimate(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  Estimate result;
  for (const double value : values) result.mean += value / count;
  if (values.size() < 2) return result;
  double squares = 0;
  for (const double value : values) squares += (value - result.mean) * (value - result.mean);
  result.error = std::sqrt(squares / count / (count - 1));
  return result;
}

}  // namespace

RowScore score_row(std::span<const float> logits, std::span<const float> reference, std::int32_t target) {
  const auto at = static_cast<std::size_t>(target);
  const Row row = read_row(logits);
  RowScore score{.nll = row.log_sum - logits[at]};
  if (reference.empty()) return score;
  const Row base = read_row(reference);
  score.reference_nll = base.log_sum - reference[at];
  score.is_same_top = row.top == base.top;
  double weighted = 0, weights = 0, differences = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    const double weight = std::exp(static_cast<double>(reference[i]) - base.largest);
    weights += weight;
    if (logits[i] == reference[i]) continue;  // two that are -infinity have no difference
    const double difference = static_cast<double>(reference[i]) - static_cast<double>(logits[i]);
    if (weight > 0) weighted += weight * difference;
    differences += std::fabs(difference);
  }
  // Rounding alone can take it below zero.
  score.kl = std::max(weighted / weights - base.log_sum + row.log_sum, 0.0);
  score.abs_delta_logit = differences / static_cast<double>(logits.size());
  return score;
}

void Scores::add(const RowScore& score) {
  rows_.push_back(score);
}

bool Scores::is_finite() const {
  return std::ranges::all_of(rows_, [](const RowScore& row) {
    return std::isfinite(row.nll) && std::isfinite(row.reference_nll) && std::isfinite(row.kl) &&
           std::isfinite(row.abs_delta_logit);
  });
}

Estimate Scores::nll() const {
  std::vector<double> values;
  for (const RowScore& row : rows_) values.push_back(row.nll);
  return estimate(values);
}

Divergence Scores::divergence() const {
  std::vector<double> kl;
  Divergence result;
  const auto count = static_cast<double>(rows_.size());
  double log_ratio = 0, squares = 0;
  std::int64_t num_same = 0;
  for (const RowScore& row : rows_) {
    kl.push_back(row.kl);
    const double delta = std::exp(-row.nll) - std::exp(-row.reference_nll);
    result.mean_delta_p += delta / count;
    squares += delta * delta / count;
    log_ratio += (row.nll - row.reference_nll) / count;
    num_same += row.is_same_top ? 1 : 0;
    result.mean_abs_delta_logit += row.abs_delta_logit / count;
  }
  result.kl = estimate(kl);
  result.same_top = static_cast<double>(num_same) / count;
  result.rms_delta_p = std::sqrt(squares);
  result.perplexity_ratio = std::exp(log_ratio);
  std::ranges::sort(kl);
  result.kl_median = quantile(kl, 0.5);
  result.kl_p90 = quantile(kl, 0.9);
  result.kl_p95 = quantile(kl, 0.95);
  result.kl_p99 = quantile(kl, 0.99);
  result.kl_p999 = quantile(kl, 0.999);
  result.kl_max = kl.back();
  return result;
}

double quantile(std::span<const double> values, double share) {
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<std::size_t>(place);
  const std::size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], place - static_cast<double>(below));
}

}  // namespace plimsoll::serve
