// SPDX-License-Identifier: Apache-2.0
#include "engine/drawer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include "kernels/kernels.h"

namespace plimsoll::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr double kLeastTemperature = 0.01;  // vLLM raises what is between 0 and this (_MAX_TEMP)
constexpr std::size_t kBlock = 512;         // weights per partial sum
constexpr int kBuckets = 1024;
constexpr std::size_t kFewEnoughToSort = 64;
constexpr std::size_t kScanBlock = 2048;  // logits; 8 KB
constexpr std::size_t kGlance = 64;       // logits that one glance may rule out

float largest(std::span<const float> logits) {
  return kernels::select().largest(logits.data(), std::ssize(logits));
}

}  // namespace

Likeliest likeliest(std::span<const float> logits) {
  // Blocks stay in the first cache: only the one in which the best logit first shows is looked at again.
  float best = -kInfinity;
  std::span<const float> where = logits;
  for (std::size_t begin = 0; begin < logits.size(); begin += kScanBlock) {
    const auto block = logits.subspan(begin, std::min(kScanBlock, logits.size() - begin));
    const float block_best = largest(block);
    if (!(block_best > best)) continue;
    best = block_best;
    where = block;
  }
  const auto found = std::ranges::find(where, best);
  const auto index = found == where.end() ? 0 : std::to_address(found) - logits.data();
  return {best, static_cast<TokenId>(index)};
}

bool Drawer::comes_before(const Candidate& a, const Candidate& b) {
  return a.order != b.order ? a.order < b.order : a.token < b.token;
}

// Weighs all logits, the best with 1 and what min_p forbids with 0, block by block; returns their sum.
double Drawer::weigh_all() {
  const auto exp_scaled = kernels::select().exp_scaled;
  weights_.resize(logits_.size());
  block_sums_.clear();
  double total = 0;
  for (std::size_t begin = 0; begin < weights_.size(); begin += kBlock) {
    const std::size_t end = std::min(begin + kBlock, weights_.size());
    for (std::size_t i = begin; i < end; ++i) {
      const float order = order_of(logits_[i]);
      weights_[i] = order <= greatest_order_ ? -order : -kInfinity;  // neither NaN nor infinity passes
    }
    float* const block = weights_.data() + begin;
    exp_scaled(1.0F, block, static_cast<std::int64_t>(end - begin), block);
    double sums[4] = {};
    for (std::size_t i = begin; i < end; ++i) sums[i % 4] += static_cast<double>(weights_[i]);
    block_sums_.push_back(sums[0] + sums[1] + (sums[2] + sums[3]));
    total += block_sums_.back();
  }
  return total;
}

// The token at which the weights, summed by id, exceed `target`.
TokenId Drawer::pick_of_all(double target) const {
  double rest = target;
  std::size_t block = 0;
  while (block + 1 < block_sums_.size() && rest >= block_sums_[block]) rest -= block_sums_[block++];
  const std::size_t end = std::min((block + 1) * kBlock, weights_.size());
  for (std::size_t i = block * kBlock; i < end; ++i) {
    rest -= static_cast<double>(weights_[i]);
    if (rest < 0) return static_cast<TokenId>(i);
  }
  // Rounding left more than there was.
  return best_.token;
}

// One pass that remembers the best so far; the bar rises each time the list is full.
void Drawer::collect_top_k(std::size_t k) {
  const std::size_t full = 2 * k + 64;
  if (candidates_.size() < full) candidates_.resize(full);
  num_candidates_ = 0;
  float bar = kInfinity;
  const auto keep_best = [&] {
    if (num_candidates_ <= k) return;
    const auto begin = candidates_.begin(), last = begin + static_cast<std::ptrdiff_t>(k - 1);
    std::nth_element(begin, last, begin + static_cast<std::ptrdiff_t>(num_candidates_), comes_before);
    bar = last->order;
    num_candidates_ = k;
  };
  for (std::size_t begin = 0; begin < logits_.size(); begin += kGlance) {
    const auto block = logits_.subspan(begin, std::min(kGlance, logits_.size() - begin));
    // Most blocks hold nobody who passes, once the bar has risen.
    if (!(order_of(largest(block)) < bar)) continue;
    for (std::size_t i = begin; i < begin + block.size(); ++i) {
      const float order = order_of(logits_[i]);
      // Ids rise: who only equals the bar comes behind those who set it. NaN is below no bar.
      if (!(order < bar) || order > greatest_order_) continue;
      candidates_[num_candidates_++] = {order, std::exp(-order), static_cast<TokenId>(i)};
      if (num_candidates_ == full) keep_best();
    }
  }
  keep_best();
  total_ = candidates_weight();
}

// All that may survive the cut at top_p. Tokens below a share (1 - top_p) / n weigh less than 1 - top_p
// together, so none of them can be among the likeliest that reach top_p; the largest is never below.
void Drawer::collect_likely(double top_p) {
  total_ = weigh_all();
  const double share = std::max(0.0, 1.0 - top_p) / static_cast<double>(weights_.size());
  const auto least = static_cast<float>(0.999 * share * total_);  // on the safe side of all rounding
  if (candidates_.size() <= weights_.size()) candidates_.resize(weights_.size() + 1);
  num_candidates_ = 0;
  for (std::size_t begin = 0; begin < weights_.size(); begin += kGlance) {
    const std::size_t end = std::min(begin + kGlance, weights_.size());
    if (!(largest(std::span(weights_).subspan(begin, end - begin)) > least)) continue;
    for (std::size_t i = begin; i < end; ++i) {
      // Written always and counted when it stays: no branch to guess wrong.
      candidates_[num_candidates_] = {order_of(logits_[i]), weights_[i], static_cast<TokenId>(i)};
      num_candidates_ += weights_[i] > least ? 1 : 0;
    }
  }
}

