// SPDX-License-Identifier: Apache-2.0
#include "engine/graph.h"

#include <algorithm>
#include <cstring>

#include "engine/graph_parts.h"
#include "kernels/elementwise.h"

namespace plimsoll::engine {
namespace {

static_assert(memory::kWidenedRows == kernels::kScratchRows, "the planned scratch rows are the kernels'");

const model::Attention& attention_of(const model::Layer& layer) {
  return std::get<model::Attention>(layer.mixer);
}

}  // namespace

Graph::Graph(const model::ModelSpec& spec, ModelWeights weights, RopeTables ropes, KvPool& pool,
             const memory::Workspace& workspace, ThreadPool& team)
    : spec_(spec),
      weights_(std::move(weights)),
      ropes_(std::move(ropes)),
      pool_(pool),
      kernels_(kernels::select()),
      team_(team),
      block_size_(pool.block_size()) {
  for (const auto& layer : spec_.layers) {
    const auto& attention = attention_of(layer);
    query_stride_ = std::max(query_stride_, std::int64_t{attention.q_heads} * attention.head_dim);
    kv_stride_ = std::max(kv_stride_, std::int64_t{attention.kv_heads} * attention.head_dim);
  }
  const auto allocate = [](std::vector<float>& buffer, Bytes bytes) {
    buffer.resize(static_cast<std::size_t>(bytes.value) / sizeof(float));
  };
  allocate(residual_, workspace.residual);
  allocate(normed_, workspace.normed);
  allocate(block_out_, workspace.down_out);
  allocate(query_, workspace.query);
  allocate(key_, workspace.key);
  allocate(value_, workspace.value);
  allocate(attended_, workspace.attention_out);
  allocate(gate_, workspace.gate);
  allocate(up_, workspace.up);
  if (workspace.experts.value > 0) allocate_experts();
  allocate(angles_, workspace.rope_angles);
  allocate(logits_, workspace.logits);
  allocate(scores_, workspace.attention_scores);
  allocate(scratch_, workspace.thread_rows);
  score_stride_ = static_cast<std::int64_t>(scores_.size()) / team_.threads();
  angle_stride_ = spec_.rope.rotary_dim + (spec_.window_rope ? spec_.window_rope->rotary_dim : 0);
  scratch_stride_ = static_cast<std::int64_t>(scratch_.size()) / team_.threads();
  // Rows whose logits are asked for are normalized into normed_, which holds one row per token of a step.
  max_logit_rows_ = static_cast<int>(std::min(static_cast<std::int64_t>(logits_.size()) / spec_.vocab_size,
                                              static_cast<std::int64_t>(normed_.size()) / spec_.hidden_size));
}

Bytes Graph::buffer_bytes() const {
  std::size_t floats = 0;
  for (const auto* buffer : {&residual_, &normed_, &block_out_, &query_, &key_, &value_, &attended_, &gate_,
                             &up_, &logits_, &angles_, &scores_, &scratch_})
    floats += buffer->size();
  floats +=
      mixture_.offsets.size() + mixture_.gathered.size() + mixture_.output.size() + mixture_.scores.size();
  const std::size_t choices =
      mixture_.chosen.size() * sizeof(ChosenExpert) + mixture_.places.size() * sizeof(std::int32_t);
  return Bytes(static_cast<std::int64_t>(floats * sizeof(float) + choices));
}

void Graph::multiply(std::span<const Product> products, const float* input, std::int64_t num_rows) {
  std::int64_t chunks = 0;
  for (const auto& product : products) chunks += product.chunks();
  team_.run(chunks, [&](std::int64_t chunk, int thread) {
    const Product* product = products.data();
    for (; chunk >= product->chunks(); ++product) chunk -= product->chunks();
    const std::int64_t begin = chunk * kRowsPerChunk;
    multiply_rows(kernels_, *product->matrix, begin, std::min(begin + kRowsPerChunk, product->matrix->rows),
                  input, num_rows, product->output, product->output_stride,
                  scratch_.data() + thread * scratch_stride_);
  });
}

void Graph::embed(std::span<const Row> rows) {
  for (std::size_t r = 0; r < rows.size(); ++r) {
    float* out = residual_.data() + static_cast<std::int64_t>(r) * spec_.hidden_size;
    widen_rows(weights_.token_embedding, rows[r].token, rows[r].token + 1, out);
    if (spec_.embedding_scale != 1.0)
      for (int i = 0; i < spec_.hidden_size; ++i) out[i] *= static_cast<float>(spec_.embedding_scale);
    if (weights_.position_embedding.rows > 0) {
      const std::int64_t row = rows[r].position + spec_.first_position;
      widen_rows(weights_.position_embedding, row, row + 1, normed_.data());  // not in use yet
      for (int i = 0; i < spec_.hidden_size; ++i) out[i] += normed_[static_cast<std::size_t>(i)];
    }
    float* angles = angles_.data() + static_cast<std::int64_t>(r) * angle_stride_;
    rope_angles(ropes_.all, rows[r].position, angles, angles + spec_.rope.rotary_dim / 2);
    if (!ropes_.windows) continue;
    angles += spec_.rope.rotary_dim;
    rope_angles(*ropes_.windows, rows[r].position, angles, angles + spec_.window_rope->rotary_dim / 2);
  }
}

void Graph::normalize(const NormWeights& norm, const float* input, float* output) const {
  const std::int64_t hidden = spec_.hidden_size;
  const auto eps = static_cast<float>(spec_.norm_eps);
  if (spec_.norm_kind == model::NormKind::kRms)
    kernels_.rms_norm(input, norm.weight.data(), hidden, eps, output);
  else
    kernels::layer_norm(input, norm.weight.data(), norm.bias.empty() ? nullptr : norm.bias.data(), hidden,
                        eps, output);
}

const float* Graph::normalized(const NormWeights& norm, const float* input, std::int64_t num_rows) {
  if (norm.weight.empty()) return input;
  for (std::int64_t r = 0; r < num_rows; ++r)
    normalize(norm, input + r * spec_.hidden_size, normed_.data() + r * spec_.hidden_size);
  return normed_.data();
}

void Graph::add_to_residual(const NormWeights& post_norm, float* update, std::int64_t num_rows) {
  const std::int64_t hidden = spec_.hidden_size;
  for (std::int64_t r = 0; r < num_rows && !post_norm.weight.empty(); ++r)
    normalize(post_norm, update + r * hidden, update + r * hidden);
  kernels_.add_scaled_f32(static_cast<float>(spec_.residual_scale), update, num_rows * hidden,
                          residual_.data());
}

void Graph::rotate_and_store(const Row& row, std::int64_t r, int layer) {
  const auto& attention = attention_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t dim = attention.head_dim;
  float* query = query_.data() + r * query_stride_;
  float* key = key_.data() + r * kv_stride_;
  float* value = value_.data() + r * kv_stride_;
  add_bias(weights.query_bias, query);
  add_bias(weights.key_bias, key);
  add_bias(weights.value_bias, value);
  const auto eps = static_cast<float>(spec_.norm_eps);
  if (attention.is_qk_norm_full_width) {
    kernels_.rms_norm(query, weights.query_norm.data(), attention.q_heads * dim, eps, query);
    kernels_.rms_norm(key, weights.key_norm.data(), attention.kv_heads * dim, eps, key);
  } else if (attention.has_qk_norm) {
    for (int head = 0; head < attention.q_heads; ++head)
      kernels_.rms_norm(query + head * dim, weights.query_norm.data(), dim, eps, query + head * dim);
    for (int head = 0; head < attention.kv_heads; ++head)
      kernels_.rms_norm(key + head * dim, weights.key_norm.data(), dim, eps, key + head * dim);
  }
  if (attention.uses_rope) {
    const bool is_other = ropes_.windows && attention.window_tokens;
    const model::RopeSpec& rope = is_other ? *spec_.window_rope : spec_.rope;
    const float* cosines = angles_.data() + r * angle_stride_ + (is_other ? spec_.rope.rotary_dim : 0);
    const float* sines = cosines + rope.rotary_dim / 2;
    kernels::rope(query, attention.q_heads, attention.head_dim, rope.rotary_dim, rope.interleaved, cosines,
                  sines);
    kernels::rope(key, attention.kv_heads, attention.head_dim, rope.rotary_dim, rope.interleaved, cosines,
                  sines);
  }
  const auto& blocks = row.tables[static_cast<std::size_t>(pool_.group_of(layer))];
  const std::int64_t block = blocks[static_cast<std::size_t>(row.position / block_size_)];
  const std::int64_t slot = row.position % block_size_ * dim;
  for (int head = 0; head < attention.kv_heads; ++head) {
    std::byte* keys = pool_.keys(block, layer, head);
    std::byte* values = pool_.values(block, layer, head);
    if (pool_.dtype() == DType::kF32) {
      std::memcpy(reinterpret_cast<float*>(keys) + slot, key + head * dim,
                  static_cast<std::size_t>(dim) * sizeof(float));
      std::memcpy(reinterpret_cast<float*>(values) + slot, value + head * dim,
                  static_cast<std::size_t>(dim) * sizeof(float));
    } else {
      kernels_.to_bf16(key + head * dim, dim, reinterpret_cast<std::uint16_t*>(keys) + slot);
      kernels_.to_bf16(value + head * dim, dim, reinterpret_cast<std::uint16_t*>(values) + slot);
    }
  }
}

// One row's query heads that share a KV head. Positions are visited in ascending order whatever the step
// holds, so the result does not depend on what else runs.
void Graph::attend(const Row& row, std::int64_t r, int layer, int kv_head, int thread) {
  const auto& attention = attention_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const std::int64_t dim = attention.head_dim;
  const int group = attention.q_heads / attention.kv_heads;
  const bool is_f32 = pool_.dtype() == DType::kF32;
  const std::int64_t first =
      attention.window_tokens ? std::max<std::int64_t>(0, row.position + 1 - *attention.window_tokens) : 0;
  const auto& blocks = row.tables[static_cast<std::size_t>(pool_.group_of(layer))];
  float* scores = scores_.data() + thread * score_stride_;
  for (int head = kv_head * group; head < (kv_head + 1) * group; ++head) {
    const float* query = query_.data() + r * query_stride_ + head * dim;
    for (std::int64_t position = first; position <= row.position; ++position) {
      const std::byte* keys =
          pool_.keys(blocks[static_cast<std::size_t>(position / block_size_)], layer, kv_head);
      const std::int64_t slot = position % block_size_ * dim;
      const float product =
          is_f32 ? kernels_.dot_f32(query, reinterpret_cast<const float*>(keys) + slot, dim)
                 : kernels_.dot_bf16(query, reinterpret_cast<const std::uint16_t*>(keys) + slot, dim);
      scores[position - first] = product * static_cast<float>(attention.scale);
    }
    if (attention.soft_cap > 0)
      kernels::soft_cap(static_cast<float>(attention.soft_cap), row.position + 1 - first, scores);
    kernels::softmax(scores, row.position + 1 - first);
    float* out = attended_.data() + r * query_stride_ + head * dim;
    std::fill(out, out + dim, 0.0F);
    for (std::int64_t position = first; position <= row.position; ++position) {
      const std::byte* values =
          pool_.values(blocks[static_cast<std::size_t>(position / block_size_)], layer, kv_head);
      const std::int64_t slot = position % block_size_ * dim;
      const float probability = scores[position - first];
      if (is_f32)
        kernels_.add_scaled_f32(probability, reinterpret_cast<const float*>(values) + slot, dim, out);
      else
        kernels_.add_scaled_bf16(probability, reinterpret_cast<const std::uint16_t*>(values) + slot, dim,
                                 out);
    }
  }
}

void Graph::attention_block(std::span<const Row> rows, int layer, const float* input, float* output) {
  const auto& attention = attention_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const Product qkv[] = {{&weights.query, query_.data(), query_stride_},
                         {&weights.key, key_.data(), kv_stride_},
                         {&weights.value, value_.data(), kv_stride_}};
  multiply(qkv, input, num_rows);
  for (std::int64_t r = 0; r < num_rows; ++r) rotate_and_store(rows[static_cast<std::size_t>(r)], r, layer);
  team_.run(num_rows * attention.kv_heads, [&](std::int64_t chunk, int thread) {
    const std::int64_t r = chunk / attention.kv_heads;
    attend(rows[static_cast<std::size_t>(r)], r, layer, static_cast<int>(chunk % attention.kv_heads), thread);
  });
  // The output matrix reads rows of its own width; rows of narrower layers are packed first.
  const std::int64_t width = weights.attention_output.columns;
  if (width != query_stride_)
    for (std::int64_t r = 1; r < num_rows; ++r)
      std::memmove(attended_.data() + r * width, attended_.data() + r * query_stride_,
                   static_cast<std::size_t>(width) * sizeof(float));
  const Product out[] = {{&weights.attention_output, output, spec_.hidden_size}};
  multiply(out, attended_.data(), num_rows);
  for (std::int64_t r = 0; r < num_rows; ++r)
    add_bias(weights.attention_output_bias, output + r * spec_.hidden_size);
}

// The feed-forward reads what the attention left.
void Graph::layer_in_turn(std::span<const Row> rows, int layer) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  attention_block(rows, layer, normalized(weights.attention_norm, residual_.data(), num_rows),
                  block_out_.data());
  add_to_residual(weights.attention_post_norm, block_out_.data(), num_rows);
  ffn_block(num_rows, layer, normalized(weights.ffn_norm, residual_.data(), num_rows), block_out_.data());
  add_to_residual(weights.ffn_post_norm, block_out_.data(), num_rows);
}

