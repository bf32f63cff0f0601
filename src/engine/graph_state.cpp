// SPDX-License-Identifier: Apache-2.0
// Mixers with a state of engine/graph.h: Mamba 1 and 2, gated delta nets, Kimi delta attention, lightning
// attention, short convolutions. All but the last are one recurrence over independent rows: row = decay * row
// + change * key, out = row . query; what key, query, value and decay are differs. Tokens of a sequence go
// through it one after the other, so the bits do not depend on how they are cut into steps. Source: the
// recurrent forms of transformers' modeling_mamba2, qwen3_next, kimi_linear, minimax and jamba.
#include <algorithm>
#include <cmath>

#include "engine/graph_parts.h"
#include "kernels/elementwise.h"
#include "memory/embedded.h"

namespace plimsoll::engine {
namespace {

using Kind = model::StateKind;

/// State rows, or channels, that one thread takes at a time.
constexpr std::int64_t kStateRowsPerChunk = 64;
/// Under the root of delta nets' norms of q and k.
constexpr float kUnitNormEps = 1e-6F;

/// Calls f(first of the layer's rows, count, their floats) for the parts of [begin, end).
template <class Function>
void for_parts(const KvPool& pool, const Row& row, const std::vector<memory::StateRows>& places,
               std::int64_t begin, std::int64_t end, std::int64_t elements, Function f) {
  for (const memory::StateRows& place : places) {
    const std::int64_t first = std::max(begin, place.first), last = std::min(end, place.first + place.count);
    if (first >= last) continue;
    const std::int32_t block = row.tables[static_cast<std::size_t>(place.group)][0];
    f(first, last - first, pool.state(block, place) + (first - place.first) * elements);
  }
}

/// x / sqrt(sum x^2 + eps) * scale.
void to_unit_length(const kernels::Kernels& kernels, float scale, std::int64_t n, float* x) {
  const float factor = scale / std::sqrt(kernels.dot_f32(x, x, n) + kUnitNormEps);
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

}  // namespace

/// What the steps of a state_block share.
struct Graph::StateCall {
  int layer = 0;
  const model::State& state;
  const LayerWeights& weights;
  memory::StateWidths widths;
  std::int64_t stride = 0;  // of states_, elements

