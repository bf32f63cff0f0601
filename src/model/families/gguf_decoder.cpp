// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "model/families/decoder.h"
#include "model/families/heads.h"
#include "model/rope.h"

namespace plimsoll::model {
namespace {

std::int64_t gguf_vocab(KeyReader& keys, const artifact::Artifact& artifact) {
  if (keys.has("vocab_size")) return keys.integer("vocab_size", 1, kMaxVocab);
  const artifact::Tensor* embedding = artifact.find("token_embd.weight");
  if (embedding && embedding->shape.size() == 2) {
    const std::int64_t rows = embedding->shape[0];
    if (rows < 1 || rows > kMaxVocab)
      keys.add_error(
          ErrorCode::kMalformed, "vocab_size",
          fmt::format("reading the model: token_embd.weight has {} rows, outside 1 to {}", rows, kMaxVocab));
    return std::clamp<std::int64_t>(rows, 1, kMaxVocab);
  }
  const std::size_t tokens = artifact.config()["tokenizer.ggml.tokens"].size();
  if (tokens == 0)
    keys.add_error(ErrorCode::kMalformed, "vocab_size",
                   "reading the model: nothing states the size of the vocabulary");
  return static_cast<std::int64_t>(tokens);
}

// general.file_type is llama.cpp's number of the scheme; only the plain ones are one dtype.
std::optional<DType> gguf_dtype(const Json& metadata) {
  switch (metadata["general.file_type"].as_integer().value_or(-1)) {
    case 0:
      return DType::kF32;
    case 1:
      return DType::kF16;
    case 32:
      return DType::kBF16;
    default:
      return std::nullopt;
  }
}

}  // namespace

ModelSpec read_gguf_frame(KeyReader& keys, const artifact::Artifact& artifact) {
  ModelSpec spec;
  spec.hidden_size = keys.count("embedding_length", kMaxWidth);
  spec.vocab_size = gguf_vocab(keys, artifact);
  spec.norm_eps =
      keys.positive("attention.layer_norm_rms_epsilon", keys.positive("attention.layer_norm_epsilon", 1e-5));
  // Only the tensor list says whether the head is its own; without any tensor nothing is known to be shared.
  spec.ties_embeddings = artifact.find("token_embd.weight") && !artifact.find("output.weight");
  spec.layers.resize(static_cast<std::size_t>(keys.count("block_count", kMaxLayers)));
  spec.declared_dtype = gguf_dtype(artifact.config());
  if (const auto* name = artifact.config()["general.name"].as_string()) spec.name = *name;
  return spec;
}

void read_gguf_experts(KeyReader& keys, const Router& router, ModelSpec& spec) {
  if (keys.integer("expert_count", 0, kMaxExperts, 0) == 0) return;
  Ffn moe = spec.layers.front().ffn;
  moe.kind = FfnKind::kMoe;
  moe.router = router;
  moe.experts = keys.count("expert_count", kMaxExperts);
  moe.experts_per_token = keys.count("expert_used_count", moe.experts);
  moe.expert_intermediate_size = keys.count("expert_feed_forward_length", kMaxWidth, moe.intermediate_size);
  moe.shared_experts = static_cast<int>(keys.integer("expert_shared_count", 0, kMaxExperts, 0));
  const std::int64_t together = std::int64_t{moe.shared_experts} * moe.expert_intermediate_size;
  moe.shared_intermediate_size = static_cast<int>(std::min(together, kMaxSharedWidth));
  const auto first = static_cast<std::size_t>(keys.integer("leading_dense_block_count", 0, kMaxLayers, 0));
  for (std::size_t i = first; i < spec.layers.size(); ++i) spec.layers[i].ffn = moe;
}

ModelSpec read_gguf_decoder(KeyReader& keys, const artifact::Artifact& artifact,
                            const std::optional<Router>& router) {
  ModelSpec spec = read_gguf_frame(keys, artifact);
  Attention attention;
  attention.q_heads = keys.count("attention.head_count", kMaxHeads);
  attention.kv_heads = keys.count("attention.head_count_kv", kMaxHeads, attention.q_heads);
  attention.head_dim = read_head_dim(keys, spec.hidden_size, attention.q_heads, "attention.key_length",
                                     "attention.head_count", 0);
  if (keys.count("attention.value_length", kMaxHeadDim, attention.head_dim) != attention.head_dim)
    keys.add_error(ErrorCode::kUnsupported, "attention.value_length",
                   "reading the model: keys and values of different widths are not read here");
  attention.scale = 1.0 / std::sqrt(static_cast<double>(attention.head_dim));
  attention.has_qkv_bias = artifact.find("blk.0.attn_q.bias") != nullptr;
  attention.has_output_bias = artifact.find("blk.0.attn_output.bias") != nullptr;
  if (keys.has("attention.sliding_window"))
    attention.window_tokens = keys.integer("attention.sliding_window", 1, kMaxContext);
  check_heads(keys, attention, "attention.head_count_kv");
  if (!router && keys.integer("expert_count", 0, kMaxExperts, 0) > 0)
    keys.add_error(ErrorCode::kUnsupported, "expert_count",
                   "reading the model: experts are not read in this architecture");

  Ffn ffn;
  ffn.intermediate_size = keys.count("feed_forward_length", kMaxWidth);
  ffn.has_bias = artifact.find("blk.0.ffn_up.bias") != nullptr;
  std::fill(spec.layers.begin(), spec.layers.end(), Layer{attention, ffn});
  if (router) read_gguf_experts(keys, *router, spec);

  read_gguf_rope(keys, attention.head_dim, spec);
  return spec;
}

}  // namespace plimsoll::model
