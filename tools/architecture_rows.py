# SPDX-License-Identifier: Apache-2.0
"""The tiny models that tools/record_architectures.py records: name, model_type and what its config says.

Each turns on what sets its family apart: windows shorter than the prompt, flags either way, figures that differ
from each other. A second row of a family is for a flag that changes its arithmetic.
"""

TOKENS = dict(bos_token_id=1, eos_token_id=2, pad_token_id=0)
PLAIN = dict(vocab_size=64, hidden_size=64, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
             num_key_value_heads=2, max_position_embeddings=128, tie_word_embeddings=False, **TOKENS)
WINDOWED = dict(PLAIN, num_hidden_layers=4, sliding_window=8)
PATTERN = ["sliding_attention", "sliding_attention", "full_attention", "sliding_attention"]
OWN_HEADS = dict(PLAIN, head_dim=24)
YARN = dict(rope_type="yarn", rope_theta=10000.0, factor=4.0, original_max_position_embeddings=16)
LLAMA3 = dict(rope_type="llama3", rope_theta=10000.0, factor=4.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=16)
EXPERTS = dict(moe_intermediate_size=40, num_experts=8, num_experts_per_tok=3)
ROUTED = dict(moe_intermediate_size=40, n_routed_experts=8, num_experts_per_tok=3, n_shared_experts=1,
              routed_scaling_factor=1.7)
GPT = dict(vocab_size=64, n_positions=64, n_embd=64, n_layer=3, n_head=4, **TOKENS)
MULTIPLIERS = dict(embedding_multiplier=3.0, logits_scaling=2.0, residual_multiplier=0.6, attention_multiplier=0.2)
LATENT = dict(PLAIN, num_key_value_heads=4, kv_lora_rank=24, q_lora_rank=20, qk_rope_head_dim=8,
              qk_nope_head_dim=16, v_head_dim=12)

