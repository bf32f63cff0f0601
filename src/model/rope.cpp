// SPDX-License-Identifier: Apache-2.0
#include "model/rope.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "model/context_length.h"
#include "model/families/decoder.h"

namespace plimsoll::model {
namespace {

constexpr std::array<std::pair<std::string_view, RopeKind>, 10> kKinds{{
    {"default", RopeKind::kDefault},
    {"none", RopeKind::kDefault},  // GGUF's word for no scaling
    {"linear", RopeKind::kLinear},
    {"dynamic", RopeKind::kDynamic},
    {"llama3", RopeKind::kLlama3},
    {"yarn", RopeKind::kYarn},
    {"longrope", RopeKind::kLongrope},
    {"su", RopeKind::kLongrope},  // Phi-3's first name for it
    {"deepseek_yarn", RopeKind::kYarn},
    {"mrope", RopeKind::kDefault},  // sections of positions; the same as default where all are equal (text)
}};

// Kinds that change angles only, in a way RopeSpec does not hold: lengths are those of the default.
constexpr std::array<std::string_view, 1> kOtherKinds{"proportional"};

RopeKind read_kind(KeyReader& scaling, std::string_view key, ModelSpec& spec) {
  const std::string text = scaling.text(key, "default");
  if (std::find(kOtherKinds.begin(), kOtherKinds.end(), text) != kOtherKinds.end()) {
    add_trait(spec, Trait::kOwnRope);
    return RopeKind::kDefault;
  }
  for (const auto& [name, kind] : kKinds)
    if (name == text) return kind;
  scaling.add_error(
      ErrorCode::kUnsupported, key,
      fmt::format("reading the rotary embedding: unknown kind \"{}\"; known are default, linear, "
                  "dynamic, llama3, yarn and longrope",
                  text));
  return RopeKind::kDefault;
}

// A length in tokens; 0 when absent or not believable, which the context check of inspect tells.
std::int64_t context_or_zero(const KeyReader& keys, std::string_view key) {
  const auto tokens = keys[key].as_integer();
  return tokens && *tokens > 0 && *tokens <= kMaxContext ? *tokens : 0;
}

std::int64_t scaled(std::int64_t tokens, double factor) {
  const double result = static_cast<double>(tokens) * factor;
  return result < static_cast<double>(kMaxContext) ? std::llround(result) : kMaxContext;
}

double read_factor(KeyReader& scaling, double otherwise) {
  const double factor = scaling.positive("factor", otherwise);
  if (factor <= kMaxRopeFactor) return factor;
  scaling.add_error(
      ErrorCode::kMalformed, "factor",
      fmt::format("reading the rotary embedding: factor is {}, above {}", factor, kMaxRopeFactor));
  return 1.0;
}

void read_yarn(KeyReader& scaling, RopeSpec& rope) {
  rope.beta_fast = scaling.positive("beta_fast", rope.beta_fast);
  rope.beta_slow = scaling.positive("beta_slow", rope.beta_slow);
  rope.truncate = scaling.flag("truncate", true);
  for (const auto& [key, field] :
       {std::pair("mscale", &rope.mscale), std::pair("mscale_all_dim", &rope.mscale_all_dim)})
    if (const auto value = scaling[key].as_double(); value && std::isfinite(*value)) *field = *value;
}

void read_longrope(KeyReader& scaling, RopeSpec& rope) {
  const auto pairs = static_cast<std::size_t>(rope.rotary_dim) / 2;
  for (const auto& [key, field] :
       {std::pair("short_factor", &rope.short_factors), std::pair("long_factor", &rope.long_factors)}) {
    *field = scaling.numbers(key, static_cast<std::size_t>(kMaxHeadDim));
    if (field->size() != pairs)
      scaling.add_error(ErrorCode::kMalformed, key,
                        fmt::format("reading the rotary embedding: {} has {} entries, {} pairs rotate", key,
                                    field->size(), pairs));
  }
}

// What the kind needs besides its name, and the lengths that follow. `stated` is max_position_embeddings.
void read_scaling(KeyReader& scaling, std::int64_t stated, std::int64_t original, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  const std::int64_t base = original > 0 ? original : stated;
  spec.native_context_tokens = base;
  spec.extended_context_tokens = stated > base ? stated : base;
  if (const auto attention = scaling["attention_factor"].as_double(); attention && std::isfinite(*attention))
    rope.attention_factor = *attention;
  switch (rope.kind) {
    case RopeKind::kNone:
    case RopeKind::kDefault:
      return;
    case RopeKind::kLinear:
      rope.factor = read_factor(scaling, 1.0);
      spec.extended_context_tokens = scaled(stated, rope.factor);
      return;
    case RopeKind::kDynamic:
      rope.factor = read_factor(scaling, 1.0);
      rope.original_context_tokens = base;
      spec.extended_context_tokens = scaled(base, rope.factor);
      return;
    case RopeKind::kLlama3:
      rope.factor = read_factor(scaling, 8.0);
      rope.original_context_tokens = base;
      rope.low_frequency_factor = scaling.positive("low_freq_factor", 1.0);
      rope.high_frequency_factor = scaling.positive("high_freq_factor", 4.0);
      return;
    case RopeKind::kYarn:
      rope.original_context_tokens = base;
      rope.factor =
          read_factor(scaling, base > 0 ? static_cast<double>(stated) / static_cast<double>(base) : 1.0);
      spec.extended_context_tokens = scaled(base, rope.factor);
      read_yarn(scaling, rope);
      return;
    case RopeKind::kLongrope:
      rope.original_context_tokens = base;
      rope.factor =
          read_factor(scaling, base > 0 ? static_cast<double>(stated) / static_cast<double>(base) : 1.0);
      read_longrope(scaling, rope);
      return;
  }
}

// Layers with a window may turn by a base of their own, and are not scaled then.
void read_window_rope(KeyReader& keys, ModelSpec& spec) {
  KeyReader sliding = keys.child("rope_parameters").child("sliding_attention");
  const bool is_v5 = sliding.has("rope_theta");
  const bool is_apart = keys["rope_parameters"]["sliding_attention"].is_object();
  if (is_apart &&
      (!is_v5 || sliding.text("rope_type", "default") != "default" || sliding.has("partial_rotary_factor")))
    add_trait(spec, Trait::kOwnRope);
  if (!is_v5 && !keys.has("rope_local_base_freq")) return;
  RopeSpec rope;
  rope.rotary_dim = spec.rope.rotary_dim;
  rope.theta =
      is_v5 ? sliding.positive("rope_theta", rope.theta) : keys.positive("rope_local_base_freq", rope.theta);
  keys.take_error(sliding);
  if (rope != spec.rope) spec.window_rope = rope;
}

}  // namespace

bool is_known_rope_kind(std::string_view text) {
  return std::find(kOtherKinds.begin(), kOtherKinds.end(), text) != kOtherKinds.end() ||
         std::any_of(kKinds.begin(), kKinds.end(), [&](const auto& kind) { return kind.first == text; });
}

void read_config_rope(KeyReader& keys, int head_dim, double share, double default_theta,
                      std::int64_t default_context, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  const bool is_v5 = keys["rope_parameters"].is_object();
  KeyReader scaling = keys.child(is_v5 ? "rope_parameters" : "rope_scaling");
  if (scaling["full_attention"].is_object())  // one set per layer type; sliding layers see no further
    scaling = scaling.child("full_attention");
  rope.theta = keys.positive("rope_theta", default_theta);
  if (is_v5) rope.theta = scaling.positive("rope_theta", rope.theta);
  rope.kind = read_kind(scaling, scaling.has("rope_type") ? "rope_type" : "type", spec);

  const double partial =
      scaling.positive("partial_rotary_factor", keys.positive("partial_rotary_factor", share));
  rope.rotary_dim = static_cast<int>(static_cast<double>(head_dim) * std::min(partial, 1.0));
  // Pairs rotate: transformers' tables have one more dimension where a part of the head is an odd number.
  // A head's width that no config states (a class default that does not split) is no fault of the config.
  if (rope.rotary_dim % 2 != 0 && (rope.rotary_dim < head_dim || !keys.has("head_dim"))) {
    ++rope.rotary_dim;
    add_trait(spec, Trait::kOwnRope);
  }
  if (rope.rotary_dim % 2 != 0)
    keys.add_error(ErrorCode::kMalformed, "head_dim",
                   fmt::format("reading the rotary embedding: {} dimensions rotate, an even number is wanted",
                               rope.rotary_dim));

  const std::int64_t stated = keys.has("max_position_embeddings")
                                  ? context_or_zero(keys, "max_position_embeddings")
                                  : default_context;
  std::int64_t original = context_or_zero(scaling, "original_max_position_embeddings");
  if (original == 0) original = context_or_zero(keys, "original_max_position_embeddings");
  read_scaling(scaling, stated, original, spec);
  rope.has_sections = scaling.has("mrope_section");
  read_window_rope(keys, spec);
  keys.take_error(scaling);
}

void read_gguf_rope(KeyReader& keys, int head_dim, ModelSpec& spec) {
  RopeSpec& rope = spec.rope;
  rope.theta = keys.positive("rope.freq_base", 10000.0);
  rope.kind = read_kind(keys, "rope.scaling.type", spec);
  rope.rotary_dim = keys.count("rope.dimension_count", kMaxHeadDim, head_dim);
  if (rope.rotary_dim % 2 != 0 || rope.rotary_dim > head_dim)
    keys.add_error(
        ErrorCode::kMalformed, "rope.dimension_count",
        fmt::format("reading the rotary embedding: {} dimensions of {} rotate, an even number up to the "
                    "head's is wanted",
                    rope.rotary_dim, head_dim));
  const std::int64_t stated = context_or_zero(keys, "context_length");
  const std::int64_t original = context_or_zero(keys, "rope.scaling.original_context_length");
  const double factor = keys.positive("rope.scaling.factor", 1.0);
  // The converter writes the length after extension into context_length.
  spec.native_context_tokens = original > 0 ? original : stated;
  spec.extended_context_tokens = stated;
  if (rope.kind == RopeKind::kDefault) return;
  rope.factor = factor;
  rope.original_context_tokens = spec.native_context_tokens;
  rope.beta_fast = keys.positive("rope.scaling.yarn_beta_fast", rope.beta_fast);
  rope.beta_slow = keys.positive("rope.scaling.yarn_beta_slow", rope.beta_slow);
  if (const auto attention = keys["rope.scaling.attn_factor"].as_double();
      attention && std::isfinite(*attention))
    rope.attention_factor = *attention;
  // Without the original length, context_length is the one after extension, and all that is known.
  if (original > 0 && (rope.kind == RopeKind::kYarn || rope.kind == RopeKind::kLinear))
    spec.extended_context_tokens = std::max(stated, scaled(original, factor));
  if (rope.kind == RopeKind::kLongrope)
    keys.add_error(ErrorCode::kUnsupported, "rope.scaling.type",
                   "reading the rotary embedding: longrope factors stored as GGUF tensors are not read");
}

}  // namespace plimsoll::model