// Both blocks read the layer's input, through one norm or each through its own.
void Graph::layer_side_by_side(std::span<const Row> rows, int layer) {
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const float* input = normalized(weights.attention_norm, residual_.data(), num_rows);
  attention_block(rows, layer, input, block_out_.data());
  if (!weights.ffn_norm.weight.empty()) input = normalized(weights.ffn_norm, residual_.data(), num_rows);
  float* const ffn_out = attended_.data();  // the attention has read it
  ffn_block(num_rows, layer, input, ffn_out);
  add_to_residual(weights.attention_post_norm, block_out_.data(), num_rows);
  add_to_residual(weights.ffn_post_norm, ffn_out, num_rows);
}

void Graph::forward(std::span<const Row> rows) {
  embed(rows);
  for (int layer = 0; layer < static_cast<int>(spec_.layers.size()); ++layer)
    if (spec_.is_parallel)
      layer_side_by_side(rows, layer);
    else
      layer_in_turn(rows, layer);
}

std::span<const float> Graph::logits(std::span<const std::int32_t> rows) {
  PLIMSOLL_CHECK(static_cast<int>(rows.size()) <= max_logit_rows_,
                 "at most max_logit_rows rows of logits at once");
  const std::int64_t hidden = spec_.hidden_size;
  for (std::size_t i = 0; i < rows.size(); ++i)
    normalize(weights_.output_norm, residual_.data() + rows[i] * hidden,
              normed_.data() + static_cast<std::int64_t>(i) * hidden);
  const Product head[] = {{&weights_.output_head, logits_.data(), spec_.vocab_size}};
  multiply(head, normed_.data(), static_cast<std::int64_t>(rows.size()));
  const std::span<float> result(logits_.data(), rows.size() * static_cast<std::size_t>(spec_.vocab_size));
  for (std::size_t i = 0; i < rows.size(); ++i)
    add_bias(weights_.output_head_bias, logits_.data() + static_cast<std::int64_t>(i) * spec_.vocab_size);
  if (spec_.logits_scale != 1.0)
    for (float& value : result) value *= static_cast<float>(spec_.logits_scale);
  if (spec_.logits_soft_cap > 0)
    kernels::soft_cap(static_cast<float>(spec_.logits_soft_cap), std::ssize(result), result.data());
  return result;
}

}  // namespace plimsoll::engine
