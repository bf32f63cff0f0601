// SPDX-License-Identifier: Apache-2.0
// The buffers' half of memory/embedded.h.
#include <algorithm>
#include <array>
#include <cstdint>

#include "base/division.h"
#include "memory/embedded.h"

namespace plimsoll::memory {
namespace {

/// Largest widths over all layers.
struct Widths {
  std::int64_t hidden = 0, query = 0, key = 0, value = 0, attended = 0, latent = 0, state = 0;
  std::int64_t columns = 0;             // of matrices that are multiplied
  std::int64_t scratch = 0, parts = 0;  // of attention
  std::int64_t intermediate = 0, gate = 0, mixture = 0, experts = 0;
};

void raise(std::int64_t& width, std::int64_t least) {
  width = std::max(width, least);
}

void widen_for(const model::Attention& attention, Widths& widths) {
  raise(widths.query, query_width(attention));
  raise(widths.key, std::int64_t{attention.kv_heads} * attention.head_dim);
  raise(widths.value, std::int64_t{attention.kv_heads} * attention.value_dim());
  raise(widths.attended, std::int64_t{attention.q_heads} * attention.value_dim());
  raise(widths.scratch, attention_scratch(attention.head_dim, attention.value_dim()));
  raise(widths.parts, attention.q_heads * attention_part(attention.value_dim()));
}

void widen_for(const model::Latent& latent, Widths& widths) {
  const std::int64_t heads = latent.q_heads, nope = latent.qk_nope_head_dim, rank = latent.kv_lora_rank;
  raise(widths.query, heads * (nope + latent.qk_rope_head_dim));
  raise(widths.key, latent.width());
  raise(widths.value, latent.q_lora_rank);
  raise(widths.attended, heads * latent.v_head_dim);
  raise(widths.scratch, attention_scratch(latent.width(), rank));
  raise(widths.latent, latent.width() + std::max(rank, nope));
  raise(widths.columns, std::max({rank, nope, std::int64_t{latent.q_lora_rank}}));
}

void widen_for(const model::State&, Widths&) {}
void widen_for(const model::NoMixer&, Widths&) {}
void widen_for(const model::TwoSided& mixer, Widths& widths) {
  widen_for(mixer.attention, widths);
}

Widths widths_of(const model::ModelSpec& spec) {
  Widths widths;
  widths.hidden = spec.hidden_size;
  for (const model::Layer& layer : spec.layers) {
    std::visit([&](const auto& mixer) { widen_for(mixer, widths); }, layer.mixer);
    if (const model::State* state = state_of(layer)) {
      const StateWidths parts = state_widths(*state);
      raise(widths.state, std::max(parts.total(), widths.hidden));
      // Also what passes between two matrices, and a row of decays.
      raise(widths.attended, std::max({parts.gate, parts.selection, std::int64_t{state->state_size}}));
    }
    const model::Ffn& ffn = layer.ffn;
    if (ffn.kind == model::FfnKind::kNone) continue;
    const bool is_dense = ffn.kind == model::FfnKind::kDense;
    const std::int64_t inner = is_dense
                                   ? ffn.intermediate_size
                                   : std::max(ffn.expert_intermediate_size, ffn.shared_intermediate_size);
    widths.intermediate = std::max(widths.intermediate, inner);
    if (ffn.is_gated) widths.gate = std::max(widths.gate, inner);
    if (is_dense) continue;
    // A choice is an expert, its weight, and its place among the rows of that expert.
    widths.mixture = std::max(widths.mixture, 2 * std::int64_t{spec.hidden_size} + ffn.experts +
                                                  3 * std::int64_t{ffn.experts_per_token});
    widths.experts = std::max(widths.experts, std::int64_t{ffn.experts});
  }
  raise(widths.columns, std::max({widths.hidden, widths.intermediate, widths.attended}));
  return widths;
}

/// Sums up whether every size so far fitted 63 bits.
class FloatRows {
 public:
  Bytes of(std::int64_t rows, std::int64_t width) {
    const auto elements = checked_product(rows, width);
    const auto bytes = elements ? checked_product(*elements, sizeof(float)) : std::nullopt;
    // A sixteenth of the range each, so that all parts also add up without overflow.
    if (!bytes || *bytes > INT64_MAX / 16) is_sound_ = false;
    return Bytes(is_sound_ ? *bytes : 0);
  }
  bool is_sound() const { return is_sound_; }

