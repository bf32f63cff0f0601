// SPDX-License-Identifier: Apache-2.0
// What the weights of a spec add up to, and where a file holds them.
#include <algorithm>
#include <array>
#include <utility>

#include "base/units.h"
#include "model/model.h"
#include "model/tensor_kinds.h"

namespace plimsoll::model {
namespace {

constexpr std::array<std::string_view, 14> kGroupNames{
    "embedding", "table",          "attention", "indexer", "state",   "ffn", "router",
    "experts",   "shared_experts", "norm",      "head",    "encoder", "mtp", "other"};

constexpr std::array<std::string_view, 8> kStateNames{"mamba",     "mamba2", "gated_delta_net", "kda",
                                                      "lightning", "linear", "short_conv",      "index_ring"};

static_assert(kGroupNames.size() == static_cast<std::size_t>(WeightGroup::kOther) + 1);
static_assert(kStateNames.size() == static_cast<std::size_t>(StateKind::kIndexRing) + 1);

// The sum of `share` over all parameters; nothing when it does not fit 63 bits.
template <class Share>
std::optional<std::int64_t> sum_of(const ModelSpec& spec, Share share) {
  std::optional<std::int64_t> total = 0;
  for (const Weight& weight : spec.weights)
    if (total && weight.is_parameter) total = checked_sum(*total, share(weight));
  return total;
}

// What of a layer's experts one token uses; the tensor may hold one expert or all of them. Those that no file
// holds do nothing.
std::int64_t share_of_experts(const ModelSpec& spec, const Weight& weight) {
  if (weight.is_optional) return 0;
  if (weight.layer < 0 || weight.layer >= static_cast<int>(spec.layers.size())) return weight.elements();
  const Ffn& ffn = spec.layers[static_cast<std::size_t>(weight.layer)].ffn;
  return capped_product(weight.elements() / std::max(1, ffn.experts), ffn.experts_per_token);
}

}  // namespace

std::string_view to_string(WeightGroup group) {
  return kGroupNames[static_cast<std::size_t>(group)];
}

std::string_view to_string(StateKind kind) {
  return kStateNames[static_cast<std::size_t>(kind)];
}

namespace {

std::string_view kind_name(const Attention& attention) {
  if (attention.is_cross) return "cross";
  if (attention.chunk_tokens) return "chunked";
  return attention.window_tokens ? "sliding" : "full";
}
std::string_view kind_name(const Latent& latent) {
  return latent.indexer || latent.tokens_per_entry > 1 ? "sparse_mla" : "mla";
}
std::string_view kind_name(const State& state) {
  return to_string(state.kind);
}
std::string_view kind_name(const NoMixer&) {
  return "none";
}
std::string_view kind_name(const TwoSided&) {
  return "none";  // nothing is kept
}

}  // namespace

std::string_view kind_of(const Mixer& mixer) {
  return std::visit([](const auto& kind) { return kind_name(kind); }, mixer);
}

std::int64_t Weight::elements() const {
  std::int64_t elements = copies;
  for (const std::int64_t dimension : shape) elements = capped_product(elements, dimension);
  return elements;
}

bool is_encoder(const ModelSpec& spec) {
  return !spec.layers.empty() && std::ranges::all_of(spec.layers, [](const Layer& layer) {
    return std::holds_alternative<TwoSided>(layer.mixer);
  });
}

const artifact::Tensor* find_tensor(const artifact::Artifact& artifact, const Weight& weight) {
  const std::string& name = artifact.form() == artifact::Form::kGguf ? weight.gguf_name : weight.hf_name;
  return name.empty() ? nullptr : artifact.find(name);
}

std::optional<std::int64_t> count_parameters(const ModelSpec& spec) {
  if (!spec.has_all_weights || spec.weights.empty()) return std::nullopt;
  return sum_of(
      spec, [](const Weight& weight) { return weight.group == WeightGroup::kMtp ? 0 : weight.elements(); });
}

std::optional<std::int64_t> count_active_parameters(const ModelSpec& spec, bool with_embedding) {
  if (spec.weights.empty()) return std::nullopt;  // encoders are not counted: they need not be known
  return sum_of(spec, [&](const Weight& weight) -> std::int64_t {
    switch (weight.group) {
      case WeightGroup::kMtp:
      case WeightGroup::kTable:
      case WeightGroup::kEncoder:
        return 0;
      case WeightGroup::kEmbedding:
        return with_embedding ? weight.elements() : 0;
      case WeightGroup::kExperts:
        return share_of_experts(spec, weight);
      default:
        return weight.elements();
    }
  });
}

}  // namespace plimsoll::model
