// SPDX-License-Identifier: Apache-2.0
// Latent attention of engine/graph.h: the cache holds one short vector per token, and neither keys nor values
// are ever expanded. A head's queries are taken into the latent space instead, and what it attends to comes
// back out of it. Source: DeepSeek-V2, arXiv 2405.04434, section 2.1.2 and appendix C.
#include <algorithm>
#include <cmath>

#include "engine/cached_vectors.h"
#include "engine/graph_parts.h"

namespace plimsoll::engine {
namespace {

const model::Latent& latent_of(const model::Layer& layer) {
  return std::get<model::Latent>(layer.mixer);
}

std::int64_t head_dim(const model::Latent& latent) {
  return std::int64_t{latent.qk_nope_head_dim} + latent.qk_rope_head_dim;
}

}  // namespace

// Queries and the token's own vector [latent, turning key]: normalized, turned, and the vector stored.
void Graph::finish_latent(const Row& row, std::int64_t r, int layer) {
  const model::Latent& latent = latent_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LatentWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].latent;
  const std::int64_t dim = head_dim(latent);
  float* query = query_.data() + r * latent.q_heads * dim;
  float* vector = key_.data() + r * latent.width();
  add_bias(weights.compression_bias, vector);
  kernels_.rms_norm(vector, weights.norm.data(), latent.kv_lora_rank, latent_eps(latent), vector);
  if (latent.uses_rope) {
    const Angles angles = angles_of(r, false);
    const auto turn = [&](float* part) {
      kernels::rope(part, 1, latent.qk_rope_head_dim, angles.rope.rotary_dim, angles.rope.interleaved,
                    angles.cosines, angles.sines);
    };
    for (int head = 0; head < latent.q_heads; ++head) turn(query + head * dim + latent.qk_nope_head_dim);
    turn(vector + latent.kv_lora_rank);
  }
  if (latent.temperature_scale != 0) {
    const double steps = static_cast<double>(row.position / latent.temperature_tokens);
    multiply_by(1.0 + latent.temperature_scale * std::log1p(steps), latent.q_heads * dim, query);
  }
  const auto& blocks = row.tables[static_cast<std::size_t>(pool_.group_of(layer))];
  CachedVectors(kernels_, pool_.format(), latent.width())
      .write(vector, pool_.keys(blocks[static_cast<std::size_t>(row.position / block_size_)], layer, 0),
             row.position % block_size_);
}

float Graph::latent_eps(const model::Latent& latent) const {
  return static_cast<float>(latent.norm_eps > 0 ? latent.norm_eps : spec_.norm_eps);
}

// A head's queries in the latent space: the part that does not turn times the head's key matrix.
// queries: [rows, width], packed: [rows, nope]. Each row's sum runs through the matrix in the same order
// whatever the rows beside it.
void Graph::absorb_keys(std::int64_t num_rows, int layer, int head, float* queries, float* packed,
                        float* scratch) {
  const model::Latent& latent = latent_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LatentWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].latent;
  const StoredMatrix& keys = weights.keys[static_cast<std::size_t>(head)];
  const std::int64_t dim = head_dim(latent), nope = latent.qk_nope_head_dim, lora = latent.kv_lora_rank;
  const auto query_of = [&](std::int64_t r) { return query_.data() + (r * latent.q_heads + head) * dim; };
  for (std::int64_t r = 0; r < num_rows; ++r)
    std::copy_n(query_of(r) + nope, latent.qk_rope_head_dim, queries + r * latent.width() + lora);
  if (weights.are_keys_turned) {
    for (std::int64_t r = 0; r < num_rows; ++r) std::copy_n(query_of(r), nope, packed + r * nope);
    return multiply_rows(kernels_, keys, 0, lora, packed, num_rows, queries, latent.width(), scratch);
  }
  for (std::int64_t r = 0; r < num_rows; ++r) std::fill_n(queries + r * latent.width(), lora, 0.0F);
  for (std::int64_t begin = 0; begin < nope; begin += kernels::kScratchRows) {
    const std::int64_t end = std::min(begin + kernels::kScratchRows, nope);
    widen_rows(keys, begin, end, scratch);
    for (std::int64_t r = 0; r < num_rows; ++r)
      for (std::int64_t i = begin; i < end; ++i)
        kernels_.add_scaled_f32(query_of(r)[i], scratch + (i - begin) * lora, lora,
                                queries + r * latent.width());
  }
}

