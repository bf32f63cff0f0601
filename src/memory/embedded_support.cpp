// SPDX-License-Identifier: Apache-2.0
// Which layers the embedded engine computes: check_embedded of memory/embedded.h.
#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "memory/embedded.h"
#include "memory/embedded_cache.h"
#include "memory/weights.h"

namespace plimsoll::memory {
namespace {

constexpr const char* kInstead = "serve it with another engine";

Status refuse(const std::string& what, const std::string& where) {
  return fail(ErrorCode::kUnsupported, what, where, kInstead);
}

Status check_mixer(const model::Attention& attention, const std::string& where) {
  if (attention.is_cross)
    return refuse("the embedded engine computes no attention over another input than the text", where);
  if (attention.indexer)
    return refuse("the embedded engine computes no attention that an indexer chooses positions for", where);
  return {};
}

Status check_mixer(const model::Latent& latent, const std::string& where) {
  if (latent.indexer)
    return refuse("the embedded engine has no indexer that chooses what sparse latent attention reads",
                  where);
  if (latent.window_tokens || latent.tokens_per_entry != 1)
    return refuse("the embedded engine keeps no window of latent vectors beside compressed ones", where);
  if (latent.qk_nope_head_dim < 1)
    return refuse("the embedded engine computes no latent attention whose heads turn whole", where);
  return {};
}

Status check_mixer(const model::State& state, const std::string& where) {
  using Kind = model::StateKind;
  const bool has_recurrence = state.kind != Kind::kShortConv;
  if (state.kind == Kind::kLinear || state.kind == Kind::kIndexRing ||
      (has_recurrence && state.state_size < 1) || state.is_copied)
    return refuse(
        fmt::format("the embedded engine keeps no {} state, which this model has", to_string(state.kind)),
        where);
  const bool is_by_heads = has_recurrence && state.kind != Kind::kMamba;
  const bool is_sound = !is_by_heads || (state.heads > 0 && state.head_dim > 0 &&
                                         std::int64_t{state.heads} * state.head_dim == state.rows());
  const bool has_groups =
      state.kind != Kind::kMamba2 || (state.groups > 0 && state.heads % state.groups == 0);
  const bool has_keys = !is_by_heads || state.kind == Kind::kMamba2 ||
                        (state.key_heads > 0 && state.heads % state.key_heads == 0);
  if (!is_sound || !has_groups || !has_keys || state.norm_groups < 1 || state.rows() % state.norm_groups != 0)
    return refuse("the heads of a state do not share its keys or channels evenly", where);
  if (state.kind != Kind::kLightning && state.kernel < 2)
    return refuse("the embedded engine computes no state without a convolution", where);
  return {};
}

Status check_mixer(const model::NoMixer&, const std::string&) {
  return {};
}

// Keys and values are those of the step itself.
Status check_mixer(const model::TwoSided& mixer, const std::string& where) {
  const model::Attention& attention = mixer.attention;
  const bool is_plain = !attention.window_tokens && !attention.chunk_tokens && !attention.has_sinks &&
                        !attention.has_output_gate && attention.soft_cap == 0.0 && attention.alibi_max == 0.0;
  if (!is_plain)
    return refuse("the embedded engine computes attention to both sides only where it is plain", where);
  return check_mixer(attention, where);
}

Status check_router(const model::Ffn& ffn) {
  const model::Router& router = ffn.router;
  if (ffn.experts % router.groups != 0 ||
      std::int64_t{ffn.experts / router.groups} * router.groups_per_token < ffn.experts_per_token)
    return refuse(
        fmt::format("the embedded engine cannot choose {} of {} experts from the best {} of {} groups",
                    ffn.experts_per_token, ffn.experts, router.groups_per_token, router.groups),
        "config.json: /n_group");
  return {};
}

Status check_layer(const model::Layer& layer, const std::string& where) {
  PLIMSOLL_TRY_VOID(std::visit([&](const auto& mixer) { return check_mixer(mixer, where); }, layer.mixer));
  if (layer.side_states.size() > 1 ||
      (!layer.side_states.empty() && !std::holds_alternative<model::Attention>(layer.mixer)))
    return refuse("the embedded engine computes one state beside an attention, not more", where);
  for (const model::State& state : layer.side_states) PLIMSOLL_TRY_VOID(check_mixer(state, where));
  if (state_of(layer) && layer.ffn.activation != model::Activation::kSilu)
    return refuse("the embedded engine computes states behind SiLU only", "config.json: /hidden_act");
  if (layer.kv_source)
    return refuse("the embedded engine computes no layer that reads another layer's keys and values", where);
  if (layer.num_mixers != 1) return refuse("the embedded engine computes no layer of several mixers", where);
  if (layer.ffn.kind == model::FfnKind::kMoe) PLIMSOLL_TRY_VOID(check_router(layer.ffn));
  if (layer.ffn.kind != model::FfnKind::kNone && layer.ffn.activation == model::Activation::kOther)
    return refuse("the embedded engine does not know the activation of this model",
                  "config.json: /hidden_act");
  return {};
}

}  // namespace

Status check_embedded(const model::ModelSpec& spec) {
  if (!spec.encoders.empty())
    return refuse("the embedded engine runs no " + spec.encoders.front() + ", and the model has one",
                  "config.json: /" + spec.encoders.front());
  if (!spec.traits.empty())
    return refuse(fmt::format("the embedded engine does not compute {}, which this model has",
                              model::describe(spec.traits.front())),
                  "config.json");
  if (spec.pooling && !spec.pooling->problem.empty())
    return refuse(spec.pooling->problem, spec.pooling->where);
  const auto is_two_sided = [](const model::Layer& layer) {
    return std::holds_alternative<model::TwoSided>(layer.mixer);
  };
  if (std::ranges::any_of(spec.layers, is_two_sided)) {
    if (!model::is_encoder(spec))
      return refuse("the embedded engine computes no layers to both sides beside others", "config.json");
    if (!spec.pooling)
      return refuse("an encoder generates no text, and nothing says how it embeds one", "modules.json");
  }
  for (std::size_t i = 0; i < spec.layers.size(); ++i)
    PLIMSOLL_TRY_VOID(check_layer(spec.layers[i], fmt::format("layer {}", i)));
  // A weight without a role is one that the graph would leave out.
  for (const model::Weight& weight : spec.weights)
    if (weight.role == model::Role::kNone && !is_left_out(spec, weight))
      return refuse("the embedded engine has no use for " + weight.hf_name + ", which this model has",
                    "config.json");
  return {};
}

}  // namespace plimsoll::memory
