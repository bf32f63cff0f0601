// SPDX-License-Identifier: Apache-2.0
// The spellings of one figure in published configs. The first column is the one this house asks by.
#include <algorithm>
#include <array>

#include "model/key_reader.h"

namespace plimsoll::model {
namespace {

struct Spelling {
  std::string_view key;
  std::array<std::string_view, 6> others;  // unused ones are empty
};

constexpr std::array<Spelling, 17> kSpellings{{
    {"num_hidden_layers", {"n_layer", "num_layers", "n_layers", "decoder_layers"}},
    {"hidden_size", {"n_embd", "d_model", "block_dim"}},
    {"num_attention_heads", {"n_head", "num_heads", "n_heads", "attention_heads"}},
    {"num_key_value_heads", {"n_head_kv", "num_kv_heads", "multi_query_group_num"}},
    {"head_dim", {"kv_channels", "attention_head_dim"}},
    {"intermediate_size", {"n_inner", "ffn_hidden_size", "ffn_dim", "block_ff_dim"}},
    {"vocab_size", {"padded_vocab_size"}},
    {"max_position_embeddings",
     {"n_positions", "max_seq_len", "seq_length", "max_sequence_length", "model_max_length", "n_ctx"}},
    {"num_experts", {"n_routed_experts", "num_local_experts", "moe_num_experts"}},
    {"num_experts_per_tok",
     {"moe_topk", "top_k_experts", "moe_k", "num_experts_per_token", "experts_per_token"}},
    {"num_shared_experts", {"n_shared_experts", "moe_num_shared_experts"}},
    {"shared_expert_intermediate_size", {"moe_shared_expert_intermediate_size", "share_expert_dim"}},
    {"num_nextn_predict_layers", {"mtp_num_hidden_layers", "num_mtp_modules"}},
    {"sliding_window", {"sliding_window_size"}},
    {"layer_types", {"layers_block_type"}},
    {"rms_norm_eps",
     {"layer_norm_eps", "layer_norm_epsilon", "norm_eps", "layernorm_epsilon", "norm_epsilon"}},
    {"hidden_act", {"hidden_activation", "activation_function"}},
}};

}  // namespace

std::span<const std::string_view> other_spellings(std::string_view key) {
  const auto row = std::find_if(kSpellings.begin(), kSpellings.end(),
                                [&](const Spelling& spelling) { return spelling.key == key; });
  if (row == kSpellings.end()) return {};
  const auto end = std::find(row->others.begin(), row->others.end(), std::string_view());
  return {row->others.begin(), end};
}

}  // namespace plimsoll::model
