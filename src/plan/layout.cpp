// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "facts/attention_kernels.h"

namespace plimsoll::plan {
namespace {

/// Heads of one layer that tensor parallelism splits.
struct Heads {
  std::int64_t query = 0, kv = 0;

  bool split_over(std::int64_t gpus) const {
    return query % gpus == 0 && (kv >= gpus ? kv % gpus == 0 : gpus % kv == 0);
  }
};

std::optional<Heads> heads_of(const model::Layer& layer) {
  if (const auto* attention = std::get_if<model::Attention>(&layer.mixer))
    return Heads{attention->q_heads, std::max(1, attention->kv_heads)};
  // Every GPU needs the whole latent: it is one head that all query heads share.
  if (const auto* latent = std::get_if<model::Latent>(&layer.mixer)) return Heads{latent->q_heads, 1};
  return std::nullopt;
}

bool can_split(const model::ModelSpec& spec, std::int64_t gpus) {
  return std::all_of(spec.layers.begin(), spec.layers.end(), [&](const model::Layer& layer) {
    const auto heads = heads_of(layer);
    return !heads || heads->split_over(gpus);
  });
}

/// "use 2 or 4 GPUs": the nearest counts that work.
std::string nearest_counts(const model::ModelSpec& spec, std::int64_t gpus, std::int64_t most) {
  std::int64_t below = std::min(gpus, most);
  while (below > 1 && !can_split(spec, below)) --below;
  std::int64_t above = gpus + 1;
  while (above <= most && !can_split(spec, above)) ++above;
  return above <= most ? fmt::format("use {} or {} GPUs", below, above)
                       : fmt::format("use {} GPU{}", below, below == 1 ? "" : "s");
}

}  // namespace

std::optional<Finding> layout_fault(const model::ModelSpec& spec, std::int64_t gpus) {
  for (const model::Layer& layer : spec.layers) {
    const auto heads = heads_of(layer);
    if (!heads || heads->split_over(gpus)) continue;
    return Finding{"TP_DIVISIBILITY",
                   FindingLevel::kError,
                   FindingKind::kCheckFailed,
                   "--gpu",
                   fmt::format("{} query heads and {} KV heads cannot be split evenly over {} GPUs",
                               heads->query, heads->kv, gpus),
                   nearest_counts(spec, gpus, heads->query)};
  }
  return std::nullopt;
}

namespace {

Finding fault(const char* id, const char* where, std::string message, std::string fix) {
  return {id, FindingLevel::kError, FindingKind::kCheckFailed, where, std::move(message), std::move(fix)};
}

/// Decode context parallelism shares out what ranks would else keep as copies.
std::optional<Finding> context_fault(const model::ModelSpec& spec, const Layout& layout) {
  const auto refuse = [&](std::string message, const char* fix) {
    return fault("DCP_DIVISIBILITY", "--decode-context-parallel-size", std::move(message), fix);
  };
  if (layout.tensor % layout.context != 0)
    return refuse(
        fmt::format("{} tensor-parallel ranks cannot be shared out to {}", layout.tensor, layout.context),
        "choose a size that divides the tensor-parallel one");
  for (const model::Layer& layer : spec.layers) {
    const auto* attention = std::get_if<model::Attention>(&layer.mixer);
    if (!attention) continue;
    if (attention->window_tokens || attention->chunk_tokens)
      return refuse("layers with windows or chunks cannot be shared out", "choose 1");
    const int kv = std::max(1, attention->kv_heads);
    if (layout.tensor <= kv)
      return refuse(fmt::format("{} KV heads over {} ranks are kept once: there are no copies to share out",
                                kv, layout.tensor),
                    "choose a larger tensor-parallel size, or 1");
    if (layout.context > layout.tensor / kv)
      return refuse(fmt::format("{} KV heads over {} ranks are kept {} times, fewer than {}", kv,
                                layout.tensor, layout.tensor / kv, layout.context),
                    "choose a smaller size");
    if (attention->q_heads / kv % layout.context != 0)
      return refuse(fmt::format("{} query heads for each KV head cannot be shared out to {}",
                                attention->q_heads / kv, layout.context),
                    "choose a size that divides them");
  }
  return std::nullopt;
}

bool has_experts(const model::ModelSpec& spec) {
  return std::any_of(spec.layers.begin(), spec.layers.end(),
                     [](const model::Layer& layer) { return layer.ffn.kind == model::FfnKind::kMoe; });
}

/// What the model asks of attention kernels; nothing when no layer attends.
std::optional<facts::AttentionNeed> attention_need(const model::ModelSpec& spec) {
  std::optional<facts::AttentionNeed> need;
  for (const model::Layer& layer : spec.layers) {
    if (const auto* attention = std::get_if<model::Attention>(&layer.mixer)) {
      if (!need) need.emplace();
      need->head_dim = std::max(need->head_dim, attention->head_dim);
      need->has_sinks = need->has_sinks || attention->has_sinks;
    } else if (const auto* latent = std::get_if<model::Latent>(&layer.mixer)) {
      if (!need) need.emplace();
      const bool is_sparse = latent->indexer || need->kind == facts::AttentionKind::kSparseLatent;
      need->kind = is_sparse ? facts::AttentionKind::kSparseLatent : facts::AttentionKind::kLatent;
    }
  }
  if (need)
    need->has_sinks = need->has_sinks || std::find(spec.traits.begin(), spec.traits.end(),
                                                   model::Trait::kAttentionSinks) != spec.traits.end();
  return need;
}

std::string shown(int capability) {
  return fmt::format("{}.{}", capability / 10, capability % 10);
}

}  // namespace

std::optional<Finding> parallel_fault(const model::ModelSpec& spec, const Layout& layout) {
  if (layout.pipeline > static_cast<int>(spec.layers.size()))
    return fault("PP_DIVISIBILITY", "--pipeline-parallel-size",
                 fmt::format("{} stages for {} layers", layout.pipeline, spec.layers.size()),
                 "choose no more stages than layers");
  if (layout.is_expert_parallel && !has_experts(spec))
    return fault("EP_WITHOUT_EXPERTS", "--enable-expert-parallel", "the model has no experts",
                 "leave it out");
  return layout.context > 1 ? context_fault(spec, layout) : std::nullopt;
}

std::optional<Finding> kernel_fault(const model::ModelSpec& spec, const facts::GpuFacts& gpu, bool is_fp8) {
  auto need = attention_need(spec);
  if (!need) return std::nullopt;
  const auto capability = facts::parse_capability(gpu.compute_capability);
  const auto unsupported = [&](const char* id, const std::string& message) {
    return fault(id, id[0] == 'K' ? "--kv-cache-dtype" : "--gpu", message,
                 id[0] == 'K' ? "leave the cache in 16 bit" : "choose a newer GPU");
  };
  if (!capability) {
    if (!is_fp8 || gpu.has_fp8) return std::nullopt;
    return unsupported("KV_DTYPE_UNSUPPORTED", fmt::format("{} has no 8-bit floats", gpu.name));
  }
  if (!facts::find_attention_kernel(*need, *capability))
    return unsupported("ATTENTION_UNSUPPORTED",
                       fmt::format("{} has compute capability {}; kernels for this attention need {}",
                                   gpu.name, gpu.compute_capability, shown(facts::least_capability(*need))));
  need->is_fp8 = is_fp8;
  if (facts::find_attention_kernel(*need, *capability)) return std::nullopt;
  return unsupported(
      "KV_DTYPE_UNSUPPORTED",
      fmt::format("{} has compute capability {}; keys and values in 8-bit floats need {} for this "
                  "model",
                  gpu.name, gpu.compute_capability, shown(facts::least_capability(*need))));
}

std::optional<Finding> kv_replication(const model::ModelSpec& spec, std::int64_t gpus) {
  for (const model::Layer& layer : spec.layers) {
    const auto heads = heads_of(layer);
    if (!heads || heads->kv >= gpus) continue;
    return Finding{
        "KV_REPLICATED",
        FindingLevel::kWarning,
        FindingKind::kCheckFailed,
        "--gpu",
        fmt::format("{} KV head{} over {} GPUs: every token is kept {} times, and a GPU's share shrinks no "
                    "further than at {} GPU{}",
                    heads->kv, heads->kv == 1 ? "" : "s", gpus, gpus / heads->kv, heads->kv,
                    heads->kv == 1 ? "" : "s"),
        fmt::format("{} GPUs for each of several replicas hold more", heads->kv)};
  }
  return std::nullopt;
}

}  // namespace plimsoll::plan