ROWS = {
    "exaone4": ("exaone4", dict(WINDOWED, sliding_window_pattern=4)),
    "exaone4_full": ("exaone4", dict(PLAIN, sliding_window=None, layer_types=["full_attention"] * 3)),
    "nemotron": ("nemotron", PLAIN),
    "nemotron_biased": ("nemotron", dict(PLAIN, attention_bias=True, mlp_bias=True, head_dim=24,
                                         partial_rotary_factor=0.5)),
    "stablelm": ("stablelm", dict(PLAIN, use_qkv_bias=True)),
    "stablelm_parallel": ("stablelm", dict(PLAIN, use_parallel_residual=True, tie_word_embeddings=True)),
    "olmo": ("olmo", dict(PLAIN, clip_qkv=0.5)),
    "olmo_biased": ("olmo", dict(PLAIN, attention_bias=True, tie_word_embeddings=True)),
    "gptj": ("gptj", dict(GPT, rotary_dim=8)),
    "gpt_bigcode": ("gpt_bigcode", GPT),
    "gpt_bigcode_heads": ("gpt_bigcode", dict(GPT, multi_query=False)),
    "gpt_neo": ("gpt_neo", dict(vocab_size=64, hidden_size=64, num_layers=4, num_heads=4, window_size=8,
                                attention_types=[[["global", "local"], 2]], max_position_embeddings=64, **TOKENS)),
    "bloom": ("bloom", dict(vocab_size=64, hidden_size=60, n_layer=3, n_head=6, **TOKENS)),
    "bloom_post_norm": ("bloom", dict(vocab_size=64, hidden_size=64, n_layer=3, n_head=4,
                                      apply_residual_connection_post_layernorm=True, **TOKENS)),
    "mpt": ("mpt", dict(vocab_size=64, d_model=60, n_layers=3, n_heads=6, max_seq_len=64,
                        attn_config=dict(clip_qkv=0.5, softmax_scale=0.2), **TOKENS)),
    "persimmon": ("persimmon", PLAIN),
    "persimmon_plain_heads": ("persimmon", dict(PLAIN, qk_layernorm=False, partial_rotary_factor=0.25)),
    "phi": ("phi", dict(PLAIN, partial_rotary_factor=0.25)),
    "phi_head_norms": ("phi", dict(PLAIN, qk_layernorm=True)),
    "glm": ("glm", dict(OWN_HEADS, partial_rotary_factor=0.5)),
    "glm_unbiased": ("glm", dict(PLAIN, head_dim=16, attention_bias=False, tie_word_embeddings=True)),
    "helium": ("helium", dict(PLAIN, head_dim=16)),
    "helium_biased": ("helium", dict(PLAIN, head_dim=16, attention_bias=True, mlp_bias=True)),
    "cwm": ("cwm", dict(WINDOWED, head_dim=24, rope_parameters=LLAMA3)),
    "seed_oss": ("seed_oss", OWN_HEADS),
    "seed_oss_output": ("seed_oss", dict(PLAIN, head_dim=16, attention_bias=False, attention_out_bias=True,
                                         mlp_bias=True)),
    "ernie4_5": ("ernie4_5", dict(OWN_HEADS, use_bias=True)),
    "ernie4_5_tied": ("ernie4_5", dict(OWN_HEADS, tie_word_embeddings=True)),
    "ministral": ("ministral", dict(WINDOWED, layer_types=PATTERN, head_dim=24)),
    "ministral3": ("ministral3", dict(WINDOWED, head_dim=24, sliding_window=None,
                                      rope_parameters=dict(YARN, llama_4_scaling_beta=0.3, mscale=1.0,
                                                           mscale_all_dim=1.0))),
    "arcee": ("arcee", dict(OWN_HEADS, attention_bias=True, mlp_bias=True)),
    "bitnet": ("bitnet", PLAIN),
    "apertus": ("apertus", dict(PLAIN, rope_parameters=LLAMA3)),
    "hunyuan_dense": ("hunyuan_v1_dense", OWN_HEADS),
    "hunyuan_dense_alpha": ("hunyuan_v1_dense", dict(OWN_HEADS, attention_bias=True, rope_parameters=dict(
        rope_type="dynamic", rope_theta=10000.0, factor=1.0, alpha=1000.0))),
    "hunyuan_moe": ("hunyuan_v1_moe", dict(OWN_HEADS, num_experts=6, moe_topk=2)),
    "granite_moe": ("granitemoe", dict(PLAIN, num_local_experts=6, num_experts_per_tok=2, **MULTIPLIERS)),
    "granite_moe_shared": ("granitemoeshared", dict(PLAIN, num_local_experts=6, num_experts_per_tok=3,
                                                    shared_intermediate_size=56, attention_bias=True, **MULTIPLIERS)),
    "granite_swa": ("granite_swa", dict(WINDOWED, **MULTIPLIERS)),
    "ernie4_5_moe": ("ernie4_5_moe", dict(PLAIN, moe_intermediate_size=40, moe_k=3, moe_num_experts=8,
                                          moe_num_shared_experts=2)),
    "ernie4_5_moe_sparse": ("ernie4_5_moe", dict(PLAIN, num_hidden_layers=4, moe_intermediate_size=40, moe_k=2,
                                                 moe_num_experts=6, moe_num_shared_experts=0, use_bias=True,
                                                 moe_layer_start_index=1, moe_layer_interval=2)),
    "jais2": ("jais2", PLAIN),
    "hyperclovax": ("hyperclovax", dict(OWN_HEADS, **MULTIPLIERS)),
    "hyperclovax_plain": ("hyperclovax", dict(PLAIN, use_post_norm=False, attention_bias=True, mlp_bias=True)),
    "exaone_moe": ("exaone_moe", dict(WINDOWED, **EXPERTS)),
    "exaone_moe_groups": ("exaone_moe", dict(WINDOWED, first_k_dense_replace=2, n_group=4, topk_group=2,
                                             norm_topk_prob=False, **EXPERTS)),
    "solar_open": ("solar_open", dict(OWN_HEADS, n_group=4, topk_group=2, **ROUTED)),
    "mellum": ("mellum", dict(WINDOWED, head_dim=24, layer_types=PATTERN, **EXPERTS, rope_parameters={
        "full_attention": dict(YARN), "sliding_attention": dict(rope_type="default", rope_theta=500.0)})),
    "hy_v3": ("hy_v3", dict(OWN_HEADS, num_shared_experts=1, router_scaling_factor=1.7, **EXPERTS)),
    "dots1": ("dots1", dict(WINDOWED, first_k_dense_replace=1, max_window_layers=2, n_group=2, topk_group=1,
                            norm_topk_prob=True, layer_types=PATTERN, **ROUTED)),
    "flex_olmo": ("flex_olmo", dict(PLAIN, num_experts=6, num_experts_per_tok=2)),
    "biogpt": ("biogpt", dict(vocab_size=64, hidden_size=64, num_hidden_layers=3, num_attention_heads=4,
                              intermediate_size=96, max_position_embeddings=64, **TOKENS)),
    "gemma": ("gemma", dict(OWN_HEADS, tie_word_embeddings=True)),
    "cohere": ("cohere", dict(PLAIN, logit_scale=0.25, tie_word_embeddings=True)),
    "cohere_head_norms": ("cohere", dict(PLAIN, logit_scale=0.25, use_qk_norm=True, tie_word_embeddings=True)),
    "olmoe": ("olmoe", dict(PLAIN, num_experts=6, num_experts_per_tok=2, clip_qkv=0.5)),
    "glm4_moe_lite": ("glm4_moe_lite", dict(LATENT, first_k_dense_replace=1, n_group=2, topk_group=1, **ROUTED)),
    "youtu": ("youtu", LATENT),
    "minicpm3": ("minicpm3", dict(LATENT, scale_emb=3.0, scale_depth=1.2, dim_model_base=16)),
    "mistral4": ("mistral4", dict(LATENT, first_k_dense_replace=1, n_group=2, topk_group=1, **ROUTED,
                                  rope_parameters=dict(YARN, llama_4_scaling_beta=0.3, mscale=1.0,
                                                       mscale_all_dim=1.0))),
    "axk1": ("axk1", dict(LATENT, first_k_dense_replace=1, n_group=2, topk_group=1, **ROUTED)),
    "mamba": ("mamba", dict(vocab_size=64, hidden_size=64, state_size=8, num_hidden_layers=3, **TOKENS)),
    "bamba": ("bamba", dict(PLAIN, attn_layer_indices=[1], mamba_n_heads=8, mamba_d_head=16, mamba_n_groups=2,
                            mamba_d_state=8, mamba_chunk_size=8)),
}
