// SPDX-License-Identifier: Apache-2.0
// Which token, out of these logits? Bias, penalties and the held back ends, then the draw, in vLLM's order
// (docs/formulas/sampling.md); logprobs are those of the raw logits. Holds one sequence's counts and random
// state; not shared between threads.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/drawer.h"
#include "engine/engine.h"

namespace plimsoll::engine {

/// What choosing a token needs room for; one for all sequences of a thread.
struct SamplerBuffers {
  std::vector<float> adjusted;  // [vocab]
  Drawer drawer;
};

class Sampler {
 public:
  /// `prompt`: counts for the repetition penalty.
  Sampler(const SamplingParams& params, std::span<const TokenId> prompt);

  /// Chooses the next token. logits: [vocab], raw. `generated`: how many tokens came before (for min_tokens).
  /// Returns nothing when no logit is a finite number.
  std::optional<TokenId> choose(std::span<const float> logits, std::int64_t generated,
                                SamplerBuffers& buffers);

 private:
  struct Seen {
    TokenId token;
    std::int32_t in_output;  // how often; 0: in the prompt only
  };

  void penalize(std::span<float> logits) const;
  std::span<const float> adjust(std::span<const float> logits, std::int64_t generated,
                                std::vector<float>& adjusted) const;
  void count(TokenId token);
  double uniform();

  SamplingParams params_;
  bool penalizes_;
  std::uint64_t random_state_;
  std::vector<Seen> seen_;  // by token; kept only when a penalty reads it
};

/// log softmax of the raw logits at `token`, its rank, and the `top` most likely ones (ties: the lower id
/// first). Sums in double precision.
TokenLogprob token_logprob(std::span<const float> logits, TokenId token, int top);

}  // namespace plimsoll::engine