  std::int64_t gate() const { return widths.mixed; }
  std::int64_t step() const { return gate() + widths.gate; }
  std::int64_t strength() const { return step() + widths.step; }
  std::int64_t selection() const { return strength() + widths.strength; }
};

void Graph::project_state(const StateCall& call, const float* input, std::int64_t num_rows) {
  const StateWeights& weights = call.weights.state;
  Product products[7];
  std::size_t count = 0;
  const auto add = [&](const StoredMatrix& matrix, std::int64_t at) {
    if (matrix.rows > 0) products[count++] = {&matrix, states_.data() + at, call.stride};
    return at + matrix.rows;
  };
  if (weights.query_key_value.rows > 0)  // query, key and value may be those of an attention beside it
    add(weights.query_key_value, 0);
  else
    add(call.weights.value, add(call.weights.key, add(call.weights.query, 0)));
  const bool is_kda = call.state.kind == Kind::kKda;
  const bool has_pairs = is_kda && weights.step_expansion.rows > 0;
  if (!has_pairs) {
    add(weights.gate, call.gate());
    add(weights.step, call.step());
  }
  add(weights.beta, call.strength());
  multiply(std::span(products).first(count), input, num_rows);
  if (has_pairs) {
    multiply_pair(call, weights.gate, weights.gate_expansion, input, call.gate(), num_rows);
    multiply_pair(call, weights.step, weights.step_expansion, input, call.step(), num_rows);
  }
  if (weights.input_bias.empty() && call.state.kind != Kind::kMamba2) return;
  for (std::int64_t r = 0; r < num_rows; ++r) scale_state_input(call, r);
}

// Two matrices one behind the other, through a narrow vector.
void Graph::multiply_pair(const StateCall& call, const StoredMatrix& first, const StoredMatrix& second,
                          const float* input, std::int64_t at, std::int64_t num_rows) {
  const Product narrow[] = {{&first, attended_.data(), first.rows}};
  multiply(narrow, input, num_rows);
  const Product wide[] = {{&second, states_.data() + at, call.stride}};
  multiply(wide, attended_.data(), num_rows);
}

// The bias of what came in, and Mamba 2's multipliers of its parts.
void Graph::scale_state_input(const StateCall& call, std::int64_t r) {
  float* row = states_.data() + r * call.stride;
  add_bias(call.weights.state.input_bias, row);
  if (call.state.kind != Kind::kMamba2) return;
  const auto& scales = call.state.input_scales;
  const std::int64_t inner = call.widths.gate, b = (call.widths.mixed - inner) / 2;
  const auto scale = [&](std::int64_t at, std::int64_t count, double by) {
    for (std::int64_t i = at; i < at + count && by != 1.0; ++i) row[i] *= static_cast<float>(by);
  };
  scale(call.gate(), inner, scales[0]);
  scale(0, inner, scales[1]);
  scale(inner, b, scales[2]);
  scale(inner + b, b, scales[3]);
  scale(call.step(), call.widths.step, scales[4]);
}

// Channels [begin, end) of one sequence's rows: each becomes the weighted sum of its last inputs, or silu of
// it where a recurrence follows.
void Graph::convolve(const StateCall& call, std::span<const Row> rows, std::int64_t first_row,
                     std::int64_t begin, std::int64_t end) {
  const StateWeights& weights = call.weights.state;
  const std::int64_t kernel = call.state.kernel, kept = kernel - 1;
  const bool has_bias = !weights.convolution_bias.empty();
  for_parts(pool_, rows.front(), pool_.state_place(call.layer).convolution, begin, end, kept,
            [&](std::int64_t first, std::int64_t count, float* history) {
              if (rows.front().position == 0) std::fill_n(history, count * kept, 0.0F);
              for (std::int64_t c = first; c < first + count; ++c, history += kept) {
                const float* weight = weights.convolution.data() + c * kernel;
                const float bias = has_bias ? weights.convolution_bias[static_cast<std::size_t>(c)] : 0.0F;
                float* value = states_.data() + first_row * call.stride + c;
                for (std::size_t r = 0; r < rows.size(); ++r, value += call.stride) {
                  float sum = *value * weight[kept];
                  for (std::int64_t k = 0; k < kept; ++k) sum += history[k] * weight[k];
                  std::copy(history + 1, history + kept, history);
                  history[kept - 1] = *value;
                  *value = sum + bias;
                }
              }
            });
  for (std::size_t r = 0; r < rows.size() && call.state.kind != Kind::kShortConv; ++r)
    kernels::activate(kernels::Activation::kSilu, end - begin,
                      states_.data() + (first_row + static_cast<std::int64_t>(r)) * call.stride + begin);
}

// Mamba 1: step, B and C of what was convolved, and the step of each channel.
void Graph::select(const StateCall& call, std::int64_t num_rows) {
  const StateWeights& weights = call.weights.state;
  const model::State& state = call.state;
  const std::int64_t inner = call.widths.gate, rank = state.time_rank;
  const auto eps = static_cast<float>(spec_.norm_eps);
  for (std::int64_t r = 0; r < num_rows; ++r)  // products read rows without gaps
    std::copy_n(states_.data() + r * call.stride, inner, attended_.data() + r * inner);
  const Product selection[] = {{&weights.selection, states_.data() + call.selection(), call.stride}};
  multiply(selection, attended_.data(), num_rows);
  for (std::int64_t r = 0; r < num_rows; ++r) {
    float* step = states_.data() + r * call.stride + call.selection();
    const auto norm = [&](const std::vector<float>& weight, float* values) {
      if (!weight.empty()) kernels_.rms_norm(values, weight.data(), std::ssize(weight), eps, values);
    };
    norm(weights.step_norm, step);
    norm(weights.b_norm, step + rank);
    norm(weights.c_norm, step + rank + state.state_size);
    std::copy_n(step, rank, attended_.data() + r * rank);
  }
  const Product expansion[] = {{&weights.step_expansion, states_.data() + call.step(), call.stride}};
  multiply(expansion, attended_.data(), num_rows);
}

// What the recurrence reads of one row: steps and decays through their functions, q and k at unit length.
void Graph::prepare_recurrence(const StateCall& call, std::int64_t r) {
  const StateWeights& weights = call.weights.state;
  const model::State& state = call.state;
  float* row = states_.data() + r * call.stride;
  float* step = row + call.step();
  float* strength = row + call.strength();
  for (std::int64_t i = 0; i < call.widths.step; ++i)
    step[i] = kernels::softplus(step[i] + weights.step_bias[static_cast<std::size_t>(i)]);
  if (state.kind == Kind::kMamba2)
    for (int head = 0; head < state.heads; ++head) {
      step[head] = std::clamp(step[head], static_cast<float>(state.least_step),
                              static_cast<float>(state.longest_step));
      strength[head] = std::exp(step[head] * weights.decay[static_cast<std::size_t>(head)]);
    }
  if (state.kind != Kind::kGatedDeltaNet && state.kind != Kind::kKda) return;
  const std::int64_t dim = state.state_size;
  const std::int64_t per_head = call.widths.step / state.heads;
  for (int head = 0; head < state.heads; ++head) {
    strength[head] = kernels::sigmoid(strength[head]);
    kernels_.exp_scaled(weights.decay[static_cast<std::size_t>(head)], step + head * per_head, per_head,
                        step + head * per_head);
  }
  const auto query_scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(dim)));
  for (int head = 0; head < state.key_heads; ++head) {
    to_unit_length(kernels_, query_scale, dim, row + head * dim);
    to_unit_length(kernels_, 1.0F, dim, row + (state.key_heads + head) * dim);
  }
}

