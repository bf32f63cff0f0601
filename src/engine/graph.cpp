// SPDX-License-Identifier: Apache-2.0
#include "engine/graph.h"

#include <algorithm>

#include "engine/graph_parts.h"
#include "kernels/elementwise.h"
#include "kernels/panels.h"

namespace plimsoll::engine {
namespace {

static_assert(memory::kWidenedRows == kernels::kScratchRows, "the planned scratch rows are the kernels'");
static_assert(memory::kInputBlock == kernels::kInt8Block &&
                  memory::kInputBlockBytes == sizeof(kernels::Int8Block),
              "the planned inputs in eight bits are the kernels'");
static_assert(2 * memory::kInputBlockBytes >= 2 * memory::kInputBlock, "two planes hold inputs in bf16");
static_assert(memory::kPanelScratchRows * sizeof(float) == kernels::panel_scratch_bytes(1),
              "the planned scratch of panels is the kernels'");
static_assert(memory::attention_part(40) == kernels::attention_part(40) &&
                  memory::attention_scratch(64, 80) == kernels::attention_scratch(64, 80) &&
                  memory::kSpanPositions == kernels::kAttentionSplit * kernels::kAttentionSpan,
              "the planned buffers of attention are the kernels'");

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
    if (const model::State* state = memory::state_of(layer))
      state_stride_ = std::max(state_stride_, memory::state_widths(*state).total());
    const model::Attention* attention = model::attention_in(layer);
    if (!attention) continue;
    query_stride_ = std::max(query_stride_, memory::query_width(*attention));
    attended_stride_ = std::max(attended_stride_, std::int64_t{attention->q_heads} * attention->value_dim());
    key_stride_ = std::max(key_stride_, std::int64_t{attention->kv_heads} * attention->head_dim);
    value_stride_ = std::max(value_stride_, std::int64_t{attention->kv_heads} * attention->value_dim());
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
  allocate(states_, workspace.states);
  if (!states_.empty()) runs_.reserve(normed_.size() / static_cast<std::size_t>(spec_.hidden_size));
  allocate(latents_, workspace.latents);
  allocate(gate_, workspace.gate);
  allocate(up_, workspace.up);
  codes_.resize(static_cast<std::size_t>(workspace.codes.value) / sizeof(kernels::Int8Block));
  if (workspace.experts.value > 0) allocate_experts();
  allocate(angles_, workspace.rope_angles);
  allocate(logits_, workspace.logits);
  allocate(attention_, workspace.attention_scratch);
  allocate(parts_, workspace.attention_parts);
  tiles_.reserve(normed_.size() / static_cast<std::size_t>(spec_.hidden_size));
  allocate(scratch_, workspace.thread_rows);
  attention_stride_ = static_cast<std::int64_t>(attention_.size()) / team_.threads();
  angle_stride_ = spec_.rope.rotary_dim + (spec_.window_rope ? spec_.window_rope->rotary_dim : 0);
  scratch_stride_ = static_cast<std::int64_t>(scratch_.size()) / team_.threads();
  latent_stride_ = static_cast<std::int64_t>(latents_.size()) / team_.threads();
  // Rows whose logits are asked for are normalized into normed_, which holds one row per token of a step.
  max_logit_rows_ = static_cast<int>(std::min(static_cast<std::int64_t>(logits_.size()) / spec_.vocab_size,
                                              static_cast<std::int64_t>(normed_.size()) / spec_.hidden_size));
}

Bytes Graph::buffer_bytes() const {
  std::size_t floats = 0;
  for (const auto* buffer :
       {&residual_, &normed_, &block_out_, &query_, &key_, &value_, &attended_, &latents_, &gate_, &up_,
        &states_, &logits_, &angles_, &attention_, &parts_, &scratch_})
    floats += buffer->size();
  const std::size_t codes = codes_.size() * sizeof(kernels::Int8Block);
  floats +=
      mixture_.offsets.size() + mixture_.gathered.size() + mixture_.output.size() + mixture_.scores.size();
  const std::size_t choices =
      mixture_.chosen.size() * sizeof(ChosenExpert) + mixture_.places.size() * sizeof(std::int32_t);
  return Bytes(static_cast<std::int64_t>(floats * sizeof(float) + choices + codes));
}

void Graph::embed_row(const Row& row, std::int64_t r) {
  const std::int64_t hidden = spec_.hidden_size;
  float* const out = residual_.data() + r * hidden;
  widen_rows(weights_.token_embedding, row.token, row.token + 1, out);
  multiply_by(spec_.embedding_scale, hidden, out);
  const auto add_row = [&](const StoredMatrix& table, std::int64_t at) {
    if (table.rows == 0) return;
    float* const values = normed_.data() + r * hidden;  // not in use yet
    widen_rows(table, at, at + 1, values);
    for (std::int64_t i = 0; i < hidden; ++i) out[i] += values[i];
  };
  add_row(weights_.token_type_embedding, 0);
  add_row(weights_.position_embedding, row.position + spec_.first_position);
  if (!weights_.embedding_norm.weight.empty()) normalize(weights_.embedding_norm, out, out);
  float* angles = angles_.data() + r * angle_stride_;
  rope_angles(row.stays_within ? *ropes_.within : ropes_.all, row.position, angles,
              angles + spec_.rope.rotary_dim / 2);
  if (!ropes_.windows) return;
  angles += spec_.rope.rotary_dim;
  rope_angles(*ropes_.windows, row.position, angles, angles + spec_.window_rope->rotary_dim / 2);
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
  each_row(team_, num_rows, [&](std::int64_t r) {
    normalize(norm, input + r * spec_.hidden_size, normed_.data() + r * spec_.hidden_size);
  });
  return normed_.data();
}

void Graph::add_to_residual(const NormWeights& post_norm, const model::Residual& residual, const float* input,
                            float* update, std::int64_t num_rows) {
  const std::int64_t hidden = spec_.hidden_size;
  each_row(team_, num_rows, [&](std::int64_t r) {
    float* const added = update + r * hidden;
    float* const sum = residual_.data() + r * hidden;
    if (!post_norm.weight.empty()) normalize(post_norm, added, added);
    if (spec_.residual_is_normed) std::copy_n(input + r * hidden, hidden, sum);
    multiply_by(residual.kept, hidden, sum);
    kernels_.add_scaled_f32(static_cast<float>(spec_.residual_scale * residual.added), added, hidden, sum);
  });
}

void Graph::mixer_block(std::span<const Row> rows, int layer, const float* input, float* output) {
  const model::Layer& spec = spec_.layers[static_cast<std::size_t>(layer)];
  const bool is_state = std::holds_alternative<model::State>(spec.mixer);
  if (std::holds_alternative<model::Latent>(spec.mixer))
    latent_block(rows, layer, input, output);
  else if (!is_state)
    attention_block(rows, layer, input, output);
  if (is_state || !spec.side_states.empty()) state_block(rows, layer, input, output, !is_state);
}

// The feed-forward reads what the mixer left; a layer may have one of the two only.
void Graph::layer_in_turn(std::span<const Row> rows, int layer) {
  const model::Layer& spec = spec_.layers[static_cast<std::size_t>(layer)];
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  if (!std::holds_alternative<model::NoMixer>(spec.mixer)) {
    const float* input = normalized(weights.attention_norm, residual_.data(), num_rows);
    mixer_block(rows, layer, input, block_out_.data());
    add_to_residual(weights.attention_post_norm, spec.mixer_residual, input, block_out_.data(), num_rows);
  }
  if (spec.ffn.kind == model::FfnKind::kNone) return;
  const float* input = normalized(weights.ffn_norm, residual_.data(), num_rows);
  ffn_block(num_rows, layer, input, block_out_.data());
  add_to_residual(weights.ffn_post_norm, spec.ffn_residual, input, block_out_.data(), num_rows);
}

// Both blocks read the layer's input, through one norm or each through its own.
void Graph::layer_side_by_side(std::span<const Row> rows, int layer) {
  const model::Layer& spec = spec_.layers[static_cast<std::size_t>(layer)];
  const LayerWeights& weights = weights_.layers[static_cast<std::size_t>(layer)];
  const auto num_rows = static_cast<std::int64_t>(rows.size());
  const float* input = normalized(weights.attention_norm, residual_.data(), num_rows);
  mixer_block(rows, layer, input, block_out_.data());
  if (!weights.ffn_norm.weight.empty()) input = normalized(weights.ffn_norm, residual_.data(), num_rows);
  float* const ffn_out = attended_.data();  // the attention has read it
  ffn_block(num_rows, layer, input, ffn_out);
  add_to_residual(weights.attention_post_norm, spec.mixer_residual, input, block_out_.data(), num_rows);
  add_to_residual(weights.ffn_post_norm, spec.ffn_residual, input, ffn_out, num_rows);
}

void Graph::forward(std::span<const Row> rows) {
  each_row(team_, std::ssize(rows), [&](std::int64_t r) { embed_row(rows[static_cast<std::size_t>(r)], r); });
  if (!states_.empty()) find_runs(rows);
  for (int layer = 0; layer < static_cast<int>(spec_.layers.size()); ++layer)
    if (spec_.is_parallel)
      layer_side_by_side(rows, layer);
    else
      layer_in_turn(rows, layer);
}

std::span<const float> Graph::final_states(std::int64_t first, std::int64_t count) {
  const std::int64_t hidden = spec_.hidden_size;
  each_row(team_, count, [&](std::int64_t r) {
    normalize(weights_.output_norm, residual_.data() + (first + r) * hidden, normed_.data() + r * hidden);
  });
  return {normed_.data(), static_cast<std::size_t>(count * hidden)};
}

std::span<const float> Graph::logits(std::span<const std::int32_t> rows) {
  PLIMSOLL_CHECK(static_cast<int>(rows.size()) <= max_logit_rows_,
                 "at most max_logit_rows rows of logits at once");
  const std::int64_t hidden = spec_.hidden_size;
  for (std::size_t i = 0; i < rows.size(); ++i)
    normalize(weights_.output_norm, residual_.data() + rows[i] * hidden,
              normed_.data() + static_cast<std::int64_t>(i) * hidden);
  // What rounding takes from the head's inputs nothing evens out behind it: they come in two planes.
  const Product head[] = {{&weights_.output_head, logits_.data(), spec_.vocab_size, 2}};
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
