// SPDX-License-Identifier: Apache-2.0
// Which token, out of these logits? Penalties, bias, temperature, the cuts and the draw, in vLLM's order;
// logprobs are those of the raw logits. Holds one sequence's counts and random state; not shared between
// threads.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/engine.h"

namespace plimsoll::engine {

class Sampler {
 public:
  /// `prompt`: counts for the repetition penalty.
  Sampler(const SamplingParams& params, std::span<const TokenId> prompt);

  /// Chooses the next token. logits: [vocab], raw. `generated`: how many tokens came before (for min_tokens).
  /// Returns nothing when no logit is a finite number.
  std::optional<TokenId> choose(std::span<const float> logits, std::int64_t generated);

 private:
  void penalize(std::vector<float>& logits) const;
  TokenId draw(float best);
  double keep_nucleus(double target);
  double uniform();

  SamplingParams params_;
  std::unordered_map<TokenId, int> output_counts_;
  std::vector<TokenId> prompt_tokens_;  // sorted, each once; kept only when a penalty reads it
  std::uint64_t random_state_;
  std::vector<float> adjusted_;                  // [vocab]
  std::vector<std::pair<float, TokenId>> kept_;  // candidates of a draw: scaled logit, then weight
};

/// log softmax of the raw logits at `token`, and of the `top` most likely ones (ties: the lower id first).
TokenLogprob token_logprob(std::span<const float> logits, TokenId token, int top);

}  // namespace plimsoll::engine
