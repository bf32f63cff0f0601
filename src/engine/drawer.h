// SPDX-License-Identifier: Apache-2.0
// Which token does a uniform number pick, once temperature and cuts are through with the logits? Owns the
// buffers of one draw, so that all sequences of a thread share one; nothing of a draw stays for the next.
// Once they have grown to the vocabulary, a draw allocates nothing. Formulas: docs/formulas/sampling.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace plimsoll::engine {

struct Likeliest {
  float logit;
  TokenId token;
};

/// The largest logit and the lowest id that has it, in one pass; NaN is no candidate. The logit is -infinity
/// when none is a number above it. logits: [n], n > 0.
Likeliest likeliest(std::span<const float> logits);

class Drawer {
 public:
  /// The token that `uniform`, from [0, 1), falls on. logits: [vocab], after bias and penalties; those that
  /// are no finite number are never drawn. `best`: likeliest(logits), which has to be finite.
  /// params.temperature must be above 0.
  TokenId draw(const SamplingParams& params, std::span<const float> logits, const Likeliest& best,
               double uniform);

 private:
  struct Candidate {
    float order;   // the least comes first: how far below the best logit, in units of the temperature
    float weight;  // proportional to its probability
    TokenId token;
  };
  static bool comes_before(const Candidate& a, const Candidate& b);
  float order_of(float logit) const { return (best_.logit - logit) * inverse_temperature_; }

  double weigh_all();
  TokenId pick_of_all(double target) const;
  void collect_top_k(std::size_t k);
  void collect_likely(double top_p);
  void order_by_surprise();
  void keep_mass(double share);
  bool narrow_edge(double& missing);
  TokenId pick_of_candidates(double uniform) const;
  double candidates_weight() const;

  std::span<const float> logits_;  // of this draw
  float inverse_temperature_ = 1;
  float greatest_order_ = 0;  // min_p forbids what lies beyond
  Likeliest best_ = {};
  double total_ = 0;  // what the candidates weighed together before the cut to come

  std::vector<float> weights_;      // [vocab]
  std::vector<double> block_sums_;  // of the weights, a few hundred at a time
  // Grown and never shrunk: the counts say how many are in use.
  std::vector<Candidate> candidates_, edge_;
  std::size_t num_candidates_ = 0, num_edge_ = 0;
  std::vector<double> bucket_sums_;
};

}  // namespace plimsoll::engine
