// SPDX-License-Identifier: Apache-2.0
// How well does a distribution predict a token, and how far is it from another one? Sums over positions;
// plain numbers, double precision. Source: docs/formulas/eval.md, sections 2 and 3.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace plimsoll::serve {

/// What one row of logits says. All NaN-free rows; a row that holds NaN gives NaN.
struct RowScore {
  double nll = 0;  // -ln p(target), nats
  // Against the reference row; 0 without.
  double reference_nll = 0;
  double kl = 0;               // sum p_ref (ln p_ref - ln p), nats
  double abs_delta_logit = 0;  // mean over the vocabulary
  bool is_same_top = true;     // the likeliest token is the same one
};

/// logits, reference: [vocab]; reference may be empty. 0 <= target < vocab.
RowScore score_row(std::span<const float> logits, std::span<const float> reference, std::int32_t target);

/// A mean and its standard error (0 for fewer than 2 values).
struct Estimate {
  double mean = 0;
  double error = 0;
};

/// Of a variant against the reference.
struct Divergence {
  Estimate kl;  // nats
  double kl_median = 0, kl_p90 = 0, kl_p95 = 0, kl_p99 = 0, kl_p999 = 0, kl_max = 0;
  double same_top = 0;                       // share of positions
  double mean_abs_delta_logit = 0;           // over all positions and logits
  double mean_delta_p = 0, rms_delta_p = 0;  // of p(target), variant less reference
  double perplexity_ratio = 0;               // variant over reference
};

class Scores {
 public:
  void add(const RowScore& score);

  std::int64_t count() const { return static_cast<std::int64_t>(rows_.size()); }
  /// False when some row gave no finite figure.
  bool is_finite() const;
  /// -ln p(target); count() > 0. exp of the mean is the perplexity, times `error` its standard error.
  Estimate nll() const;
  /// count() > 0, and every row was scored against a reference.
  Divergence divergence() const;

 private:
  std::vector<RowScore> rows_;
};

/// The value below which `share` of the ascending `values` lie, linear between neighbours. Not empty.
double quantile(std::span<const double> values, double share);

}  // namespace plimsoll::serve