// One token as one row of the state sees it. `decays`: [state_size] of the calling thread.
kernels::Recurrence Graph::recurrence_of(const StateCall& call, std::int64_t r, std::int64_t i,
                                         float* decays) const {
  const model::State& state = call.state;
  const float* row = states_.data() + r * call.stride;
  const std::int64_t n = state.state_size, inner = call.widths.gate;
  kernels::Recurrence token;
  if (state.kind == Kind::kMamba) {
    const float step = row[call.step() + i];
    token.key = row + call.selection() + state.time_rank;
    token.query = token.key + n;
    token.value = row[i] * step;
    kernels_.exp_scaled(step, call.weights.state.decay.data() + i * n, n, decays);
    token.decays = decays;
    return token;
  }
  const std::int64_t head = i / state.head_dim;
  if (state.kind == Kind::kMamba2) {
    const std::int64_t group = head / (state.heads / state.groups);
    token.key = row + inner + group * n;
    token.query = token.key + state.groups * n;
    token.value = row[i] * row[call.step() + head];
    token.decay = row[call.strength() + head];
    return token;
  }
  const std::int64_t key_head = head / (state.heads / state.key_heads), keys = state.key_heads * n;
  token.query = row + key_head * n;
  token.key = token.query + keys;
  token.value = row[2 * keys + i];
  if (state.kind == Kind::kLightning) {
    token.decay = call.weights.state.decay[static_cast<std::size_t>(head)];
    return token;
  }
  token.is_delta = true;
  token.beta = row[call.strength() + head];
  if (state.kind == Kind::kKda)
    token.decays = row + call.step() + head * n;
  else
    token.decay = row[call.step() + head];
  return token;
}

// Rows [begin, end) of the state of one sequence, over all its tokens of this step.
void Graph::recur(const StateCall& call, std::span<const Row> rows, std::int64_t first_row,
                  std::int64_t begin, std::int64_t end, int thread) {
  const model::State& state = call.state;
  const std::int64_t n = state.state_size, inner = call.widths.gate;
  const std::vector<float>& skip = call.weights.state.skip;
  float* decays = scratch_.data() + thread * scratch_stride_;
  for_parts(pool_, rows.front(), pool_.state_place(call.layer).recurrent, begin, end, n,
            [&](std::int64_t first, std::int64_t count, float* held) {
              if (rows.front().position == 0) std::fill_n(held, count * n, 0.0F);
              for (std::int64_t i = first; i < first + count; ++i, held += n) {
                const std::size_t skip_at =
                    static_cast<std::size_t>(state.head_dim > 0 ? i / state.head_dim : i);
                for (std::size_t t = 0; t < rows.size(); ++t) {
                  const std::int64_t r = first_row + static_cast<std::int64_t>(t);
                  float out = kernels_.recur(recurrence_of(call, r, i, decays), n, held);
                  if (!skip.empty())
                    out += skip[skip_at] * states_[static_cast<std::size_t>(r * call.stride + i)];
                  attended_[static_cast<std::size_t>(r * inner + i)] = out;
                }
              }
            });
}

