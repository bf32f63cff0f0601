// SPDX-License-Identifier: Apache-2.0
// How engine/graph.h shares attention: the rows of a sequence that follow each other read keys and values
// together, with the query heads of a KV head; what is too long for one thread is shared by spans of
// positions. None of it changes a bit (kernels/attention.h).
#include <algorithm>
#include <bit>
#include <cmath>

#include "engine/cached_vectors.h"
#include "engine/graph_parts.h"
#include "kernels/elementwise.h"

namespace plimsoll::engine {
namespace {

// Items that a thread should find of a layer's attention, so that threads end together.
constexpr std::int64_t kItemsPerThread = 4;

// By how much a head's score falls with each position of distance: a power of two for the largest power of
// two of heads, those between them for the rest. Source: transformers' build_alibi_tensor of BLOOM and
// build_mpt_alibi_tensor, which are equal.
double alibi_slope(const model::Attention& attention, int head) {
  const auto whole = static_cast<int>(std::bit_floor(static_cast<unsigned>(attention.q_heads)));
  const double step = attention.alibi_max / whole;
  return std::exp2(head < whole ? -step * (head + 1) : -step / 2 * (2 * (head - whole) + 1));
}

// The first position that one sees.
std::int64_t first_seen(const model::Attention& attention, std::int64_t position) {
  if (attention.chunk_tokens) return position / *attention.chunk_tokens * *attention.chunk_tokens;
  return attention.window_tokens ? std::max<std::int64_t>(0, position + 1 - *attention.window_tokens) : 0;
}

}  // namespace

std::size_t rows_together(std::span<const Row> rows, std::size_t most) {
  std::size_t count = 1;
  while (count < std::min(most, rows.size()) && rows[count].tables.data() == rows[0].tables.data() &&
         rows[count].position == rows[count - 1].position + 1)
    ++count;
  return count;
}

struct Graph::Tile {
  kernels::AttentionTile tile;
  kernels::AttentionQuery queries[kernels::kAttentionQueries];
};

void Graph::cut_into_tiles(std::span<const Row> rows, const AttentionCall& call) {
  tiles_.clear();
  const std::int64_t share = std::ssize(rows) * call.num_heads() / (kItemsPerThread * team_.threads());
  const std::int64_t most =
      std::clamp<std::int64_t>(share, 1, kernels::kAttentionQueries / call.heads_at_once);
  for (std::size_t first = 0; first < rows.size();) {
    const std::size_t count = rows_together(rows.subspan(first), static_cast<std::size_t>(most));
    const Row &front = rows[first], &back = rows[first + count - 1];
    RowTile tile;
    tile.first = static_cast<std::int64_t>(first);
    tile.count = static_cast<std::int64_t>(count);
    tile.seen = {first_seen(call.attention, front.position), back.position + 1};
    if (call.sees_all) tile.seen = {0, back.length};
    tiles_.push_back(tile);
    first += count;
  }
}

// Decides which tiles threads share by spans: those that would keep one of them busy beyond its share.
// Returns the number of items of all tiles.
std::int64_t Graph::share_spans(const AttentionCall& call) {
  const auto work_of = [](const RowTile& tile) { return tile.count * tile.seen.count(); };
  std::int64_t work = 0, items = 0, used = 0;
  for (const RowTile& tile : tiles_) work += work_of(tile);
  const std::int64_t most = work * call.num_heads() / (kItemsPerThread * team_.threads());
  for (RowTile& tile : tiles_) {
    const std::int64_t spans = kernels::attention_spans(tile.seen).count();
    const std::int64_t room =
        spans * tile.count * call.attention.q_heads * kernels::attention_part(call.attention.value_dim());
    if (team_.threads() > 1 && spans > 1 && work_of(tile) > most && used + room <= std::ssize(parts_)) {
      tile.spans = spans;
      tile.parts = used;
      used += room;
    }
    tile.first_item = items;
    items += call.num_heads() * std::max<std::int64_t>(1, tile.spans);
  }
  return items;
}

// [spans, queries, attention_part] of some heads.
float* Graph::parts_of(const AttentionCall& call, const RowTile& tile, int heads) {
  return parts_.data() + tile.parts +
         call.first_head(heads) * tile.count * tile.spans *
             kernels::attention_part(call.attention.value_dim());
}

void Graph::fill_tile(std::span<const Row> rows, const AttentionCall& call, const RowTile& from, int heads,
                      Tile& tile) {
  const model::Attention& attention = call.attention;
  const std::int64_t dim = attention.head_dim, value_dim = attention.value_dim();
  const int kv_head = call.kv_head(heads);
  kernels::KeyValues& cached = tile.tile.cached;
  cached.head_dim = dim;
  cached.value_dim = value_dim;
  const Row& row = rows[static_cast<std::size_t>(from.first)];
  if (call.sees_all) {
    const std::int64_t start = from.first - row.position;  // the row of position 0
    const auto bytes = [](const float* at) { return reinterpret_cast<const std::byte*>(at); };
    cached.dtype = DType::kF32;
    cached.keys = bytes(key_.data() + start * key_stride_ + kv_head * dim);
    cached.values = bytes(value_.data() + start * value_stride_ + kv_head * value_dim);
    cached.key_bytes = key_stride_ * std::int64_t{sizeof(float)};
    cached.value_bytes = value_stride_ * std::int64_t{sizeof(float)};
  } else {
    cached.dtype = pool_.format().dtype;
    cached.keys = pool_.keys(0, call.layer, kv_head);
    cached.values = pool_.values(0, call.layer, kv_head);
    cached.key_bytes = CachedVectors(kernels_, pool_.format(), dim).stride();
    cached.value_bytes = CachedVectors(kernels_, pool_.format(), value_dim).stride();
    cached.blocks = row.tables[static_cast<std::size_t>(pool_.group_of(call.layer))].data();
    cached.block_size = block_size_;
    cached.block_bytes = pool_.bytes_per_block().value;
    tile.tile.soft_cap = static_cast<float>(attention.soft_cap);
  }
  tile.tile.scale = static_cast<float>(attention.scale);
  fill_queries(rows, call, from, heads, tile);
}

void Graph::fill_queries(std::span<const Row> rows, const AttentionCall& call, const RowTile& from, int heads,
                         Tile& tile) {
  const model::Attention& attention = call.attention;
  const auto& sinks = weights_.layers[static_cast<std::size_t>(call.layer)].sinks;
  std::size_t count = 0;
  for (std::int64_t r = from.first; r < from.first + from.count; ++r)
    for (int head = call.first_head(heads); head < call.end_head(heads); ++head) {
      const Row& row = rows[static_cast<std::size_t>(r)];
      kernels::AttentionQuery query{
          .query = query_.data() + r * query_stride_ + head * attention.head_dim,
          .out = attended_.data() + r * attended_stride_ + head * attention.value_dim(),
          .end = row.length};
      if (!call.sees_all) {
        query.first = first_seen(attention, row.position);
        query.end = row.position + 1;
        if (attention.has_sinks) query.sink = &sinks[static_cast<std::size_t>(head)];
        if (attention.alibi_max > 0) query.slope = static_cast<float>(alibi_slope(attention, head));
      }
      tile.queries[count++] = query;
    }
  tile.tile.queries = {tile.queries, count};
}

void Graph::gate(const AttentionCall& call, const RowTile& tile, int heads) {
  const model::Attention& attention = call.attention;
  if (!attention.has_output_gate || call.sees_all) return;
  for (std::int64_t r = tile.first; r < tile.first + tile.count; ++r)
    for (int head = call.first_head(heads); head < call.end_head(heads); ++head)
      kernels::gate_by_sigmoid(
          query_.data() + r * query_stride_ + (attention.q_heads + head) * attention.head_dim,
          attention.value_dim(), attended_.data() + r * attended_stride_ + head * attention.value_dim());
}

void Graph::attend_item(std::span<const Row> rows, const AttentionCall& call, std::int64_t item, int thread) {
  const RowTile& from = *std::prev(std::ranges::upper_bound(tiles_, item, {}, &RowTile::first_item));
  const auto heads = static_cast<int>((item - from.first_item) % call.num_heads());
  float* const scratch = attention_.data() + thread * attention_stride_;
  Tile tile;
  fill_tile(rows, call, from, heads, tile);
  if (from.spans == 0) {
    kernels::attend(kernels_, tile.tile, scratch);
    return gate(call, from, heads);
  }
  const std::int64_t span = (item - from.first_item) / call.num_heads();
  const std::int64_t floats =
      std::ssize(tile.tile.queries) * kernels::attention_part(call.attention.value_dim());
  kernels::attend_span(kernels_, tile.tile, kernels::attention_spans(from.seen).first + span,
                       parts_of(call, from, heads) + span * floats, scratch);
}

void Graph::attend(std::span<const Row> rows, const AttentionCall& call) {
  cut_into_tiles(rows, call);
  const std::int64_t items = share_spans(call);
  // The last rows of a prompt see most: they come first, so that threads end together.
  team_.run(items, [&](std::int64_t item, int thread) { attend_item(rows, call, items - 1 - item, thread); });
  const bool is_shared = std::ranges::any_of(tiles_, [](const RowTile& tile) { return tile.spans > 0; });
  if (!is_shared) return;
  team_.run(std::ssize(tiles_) * call.num_heads(), [&](std::int64_t item, int) {
    const RowTile& from = tiles_[static_cast<std::size_t>(item / call.num_heads())];
    const auto heads = static_cast<int>(item % call.num_heads());
    if (from.spans == 0) return;
    Tile tile;
    fill_tile(rows, call, from, heads, tile);
    kernels::finish_spans(kernels_, tile.tile, from.spans, parts_of(call, from, heads));
    gate(call, from, heads);
  });
}

}  // namespace plimsoll::engine