 private:
  bool is_sound_ = true;
};

}  // namespace

StateWidths state_widths(const model::State& state) {
  using Kind = model::StateKind;
  const std::int64_t inner = state.rows(), heads = state.heads;
  StateWidths widths{.mixed = state.channels(), .gate = inner};
  switch (state.kind) {
    case Kind::kMamba:
      widths.step = inner;
      widths.selection = state.time_rank + 2 * std::int64_t{state.state_size};
      break;
    case Kind::kMamba2:
    case Kind::kGatedDeltaNet:
      widths.step = widths.strength = heads;
      break;
    case Kind::kKda:
      widths.step = inner;
      widths.strength = heads;
      break;
    case Kind::kLightning:
      widths.mixed = 3 * inner;
      break;
    case Kind::kShortConv:
      widths.gate = widths.step = widths.mixed;
      break;
    case Kind::kLinear:
    case Kind::kIndexRing:
      break;
  }
  return widths;
}

std::int64_t step_tokens(const model::ModelSpec& spec, int max_num_batched_tokens, std::int64_t length) {
  return model::is_encoder(spec) ? std::max<std::int64_t>(max_num_batched_tokens, length)
                                 : max_num_batched_tokens;
}

Bytes Workspace::activation() const {
  return states + residual + normed + attention_out + down_out + query + key + value + latents + gate + up +
         codes + rope_angles + experts;
}

Bytes Workspace::total() const {
  return activation() + logits + thread_rows + attention_scratch + attention_parts;
}

Result<Workspace> embedded_workspace(const model::ModelSpec& spec, const EmbeddedOptions& options) {
  if (options.threads < 1 || options.max_num_seqs < 1 || options.max_num_batched_tokens < 1)
    return fail(ErrorCode::kUsage, "threads, sequences and batched tokens must each be at least 1",
                "--max-num-seqs, --max-num-batched-tokens, --threads", "leave them out for the defaults");
  const Widths widths = widths_of(spec);
  const std::int64_t length = options.max_model_len.value_or(spec.context_tokens());
  const std::int64_t tokens = step_tokens(spec, options.max_num_batched_tokens, length);
  FloatRows rows;
  Workspace space;
  space.residual = rows.of(tokens, widths.hidden);
  space.normed = rows.of(tokens, widths.hidden);
  space.attention_out = rows.of(tokens, std::max(widths.hidden, widths.attended));
  space.states = rows.of(tokens, widths.state);
  space.down_out = rows.of(tokens, widths.hidden);
  space.query = rows.of(tokens, widths.query);
  space.key = rows.of(tokens, widths.key);
  space.value = rows.of(tokens, widths.value);
  const auto of_threads = checked_product(tokens, options.threads);
  space.latents = rows.of(of_threads.value_or(INT64_MAX), widths.latent);
  space.gate = rows.of(tokens, widths.gate);
  space.up = rows.of(tokens, widths.intermediate);
  if (options.compute == EmbeddedCompute::kAuto)
    space.codes = rows.of(tokens, 2 * divided_up(widths.columns, kInputBlock) * (kInputBlockBytes / 4));
  space.experts = rows.of(tokens, widths.mixture) + rows.of(1, widths.experts + (widths.experts > 0 ? 1 : 0));
  space.rope_angles = rows.of(
      tokens, std::int64_t{spec.rope.rotary_dim} + (spec.window_rope ? spec.window_rope->rotary_dim : 0));
  if (!spec.pooling) space.logits = rows.of(std::min(options.max_num_seqs, kLogitRows), spec.vocab_size);
  const int scratch_rows = options.compute == EmbeddedCompute::kAuto ? kPanelScratchRows : kWidenedRows;
  space.thread_rows = rows.of(std::int64_t{options.threads} * scratch_rows, widths.columns);
  space.attention_scratch = rows.of(options.threads, widths.scratch);
  if (options.threads > 1)
    space.attention_parts =
        rows.of(std::max<std::int64_t>(divided_up(length, kSpanPositions), kSharedSpans), widths.parts);
  if (!rows.is_sound())
    return fail(ErrorCode::kMalformed, "the engine's buffers for this model would not fit 63 bits",
                "config.json", "check the sizes in the config, or lower --max-num-batched-tokens");
  return space;
}

}  // namespace plimsoll::memory