// Norm and gate of what the recurrence gave for one row.
void Graph::finish_state(const StateCall& call, std::int64_t r) {
  const model::State& state = call.state;
  const std::vector<float>& weight = call.weights.state.norm;
  const std::int64_t inner = call.widths.gate;
  float* out = attended_.data() + r * inner;
  const float* gate = states_.data() + r * call.stride + call.gate();
  const bool is_sigmoid = state.kind == Kind::kKda || state.kind == Kind::kLightning;
  const auto apply_gate = [&] {
    if (is_sigmoid)
      kernels::gate_by_sigmoid(gate, inner, out);
    else
      kernels_.silu_mul(gate, out, inner, out);
  };
  if (!state.norms_before_gate) apply_gate();
  if (!weight.empty()) {
    const std::int64_t width = inner / state.norm_groups;
    const auto eps = static_cast<float>(state.norm_eps > 0 ? state.norm_eps : spec_.norm_eps);
    const std::int64_t step = std::ssize(weight) == inner ? width : 0;  // or all groups share the weight
    for (int group = 0; group < state.norm_groups; ++group)
      kernels_.rms_norm(out + group * width, weight.data() + group * step, width, eps, out + group * width);
  }
  if (state.norms_before_gate) apply_gate();
}

// One row's input of a short convolution by its gate, or its output by the other, to `out`.
void Graph::gate_short(const StateCall& call, std::int64_t r, std::int64_t gate, float* out) {
  const float* row = states_.data() + r * call.stride;
  for (std::int64_t i = 0; i < call.widths.mixed; ++i) out[i] = row[i] * row[gate + i];
}

void Graph::find_runs(std::span<const Row> rows) {
  runs_.clear();
  for (std::size_t r = 0; r < rows.size(); ++r)
    if (r == 0 || rows[r].tables.data() != rows[r - 1].tables.data())
      runs_.push_back({r, 1});
    else
      ++runs_.back().count;
}

void Graph::state_block(std::span<const Row> rows, int layer, const float* input, float* output, bool adds) {
  const model::State& state = *memory::state_of(spec_.layers[static_cast<std::size_t>(layer)]);
  const StateCall call{layer, state, weights_.layers[static_cast<std::size_t>(layer)],
                       memory::state_widths(state), state_stride_};
  const auto num_rows = static_cast<std::int64_t>(rows.size()), inner = call.widths.gate;
  const auto for_runs = [&](std::int64_t width, const auto& work) {
    const std::int64_t chunks = divided_up(width, kStateRowsPerChunk);
    team_.run(std::ssize(runs_) * chunks, [&](std::int64_t task, int thread) {
      const Run& run = runs_[static_cast<std::size_t>(task / chunks)];
      const std::int64_t begin = task % chunks * kStateRowsPerChunk;
      work(rows.subspan(run.first, run.count), static_cast<std::int64_t>(run.first), begin,
           std::min(begin + kStateRowsPerChunk, width), thread);
    });
  };
  project_state(call, input, num_rows);
  const bool is_short = state.kind == Kind::kShortConv;
  if (is_short)
    team_.run(num_rows, [&](std::int64_t r, int) {
      gate_short(call, r, call.step(), states_.data() + r * call.stride);
    });
  if (state.kernel > 1)
    for_runs(call.widths.mixed, [&](auto run, auto first, auto begin, auto end, int) {
      convolve(call, run, first, begin, end);
    });
  else
    team_.run(num_rows, [&](std::int64_t r, int) {
      kernels::activate(kernels::Activation::kSilu, call.widths.mixed, states_.data() + r * call.stride);
    });
  if (state.kind == Kind::kMamba) select(call, num_rows);
  if (is_short) {
    team_.run(num_rows,
              [&](std::int64_t r, int) { gate_short(call, r, call.gate(), attended_.data() + r * inner); });
  } else {
    team_.run(num_rows, [&](std::int64_t r, int) { prepare_recurrence(call, r); });
    for_runs(inner, [&](auto run, auto first, auto begin, auto end, int thread) {
      recur(call, run, first, begin, end, thread);
    });
    team_.run(num_rows, [&](std::int64_t r, int) { finish_state(call, r); });
  }

  const std::int64_t hidden = spec_.hidden_size;
  float* result = adds ? states_.data() : output;
  const Product out[] = {{&call.weights.state.output, result, hidden}};
  multiply(out, attended_.data(), num_rows);
  for (std::int64_t r = 0; r < num_rows; ++r) add_bias(call.weights.state.output_bias, result + r * hidden);
  const auto scale = static_cast<float>(state.output_scale);
  if (adds)
    kernels_.add_scaled_f32(scale, result, num_rows * hidden, output);
  else if (scale != 1.0F)
    for (std::int64_t i = 0; i < num_rows * hidden; ++i) output[i] *= scale;
}

}  // namespace plimsoll::engine
