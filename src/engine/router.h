// SPDX-License-Identifier: Apache-2.0
// Which experts compute a token, and what do they weigh? Pure functions over the router's logits of one row.
#pragma once

#include <cstdint>
#include <span>

#include "model/model.h"

namespace plimsoll::engine {

struct ChosenExpert {
  std::int32_t expert = 0;
  float weight = 0;
};

/// logits: [experts], overwritten by the scores. score_bias: [experts] or empty, corrects the scores for the
/// choice alone. chosen: [experts per token], best first; of equal ones the lower expert. The
/// open groups hold as many experts as are chosen.
/// Source: transformers' routers of Mixtral, Qwen 2 and 3 MoE, DeepSeek V2 and V3, GLM 4 MoE, MiniMax M2.
void choose_experts(const model::Router& router, std::span<float> logits, std::span<const float> score_bias,
                    std::span<ChosenExpert> chosen);

}  // namespace plimsoll::engine
