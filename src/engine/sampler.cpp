// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace plimsoll::engine {
namespace {

constexpr float kForbidden = -std::numeric_limits<float>::infinity();

bool more_likely(const std::pair<float, TokenId>& a, const std::pair<float, TokenId>& b) {
  return a.first != b.first ? a.first > b.first : a.second < b.second;
}

// The first of the largest values; nothing when none is a number above -infinity.
std::optional<TokenId> arg_max(std::span<const float> logits) {
  std::optional<TokenId> best;
  float best_value = kForbidden;
  for (std::size_t i = 0; i < logits.size(); ++i)
    if (logits[i] > best_value) {
      best_value = logits[i];
      best = static_cast<TokenId>(i);
    }
  return best;
}

}  // namespace

Sampler::Sampler(const SamplingParams& params, std::span<const TokenId> prompt)
    : params_(params),
      random_state_(params.seed ? *params.seed
                                : (std::uint64_t{std::random_device{}()} << 32 | std::random_device{}())) {
  if (params_.repetition_penalty != 1.0) {
    prompt_tokens_.assign(prompt.begin(), prompt.end());
    std::sort(prompt_tokens_.begin(), prompt_tokens_.end());
    prompt_tokens_.erase(std::unique(prompt_tokens_.begin(), prompt_tokens_.end()), prompt_tokens_.end());
  }
}

// splitmix64: one addition and a mix per draw, the same sequence on every machine.
double Sampler::uniform() {
  random_state_ += 0x9E3779B97F4A7C15ULL;
  std::uint64_t z = random_state_;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
  z ^= z >> 31;
  return static_cast<double>(z >> 11) * 0x1.0p-53;
}

void Sampler::penalize(std::vector<float>& logits) const {
  // In double, and held to float's range: an extreme penalty must not make an infinity.
  const auto kept_finite = [](double value) {
    constexpr double kLargest = std::numeric_limits<float>::max();
    return static_cast<float>(std::clamp(value, -kLargest, kLargest));
  };
  const auto repeat = [&](TokenId token) {
    float& logit = logits[static_cast<std::size_t>(token)];
    const double value = logit;
    logit = kept_finite(value > 0 ? value / params_.repetition_penalty : value * params_.repetition_penalty);
  };
  if (params_.repetition_penalty != 1.0) {
    for (const TokenId token : prompt_tokens_) repeat(token);
    for (const auto& [token, count] : output_counts_)
      if (!std::binary_search(prompt_tokens_.begin(), prompt_tokens_.end(), token)) repeat(token);
  }
  for (const auto& [token, count] : output_counts_) {
    float& logit = logits[static_cast<std::size_t>(token)];
    logit = kept_finite(logit - (params_.frequency_penalty * count + params_.presence_penalty));
  }
}

// Draws from the adjusted logits after temperature, min_p, top_k and top_p. best: the largest of them.
TokenId Sampler::draw(float best) {
  kept_.clear();
  const auto inverse_temperature = static_cast<float>(1.0 / params_.temperature);
  const double least =
      params_.min_p > 0 ? std::min(0.0, std::log(params_.min_p)) : -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < adjusted_.size(); ++i) {
    const float scaled = (adjusted_[i] - best) * inverse_temperature;
    if (scaled >= least && scaled > kForbidden) kept_.emplace_back(scaled, static_cast<TokenId>(i));
  }
  if (params_.top_k > 0 && static_cast<std::size_t>(params_.top_k) < kept_.size()) {
    std::nth_element(kept_.begin(), kept_.begin() + params_.top_k, kept_.end(), more_likely);
    kept_.resize(static_cast<std::size_t>(params_.top_k));
  }
  double sum = 0;
  for (auto& [value, token] : kept_) sum += value = std::exp(value);
  if (params_.top_p < 1.0) sum = keep_nucleus(params_.top_p * sum);
  double rest = uniform() * sum;
  for (const auto& [weight, token] : kept_) {
    rest -= weight;
    if (rest < 0) return token;
  }
  return kept_.back().second;
}

// Keeps the most likely candidates until their weights reach `target`; returns what they sum to. The nucleus
// is usually small, so the front is sorted piece by piece instead of the whole vocabulary.
double Sampler::keep_nucleus(double target) {
  double seen = 0;
  std::size_t kept = 0, sorted = 0;
  while (kept < kept_.size() && (kept == 0 || seen < target)) {
    if (kept == sorted) {
      const auto next = std::min(kept_.size(), sorted == 0 ? std::size_t{64} : sorted * 4);
      std::partial_sort(kept_.begin() + static_cast<std::ptrdiff_t>(sorted),
                        kept_.begin() + static_cast<std::ptrdiff_t>(next), kept_.end(), more_likely);
      sorted = next;
    }
    seen += kept_[kept++].first;
  }
  kept_.resize(kept);
  return seen;
}

std::optional<TokenId> Sampler::choose(std::span<const float> logits, std::int64_t generated) {
  adjusted_.assign(logits.begin(), logits.end());
  penalize(adjusted_);
  for (const auto& [token, bias] : params_.logit_bias)
    if (token >= 0 && static_cast<std::size_t>(token) < adjusted_.size())
      adjusted_[static_cast<std::size_t>(token)] += static_cast<float>(bias);
  if (generated < params_.min_tokens)
    for (const TokenId token : params_.stop_token_ids)
      if (token >= 0 && static_cast<std::size_t>(token) < adjusted_.size())
        adjusted_[static_cast<std::size_t>(token)] = kForbidden;

  const auto best = arg_max(adjusted_);
  if (!best || !std::isfinite(adjusted_[static_cast<std::size_t>(*best)])) return std::nullopt;
  TokenId chosen = *best;
  // Below this the softmax is one-hot in float anyway, and the division would overflow (vLLM's own threshold
  // is 1e-5).
  if (params_.temperature >= 1e-5) chosen = draw(adjusted_[static_cast<std::size_t>(*best)]);
  ++output_counts_[chosen];
  return chosen;
}

TokenLogprob token_logprob(std::span<const float> logits, TokenId token, int top) {
  double largest = -std::numeric_limits<double>::infinity();
  for (const float logit : logits) largest = std::max(largest, static_cast<double>(logit));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - largest);
  const double log_sum = largest + std::log(sum);
  TokenLogprob result;
  result.token = token;
  result.logprob = static_cast<double>(logits[static_cast<std::size_t>(token)]) - log_sum;
  if (top <= 0) return result;
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto count = std::min<std::size_t>(static_cast<std::size_t>(top), ids.size());
  std::partial_sort(
      ids.begin(), ids.begin() + static_cast<std::ptrdiff_t>(count), ids.end(), [&](TokenId a, TokenId b) {
        const float x = logits[static_cast<std::size_t>(a)], y = logits[static_cast<std::size_t>(b)];
        return x != y ? x > y : a < b;
      });
  for (std::size_t i = 0; i < count; ++i)
    result.top.emplace_back(ids[i], static_cast<double>(logits[static_cast<std::size_t>(ids[i])]) - log_sum);
  return result;
}

}  // namespace plimsoll::engine
