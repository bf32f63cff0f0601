// SPDX-License-Identifier: Apache-2.0
// Attention of engine/graph.h: what makes a row's queries, keys and values ready, and the block around it.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/cached_vectors.h"
#include "engine/graph_parts.h"
#include "kernels/elementwise.h"

namespace plimsoll::engine {
namespace {

const model::Attention& attention_of(const model::Layer& layer) {
  return *model::attention_in(layer);
}

void clip(double limit, std::int64_t n, float* values) {
  const auto most = static_cast<float>(limit);
  for (std::int64_t i = 0; i < n; ++i) values[i] = std::clamp(values[i], -most, most);
}

}  // namespace

Graph::Angles Graph::angles_of(std::int64_t r, bool has_window) const {
  const bool is_other = ropes_.windows && has_window;
  const model::RopeSpec& rope = is_other ? *spec_.window_rope : spec_.rope;
  const float* cosines = angles_.data() + r * angle_stride_ + (is_other ? spec_.rope.rotary_dim : 0);
  return {rope, cosines, cosines + rope.rotary_dim / 2};
}

// Everything that happens to a row's queries and keys before they meet.
void Graph::prepare(const Row& row, std::int64_t r, int layer) {
  const auto& attention = attention_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const std::int64_t dim = attention.head_dim;
  float* query = query_.data() + r * query_stride_;
  float* key = key_.data() + r * key_stride_;
  add_bias(weights.query_bias, query);
  add_bias(weights.output_gate_bias, query + attention.q_heads * dim);
  add_bias(weights.key_bias, key);
  add_bias(weights.value_bias, value_.data() + r * value_stride_);
  const auto normalize_both = [&] {
    normalize_heads(attention, weights.query_norm, attention.q_heads, query);
    normalize_heads(attention, weights.key_norm, attention.kv_heads, key);
  };
  if (attention.has_qk_norm && !attention.qk_norm_follows_rope) normalize_both();
  if (attention.clip > 0) {
    clip(attention.clip, attention.q_heads * dim, query);
    clip(attention.clip, attention.kv_heads * dim, key);
    clip(attention.clip, attention.kv_heads * attention.value_dim(), value_.data() + r * value_stride_);
  }
  if (attention.uses_rope) turn(r, attention);
  if (attention.has_qk_norm && attention.qk_norm_follows_rope) normalize_both();
  if (attention.has_unit_norm_after_rope) {
    const auto eps = static_cast<float>(spec_.norm_eps);
    for (int head = 0; head < attention.q_heads; ++head) kernels::unit_norm(dim, eps, query + head * dim);
    for (int head = 0; head < attention.kv_heads; ++head) kernels::unit_norm(dim, eps, key + head * dim);
  }
  if (attention.temperature_scale != 0.0) {
    const auto steps =
        static_cast<double>((row.position + attention.temperature_shift) / attention.temperature_tokens);
    multiply_by(1.0 + attention.temperature_scale * std::log1p(steps), attention.q_heads * dim, query);
  }
}

// values: [heads, head_dim].
void Graph::normalize_heads(const model::Attention& attention, const NormWeights& norm, int heads,
                            float* values) const {
  const auto eps = static_cast<float>(spec_.norm_eps);
  const std::int64_t dim =
      attention.is_qk_norm_full_width ? std::int64_t{heads} * attention.head_dim : attention.head_dim;
  const int count = attention.is_qk_norm_full_width ? 1 : heads;
  for (int head = 0; head < count; ++head) {
    float* const x = values + head * dim;
    const std::int64_t at = attention.is_qk_norm_by_head ? head * dim : 0;
    if (attention.qk_norm_kind == model::NormKind::kRms)
      kernels_.rms_norm(x, norm.weight.data() + at, dim, eps, x);
    else
      kernels::layer_norm(x, norm.weight.data() + at, norm.bias.empty() ? nullptr : norm.bias.data() + at,
                          dim, eps, x);
  }
}

void Graph::turn(std::int64_t r, const model::Attention& attention) {
  const Angles angles = angles_of(r, attention.window_tokens.has_value());
  for (const auto& [heads, vectors] : {std::pair(attention.q_heads, query_.data() + r * query_stride_),
                                       std::pair(attention.kv_heads, key_.data() + r * key_stride_)})
    kernels::rope(vectors, heads, attention.head_dim, angles.rope.rotary_dim, angles.rope.interleaved,
                  angles.cosines, angles.sines);
}

void Graph::store(const Row& row, std::int64_t r, int layer) {
  const auto& attention = attention_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const auto& blocks = row.tables[static_cast<std::size_t>(pool_.group_of(layer))];
  const std::int64_t block = blocks[static_cast<std::size_t>(row.position / block_size_)];
  const std::int64_t slot = row.position % block_size_;
  const std::int64_t dim = attention.head_dim, value_dim = attention.value_dim();
  const CachedVectors keys(kernels_, pool_.format(), dim), values(kernels_, pool_.format(), value_dim);
  for (int head = 0; head < attention.kv_heads; ++head) {
    keys.write(key_.data() + r * key_stride_ + head * dim, pool_.keys(block, layer, head), slot);
    values.write(value_.data() + r * value_stride_ + head * value_dim, pool_.values(block, layer, head),
                 slot);
  }
}

void Graph::attention_block(std::span<const Row> rows, int layer, const float* input, float* output) {
  const auto& attention = attention_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const Product products[] = {{&weights.query, query_.data(), query_stride_},
                              {&weights.key, key_.data(), key_stride_},
                              {&weights.value, value_.data(), value_stride_},
                              {&weights.output_gate, query_.data() + weights.query.rows, query_stride_}};
  multiply(std::span(products).first(attention.has_output_gate ? 4 : 3), input, num_rows);
  const bool sees_all = model::is_encoder(spec_);
  const auto finish_row = [&](std::int64_t r, int) {
    prepare(rows[static_cast<std::size_t>(r)], r, layer);
    if (!sees_all) store(rows[static_cast<std::size_t>(r)], r, layer);
  };
  if (num_rows == 1)
    finish_row(0, 0);
  else
    team_.run(num_rows, finish_row);
  attend(rows, AttentionCall{attention, layer, sees_all});
  // The output matrix reads rows of its own width; rows of narrower layers are packed first.
  const std::int64_t width = weights.attention_output.columns;
  if (width != attended_stride_)
    for (std::int64_t r = 1; r < num_rows; ++r)
      std::memmove(attended_.data() + r * width, attended_.data() + r * attended_stride_,
                   static_cast<std::size_t>(width) * sizeof(float));
  if (!weights.attended_norm.empty())
    for (std::int64_t r = 0; r < num_rows; ++r)
      kernels_.rms_norm(attended_.data() + r * width, weights.attended_norm.data(), width,
                        static_cast<float>(spec_.norm_eps), attended_.data() + r * width);
  const Product out[] = {{&weights.attention_output, output, spec_.hidden_size}};
  multiply(out, attended_.data(), num_rows);
  for (std::int64_t r = 0; r < num_rows; ++r) {
    add_bias(weights.attention_output_bias, output + r * spec_.hidden_size);
    multiply_by(attention.output_scale, spec_.hidden_size, output + r * spec_.hidden_size);
  }
}

}  // namespace plimsoll::engine
