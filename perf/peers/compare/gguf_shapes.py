# SPDX-License-Identifier: Apache-2.0
"""Writes a GGUF file in bf16 with random weights of a named shape; words are those of another file, the rest is unused.

usage: gguf_shapes.py SHAPE WORDS.gguf OUT.gguf        (needs numpy and gguf)

Shapes: `qwen3-0.6b` is Qwen3-0.6B's; `moe` has Qwen3-MoE's architecture, small enough for about 1 GB in eight bits.
"""
import dataclasses
import sys

import gguf
import numpy


@dataclasses.dataclass(frozen=True)
class Shape:
    architecture: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    inner: int          # of one expert where there are experts
    vocabulary: int
    experts: int = 0
    experts_used: int = 0


SHAPES = {
    "qwen3-0.6b": Shape("qwen3", 1024, 28, 16, 8, 128, 3072, 151936),
    "moe": Shape("qwen3moe", 1024, 16, 16, 4, 128, 512, 49152, 32, 4),
}


def bf16(values):
    """f32 -> bf16, to the nearest, ties to even, as bytes."""
    bits = numpy.ascontiguousarray(values, dtype=numpy.float32).view(numpy.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(numpy.uint16).view(numpy.uint8)


def matrices(shape):
    """(name, dimensions, outermost first) of what is random."""
    query, key = shape.heads * shape.head_size, shape.kv_heads * shape.head_size
    yield "token_embd.weight", (shape.vocabulary, shape.hidden)
    for layer in range(shape.layers):
        block = f"blk.{layer}."
        yield block + "attn_q.weight", (query, shape.hidden)
        yield block + "attn_k.weight", (key, shape.hidden)
        yield block + "attn_v.weight", (key, shape.hidden)
        yield block + "attn_output.weight", (shape.hidden, query)
        if shape.experts:
            yield block + "ffn_gate_exps.weight", (shape.experts, shape.inner, shape.hidden)
            yield block + "ffn_up_exps.weight", (shape.experts, shape.inner, shape.hidden)
            yield block + "ffn_down_exps.weight", (shape.experts, shape.hidden, shape.inner)
        else:
            yield block + "ffn_gate.weight", (shape.inner, shape.hidden)
            yield block + "ffn_up.weight", (shape.inner, shape.hidden)
            yield block + "ffn_down.weight", (shape.hidden, shape.inner)


def norms(shape):
    for layer in range(shape.layers):
        yield f"blk.{layer}.attn_norm.weight", shape.hidden
        yield f"blk.{layer}.ffn_norm.weight", shape.hidden
        yield f"blk.{layer}.attn_q_norm.weight", shape.head_size
        yield f"blk.{layer}.attn_k_norm.weight", shape.head_size
    yield "output_norm.weight", shape.hidden


def describe(writer, shape):
    writer.add_context_length(40960)
    writer.add_embedding_length(shape.hidden)
    writer.add_block_count(shape.layers)
    writer.add_feed_forward_length(shape.inner)
    writer.add_head_count(shape.heads)
    writer.add_head_count_kv(shape.kv_heads)
    writer.add_key_length(shape.head_size)
    writer.add_value_length(shape.head_size)
    writer.add_rope_freq_base(1e6)
    writer.add_layer_norm_rms_eps(1e-6)
    writer.add_vocab_size(shape.vocabulary)
    writer.add_file_type(gguf.LlamaFileType.MOSTLY_BF16)
    if shape.experts:
        writer.add_expert_count(shape.experts)
        writer.add_expert_used_count(shape.experts_used)
        writer.add_expert_feed_forward_length(shape.inner)


def words(writer, shape, source):
    def of(key):
        return source.get_field(f"tokenizer.ggml.{key}").contents()

    texts, kinds = of("tokens"), of("token_type")
    missing = range(len(texts), shape.vocabulary)
    writer.add_tokenizer_model(of("model"))
    writer.add_tokenizer_pre(of("pre"))
    writer.add_token_list(texts + [f"<unused{number}>" for number in missing])
    writer.add_token_types(kinds + [gguf.TokenType.UNUSED] * len(missing))
    writer.add_token_merges(of("merges"))
    writer.add_bos_token_id(of("bos_token_id"))
    writer.add_eos_token_id(of("eos_token_id"))
    writer.add_add_bos_token(False)


def main():
    name, source, target = sys.argv[1:]
    shape = SHAPES[name]
    writer = gguf.GGUFWriter(target, shape.architecture)
    describe(writer, shape)
    words(writer, shape, gguf.GGUFReader(source))
    random = numpy.random.default_rng(7)
    for tensor, dimensions in matrices(shape):
        values = random.standard_normal(dimensions, dtype=numpy.float32) * numpy.float32(0.02)
        writer.add_tensor(tensor, bf16(values), raw_dtype=gguf.GGMLQuantizationType.BF16)
    for layer in range(shape.layers if shape.experts else 0):
        values = random.standard_normal((shape.experts, shape.hidden), dtype=numpy.float32) * numpy.float32(0.02)
        writer.add_tensor(f"blk.{layer}.ffn_gate_inp.weight", values)
    for tensor, size in norms(shape):
        writer.add_tensor(tensor, numpy.ones(size, dtype=numpy.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
