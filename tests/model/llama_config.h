// SPDX-License-Identifier: Apache-2.0
// The config of Llama 3.1 8B, with what a test changes in it.
#pragma once

#include <initializer_list>

#include "base/json.h"

namespace plimsoll::model {

inline Json llama_config(std::initializer_list<Json::Member> changes = {}) {
  Json config = *parse_json(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,
    "intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,
    "vocab_size":128256,"max_position_embeddings":131072,"rms_norm_eps":1e-5,"rope_theta":500000.0,
    "rope_scaling":{"factor":8.0,"low_freq_factor":1.0,"high_freq_factor":4.0,
    "original_max_position_embeddings":8192,"rope_type":"llama3"},"tie_word_embeddings":false,
    "torch_dtype":"bfloat16"})",
                            "test");
  for (const auto& [key, value] : changes) config.set(key, value);
  return config;
}

}  // namespace plimsoll::model
