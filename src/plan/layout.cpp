// SPDX-License-Identifier: Apache-2.0
#include "plan/layout.h"

#include <fmt/format.h>

#include <algorithm>

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