// Typical sampling: nearest first to the entropy. With order = -ln p - c, the entropy is c + the mean order.
void Drawer::order_by_surprise() {
  double mean = 0;
  for (std::size_t i = 0; i < num_candidates_; ++i)
    mean += static_cast<double>(candidates_[i].weight) * static_cast<double>(candidates_[i].order);
  total_ = candidates_weight();
  mean /= total_;
  for (std::size_t i = 0; i < num_candidates_; ++i)
    candidates_[i].order = static_cast<float>(std::abs(static_cast<double>(candidates_[i].order) - mean));
}

// Sorts the edge into buckets of order and keeps only the one in which `missing` is reached; what lies before
// it goes to the candidates. False when all of the edge has one order.
bool Drawer::narrow_edge(double& missing) {
  float least = kInfinity, most = 0;
  for (std::size_t i = 0; i < num_edge_; ++i) {
    least = std::min(least, edge_[i].order);
    most = std::max(most, edge_[i].order);
  }
  if (least == most) return false;
  const float scale = static_cast<float>(kBuckets - 1) / (most - least);
  const auto bucket_of = [&](float order) {
    return std::min(static_cast<int>((order - least) * scale), kBuckets - 1);
  };
  bucket_sums_.assign(static_cast<std::size_t>(kBuckets), 0.0);
  double* const sums = bucket_sums_.data();
  for (std::size_t i = 0; i < num_edge_; ++i)
    sums[bucket_of(edge_[i].order)] += static_cast<double>(edge_[i].weight);
  const int last = bucket_of(most);
  int border = 0;
  while (border < last && sums[border] < missing) missing -= sums[border++];
  std::size_t inside = 0;
  for (std::size_t i = 0; i < num_edge_; ++i) {
    const Candidate candidate = edge_[i];
    const int bucket = bucket_of(candidate.order);
    candidates_[num_candidates_] = candidate;
    num_candidates_ += bucket < border ? 1 : 0;
    edge_[inside] = candidate;
    inside += bucket == border ? 1 : 0;
  }
  num_edge_ = inside;
  return true;
}

// Keeps the first candidates, by order and then id, that reach this share of the total together. Only the few
// among which the border lies are sorted.
void Drawer::keep_mass(double share) {
  double missing = share * total_;
  std::swap(edge_, candidates_);
  num_edge_ = std::exchange(num_candidates_, 0);
  if (candidates_.size() <= num_edge_) candidates_.resize(edge_.size() + 1);
  while (num_edge_ > kFewEnoughToSort && narrow_edge(missing)) continue;
  const auto begin = edge_.begin(), end = begin + static_cast<std::ptrdiff_t>(num_edge_);
  if (!std::is_sorted(begin, end, comes_before)) std::sort(begin, end, comes_before);  // equals often are
  for (std::size_t i = 0; i < num_edge_ && (missing > 0 || num_candidates_ == 0); ++i) {
    candidates_[num_candidates_++] = edge_[i];
    missing -= static_cast<double>(edge_[i].weight);
  }
}

double Drawer::candidates_weight() const {
  double sums[4] = {};
  for (std::size_t i = 0; i < num_candidates_; ++i) sums[i % 4] += static_cast<double>(candidates_[i].weight);
  return sums[0] + sums[1] + (sums[2] + sums[3]);
}

TokenId Drawer::pick_of_candidates(double uniform) const {
  double rest = uniform * candidates_weight();
  for (std::size_t i = 0; i < num_candidates_; ++i) {
    rest -= static_cast<double>(candidates_[i].weight);
    if (rest < 0) return candidates_[i].token;
  }
  return candidates_[num_candidates_ - 1].token;  // rounding left more than there was
}

TokenId Drawer::draw(const SamplingParams& params, std::span<const float> logits, const Likeliest& best,
                     double uniform) {
  logits_ = logits;
  best_ = best;
  inverse_temperature_ = static_cast<float>(1.0 / std::max(params.temperature, kLeastTemperature));
  greatest_order_ = params.min_p > 0 ? static_cast<float>(std::max(0.0, -std::log(params.min_p)))
                                     : std::numeric_limits<float>::max();
  const bool cuts_rank = params.top_k > 0 && static_cast<std::size_t>(params.top_k) < logits.size();
  const bool cuts_mass = params.top_p < 1.0, cuts_untypical = params.typical_p < 1.0;
  if (!cuts_rank && !cuts_mass && !cuts_untypical) return pick_of_all(uniform * weigh_all());
  if (cuts_rank)
    collect_top_k(static_cast<std::size_t>(params.top_k));
  else
    collect_likely(params.top_p);
  if (cuts_mass) keep_mass(params.top_p);
  if (cuts_untypical) {
    order_by_surprise();
    keep_mass(params.typical_p);
  }
  return pick_of_candidates(uniform);
}

}  // namespace plimsoll::engine
