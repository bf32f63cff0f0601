// SPDX-License-Identifier: Apache-2.0
#include "engine/pooler.h"

#include <algorithm>
#include <cmath>

namespace plimsoll::engine {

using model::PoolingKind;

Pooler::Rows Pooler::wanted(std::int64_t first, std::int64_t count) const {
  if (kind_ == PoolingKind::kFirst) return {first, first == 0 ? 1 : 0};
  if (kind_ == PoolingKind::kLast) return first + count == length_ ? Rows{length_ - 1, 1} : Rows{first, 0};
  return {first, count};
}

void Pooler::add(std::int64_t first, std::span<const float> states) {
  const auto hidden = static_cast<std::size_t>(hidden_);
  for (std::size_t at = 0; at < states.size(); at += hidden, ++first) {
    const auto state = states.subspan(at, hidden);
    if (first == 0 || kind_ == PoolingKind::kLast) {
      sums_.assign(state.begin(), state.end());  // what weighs by its place weighs 1 here
      continue;
    }
    const double weight = kind_ == PoolingKind::kWeightedMean ? static_cast<double>(first + 1) : 1.0;
    for (std::size_t i = 0; i < hidden; ++i) {
      const double value = static_cast<double>(state[i]);
      if (kind_ != PoolingKind::kMax)
        sums_[i] += weight * value;
      else if (value > sums_[i] || std::isnan(value))  // and a NaN stays: nothing is above it
        sums_[i] = value;
    }
  }
}

std::vector<float> Pooler::embedding(const EmbeddingParams& params) const {
  double divisor = 1;
  const auto length = static_cast<double>(length_);
  if (kind_ == PoolingKind::kMean) divisor = length;
  if (kind_ == PoolingKind::kMeanOfRoot) divisor = std::sqrt(length);
  if (kind_ == PoolingKind::kWeightedMean) divisor = length * (length + 1) / 2;
  const std::int64_t count = params.dimensions > 0 ? std::min(params.dimensions, hidden_) : hidden_;
  std::vector<float> embedding(sums_.begin(), sums_.begin() + count);
  double squares = 0;
  for (std::size_t i = 0; i < embedding.size(); ++i) {
    embedding[i] = static_cast<float>(sums_[i] / divisor);
    squares += static_cast<double>(embedding[i]) * embedding[i];
  }
  constexpr double kLeastLength = 1e-12;  // torch's normalize
  if (params.is_normalized)
    for (float& value : embedding)
      value = static_cast<float>(value / std::max(std::sqrt(squares), kLeastLength));
  return embedding;
}

}  // namespace plimsoll::engine
