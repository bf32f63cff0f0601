// SPDX-License-Identifier: Apache-2.0
// What the decoders of GPT-2's age share: mean-and-variance norms, feed-forwards without gate, biases. Pure.
#pragma once

#include <optional>

#include "model/families/decoder.h"

namespace plimsoll::model {

/// Reads the figures; where the config states no width of the feed-forward it is four times the model's.
/// `inner`: what the class assumes of intermediate_size; 0: four times the width.
ModelSpec read_gpt(KeyReader& keys, DecoderDefaults defaults, int inner = 0);

void set_biases(ModelSpec& spec, bool has_qkv_bias, bool has_output_bias);

/// Positions that are told otherwise than by rotation: learned ones, ALiBi.
void replace_rope(ModelSpec& spec, std::optional<Trait> positions = {});

}  // namespace plimsoll::model
