# SPDX-License-Identifier: Apache-2.0
"""What does each layer of a model keep, by the config's own fields? For tools/vllm_kv/reference.py.

vLLM's model classes say this while they build their layers, which needs their weights; so the fields are read here as
those classes read them. Sizes are not worked out here, with one exception that the classes hold themselves: the width
of an index key with its scales (deepseek_v2.Indexer).
"""
from types import SimpleNamespace

FULL, SLIDING, CHUNKED, LATENT, STATE = "full", "sliding", "chunked", "latent", "state"
NAMED = {"full_attention": FULL, "sliding_attention": SLIDING, "chunked_attention": CHUNKED, "linear_attention": STATE}
LLAMA4_FULL_EVERY = 4  # where no_rope_layers does not say it
INDEX_SCALE_GROUP = 128  # deepseek_v2.Indexer.quant_block_size


def kinds(config: SimpleNamespace) -> list[str | None]:
    """One a layer; None for a layer that keeps nothing."""
    count = config.num_hidden_layers
    pattern = getattr(config, "hybrid_override_pattern", None)
    linear = getattr(config, "linear_attn_config", None)
    if pattern:  # nemotron_h
        return [{"M": STATE, "*": FULL}.get(letter) for letter in pattern]
    if linear:  # kimi_linear counts from 1
        return [STATE if layer + 1 in linear["kda_layers"] else LATENT for layer in range(count)]
    if getattr(config, "attn_layer_period", None):  # jamba
        return [FULL if layer % config.attn_layer_period == config.attn_layer_offset else STATE
                for layer in range(count)]
    if getattr(config, "layer_types", None):
        return [NAMED[name] for name in config.layer_types]
    if getattr(config, "full_attention_interval", None):  # qwen3_next
        return every(config.full_attention_interval, FULL, STATE, count)
    if getattr(config, "sliding_window_pattern", None):  # gemma3
        return every(config.sliding_window_pattern, FULL, SLIDING, count)
    if getattr(config, "attention_chunk_size", None):  # llama4: layers with rotary positions are chunked
        roped = getattr(config, "no_rope_layers", None)
        return [CHUNKED if has_rope else FULL for has_rope in roped] if roped else every(
            LLAMA4_FULL_EVERY, FULL, CHUNKED, count)
    if getattr(config, "kv_lora_rank", None):
        return [LATENT] * count
    if getattr(config, "sliding_window", None) and getattr(config, "use_sliding_window", True):
        return [SLIDING] * count
    return [FULL] * count


def every(step: int, kind: str, others: str, count: int) -> list[str | None]:
    return [kind if (layer + 1) % step == 0 else others for layer in range(count)]


def index_key_bytes(config: SimpleNamespace) -> int | None:
    """Of one token in a sparse latent layer: values of one byte and a scale of four for each group."""
    width = getattr(config, "index_head_dim", None)
    return None if width is None else width + width // INDEX_SCALE_GROUP * 4