// One head's queries of all rows over the cached vectors, those of one sequence together: a token's vector is
// its key, and its first part the value. queries: [rows, width], sums: [rows, kv_lora]
void Graph::attend_latent(std::span<const Row> rows, int layer, const float* queries, float* sums,
                          float* scratch) {
  const model::Latent& latent = latent_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const std::int64_t width = latent.width(), stride = CachedVectors(kernels_, pool_.format(), width).stride();
  const auto group = static_cast<std::size_t>(pool_.group_of(layer));
  kernels::AttentionTile tile{.cached = {.dtype = pool_.format().dtype,
                                         .head_dim = width,
                                         .value_dim = latent.kv_lora_rank,
                                         .keys = pool_.keys(0, layer, 0),
                                         .values = pool_.keys(0, layer, 0),
                                         .key_bytes = stride,
                                         .value_bytes = stride,
                                         .block_size = block_size_,
                                         .block_bytes = pool_.bytes_per_block().value},
                              .scale = static_cast<float>(latent.scale),
                              .queries = {}};
  kernels::AttentionQuery tile_queries[kernels::kAttentionQueries];
  for (std::size_t first = 0, count = 0; first < rows.size(); first += count) {
    count = rows_together(rows.subspan(first), kernels::kAttentionQueries);
    for (std::size_t i = 0; i < count; ++i) {
      const auto r = static_cast<std::int64_t>(first + i);
      tile_queries[i] = {.query = queries + r * width,
                         .out = sums + r * latent.kv_lora_rank,
                         .end = rows[first + i].position + 1};
    }
    tile.queries = {tile_queries, count};
    tile.cached.blocks = rows[first].tables[group].data();
    kernels::attend(kernels_, tile, scratch);
  }
}

// All rows of one head, so that its matrices are widened once.
void Graph::latent_head(std::span<const Row> rows, int layer, int head, int thread) {
  const model::Latent& latent = latent_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LatentWeights& weights = weights_.layers[static_cast<std::size_t>(layer)].latent;
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  float* queries = latents_.data() + thread * latent_stride_;  // [rows, width]
  float* sums = queries + num_rows * latent.width();           // [rows, kv_lora]; before, [rows, nope]
  float* scratch = scratch_.data() + thread * scratch_stride_;
  absorb_keys(num_rows, layer, head, queries, sums, scratch);
  attend_latent(rows, layer, queries, sums, attention_.data() + thread * attention_stride_);
  multiply_rows(kernels_, weights.values[static_cast<std::size_t>(head)], 0, latent.v_head_dim, sums,
                num_rows, attended_.data() + std::int64_t{head} * latent.v_head_dim,
                std::int64_t{latent.q_heads} * latent.v_head_dim, scratch);
}

void Graph::latent_block(std::span<const Row> rows, int layer, const float* input, float* output) {
  const model::Latent& latent = latent_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const LayerWeights& all = weights_.layers[static_cast<std::size_t>(layer)];
  const LatentWeights& weights = all.latent;
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const std::int64_t query_width = latent.q_heads * head_dim(latent), rank = latent.q_lora_rank;
  const bool is_compressed = rank > 0;
  const Product query = is_compressed ? Product{&weights.query_compression, value_.data(), rank}
                                      : Product{&all.query, query_.data(), query_width};
  const Product compressions[] = {{&weights.compression, key_.data(), latent.width()}, query};
  multiply(compressions, input, num_rows);
  if (is_compressed) {
    team_.run(num_rows, [&](std::int64_t r, int) {
      float* compressed = value_.data() + r * rank;
      add_bias(weights.query_compression_bias, compressed);
      kernels_.rms_norm(compressed, weights.query_norm.data(), rank, latent_eps(latent), compressed);
    });
    const Product expansion[] = {{&weights.query_expansion, query_.data(), query_width}};
    multiply(expansion, value_.data(), num_rows);
  }
  team_.run(num_rows,
            [&](std::int64_t r, int) { finish_latent(rows[static_cast<std::size_t>(r)], r, layer); });
  team_.run(latent.q_heads,
            [&](std::int64_t head, int thread) { latent_head(rows, layer, static_cast<int>(head), thread); });
  const Product out[] = {{&all.attention_output, output, spec_.hidden_size}};
  multiply(out, attended_.data(), num_rows);
  for (std::int64_t r = 0; r < num_rows; ++r)
    add_bias(all.attention_output_bias, output + r * spec_.hidden_size);
}

}  // namespace plimsoll::engine
