// SPDX-License-Identifier: Apache-2.0
#include "tests/memory/worked_case.h"

#include <cmath>
#include <cstdio>

namespace plimsoll::testing {

model::ModelSpec llama(const LlamaShape& shape) {
  model::ModelSpec spec;
  spec.architecture = "LlamaForCausalLM";
  spec.model_type = "llama";
  spec.hidden_size = shape.hidden;
  spec.vocab_size = shape.vocab;
  spec.native_context_tokens = spec.extended_context_tokens = shape.context;
  spec.declared_dtype = DType::kBF16;
  spec.rope.rotary_dim = shape.head_dim;
  model::Attention attention;
  attention.q_heads = shape.q_heads;
  attention.kv_heads = shape.kv_heads;
  attention.head_dim = shape.head_dim;
  attention.scale = 1.0 / std::sqrt(shape.head_dim);
  model::Layer layer;
  layer.mixer = attention;
  layer.ffn.intermediate_size = shape.intermediate;
  spec.layers.assign(static_cast<std::size_t>(shape.layers), layer);
  return spec;
}

std::string gb_text(double bytes, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, bytes / 1e9);
  return text;
}

}  // namespace plimsoll::testing
