// SPDX-License-Identifier: Apache-2.0
#include "engine/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>

namespace plimsoll::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr std::int64_t kReservedTokens = 1 << 12;  // counts beyond these let their list grow

// A bias or penalty in double, held to float's range: an extreme one must not make an infinity.
float kept_finite(double value) {
  constexpr double kLargest = std::numeric_limits<float>::max();
  return static_cast<float>(std::clamp(value, -kLargest, kLargest));
}

}  // namespace

Sampler::Sampler(const SamplingParams& params, std::span<const TokenId> prompt)
    : params_(params),
      penalizes_(params.repetition_penalty != 1.0 || params.presence_penalty != 0.0 ||
                 params.frequency_penalty != 0.0),
      random_state_(params.seed ? *params.seed
                                : (std::uint64_t{std::random_device{}()} << 32 | std::random_device{}())) {
  if (params_.repetition_penalty != 1.0) {
    seen_.reserve(prompt.size());
    for (const TokenId token : prompt) seen_.push_back({token, 0});
    const auto by_token = [](const Seen& a, const Seen& b) { return a.token < b.token; };
    const auto is_same = [](const Seen& a, const Seen& b) { return a.token == b.token; };
    std::sort(seen_.begin(), seen_.end(), by_token);
    seen_.erase(std::unique(seen_.begin(), seen_.end(), is_same), seen_.end());
  }
  if (penalizes_)
    seen_.reserve(seen_.size() + static_cast<std::size_t>(std::min(params_.max_tokens, kReservedTokens)));
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

void Sampler::count(TokenId token) {
  if (!penalizes_) return;
  const auto place = std::lower_bound(seen_.begin(), seen_.end(), token,
                                      [](const Seen& seen, TokenId id) { return seen.token < id; });
  if (place != seen_.end() && place->token == token)
    ++place->in_output;
  else
    seen_.insert(place, {token, 1});
}

void Sampler::penalize(std::span<float> logits) const {
  for (const Seen& seen : seen_) {
    float& logit = logits[static_cast<std::size_t>(seen.token)];
    if (!std::isfinite(logit)) continue;
    double value = logit;
    value = value > 0 ? value / params_.repetition_penalty : value * params_.repetition_penalty;
    value -= params_.frequency_penalty * seen.in_output;
    if (seen.in_output > 0) value -= params_.presence_penalty;
    logit = kept_finite(value);
  }
}

// The logits after bias, penalties and min_tokens; the given ones when nothing changes them.
std::span<const float> Sampler::adjust(std::span<const float> logits, std::int64_t generated,
                                       std::vector<float>& adjusted) const {
  const bool holds_stops = generated < params_.min_tokens;
  if (seen_.empty() && params_.logit_bias.empty() && !holds_stops) return logits;
  adjusted.assign(logits.begin(), logits.end());
  const auto is_inside = [&](TokenId token) {
    return token >= 0 && static_cast<std::size_t>(token) < adjusted.size();
  };
  for (const auto& [token, bias] : params_.logit_bias)
    if (is_inside(token)) adjusted[static_cast<std::size_t>(token)] += static_cast<float>(bias);
  penalize(adjusted);
  if (holds_stops)
    for (const auto* ids : {&params_.stop_token_ids, &params_.ignored_stop_ids})
      for (const TokenId token : *ids)
        if (is_inside(token)) adjusted[static_cast<std::size_t>(token)] = -kInfinity;
  return adjusted;
}

std::optional<TokenId> Sampler::choose(std::span<const float> raw, std::int64_t generated,
                                       SamplerBuffers& buffers) {
  const auto logits = adjust(raw, generated, buffers.adjusted);
  const Likeliest best = likeliest(logits);
  if (!std::isfinite(best.logit)) return std::nullopt;
  const TokenId chosen =
      params_.temperature > 0 ? buffers.drawer.draw(params_, logits, best, uniform()) : best.token;
  count(chosen);
  return chosen;
}

TokenLogprob token_logprob(std::span<const float> logits, TokenId token, int top) {
  const float own = logits[static_cast<std::size_t>(token)], best = likeliest(logits).logit;
  double sum = 0;
  TokenLogprob result;
  const auto count = std::min(static_cast<std::size_t>(std::max(top, 0)), logits.size());
  std::vector<std::pair<float, TokenId>> likely;  // best first
  likely.reserve(count + 1);
  const auto comes_before = [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  };
  for (std::size_t i = 0; i < logits.size(); ++i) {
    sum += std::exp(static_cast<double>(logits[i]) - static_cast<double>(best));
    result.rank += logits[i] >= own ? 1 : 0;
    if (count == 0 || std::isnan(logits[i])) continue;
    if (likely.size() == count && !(logits[i] > likely.back().first)) continue;
    const std::pair<float, TokenId> item(logits[i], static_cast<TokenId>(i));
    if (likely.size() == count) likely.pop_back();
    likely.insert(std::upper_bound(likely.begin(), likely.end(), item, comes_before), item);
  }
  const double log_sum = static_cast<double>(best) + std::log(sum);
  result.token = token;
  result.logprob = static_cast<double>(own) - log_sum;
  for (const auto& [logit, id] : likely) result.top.emplace_back(id, static_cast<double>(logit) - log_sum);
  return result;
}

}  // namespace plimsoll::engine
