// SPDX-License-Identifier: Apache-2.0
#include "inspect/gguf_active.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "model/tensor_kinds.h"

namespace plimsoll::inspect {
namespace {

using model::WeightGroup;

// The figure of `NAME.key`; nothing where it is absent, a list, or out of reason.
std::optional<std::int64_t> figure_of(const Subject& subject, std::string_view key) {
  constexpr std::int64_t kMost = 1 << 20;
  const std::string* name = subject.figures["general.architecture"].as_string();
  if (!name) return std::nullopt;
  const auto value = subject.figures[*name + "." + std::string(key)].as_integer();
  return value && *value >= 0 && *value <= kMost ? value : std::nullopt;
}

struct Counts {
  std::int64_t dense = 0, experts = 0, embedding = 0;
};

Counts counts_of(const Parameters& parameters) {
  Counts counts;
  for (const Group& group : parameters.by_group) {
    if (group.group == WeightGroup::kTable || group.group == WeightGroup::kEncoder)
      continue;  // looked up, or not each token's
    std::int64_t& sum = group.group == WeightGroup::kExperts     ? counts.experts
                        : group.group == WeightGroup::kEmbedding ? counts.embedding
                                                                 : counts.dense;
    sum = model::capped_sum(sum, group.parameters);
  }
  return counts;
}

// Why the two figures do not tell what share of the experts a token uses; empty when they do.
std::string fault_of(const artifact::Artifact& artifact, std::optional<std::int64_t> all,
                     std::optional<std::int64_t> used) {
  if (!all || !used) return "the file holds experts and does not say how many a token uses";
  if (*used == 0 || *used > *all)
    return fmt::format("expert_used_count is {} of {} experts, which no token can use", *used, *all);
  for (const artifact::Tensor& tensor : artifact.tensors())
    if (tensor.name.ends_with("_exps.weight") && tensor.shape.size() == 3 && tensor.shape[0] != *all)
      return fmt::format("expert_count is {}, and {} holds {} experts", *all, tensor.name, tensor.shape[0]);
  return {};
}

}  // namespace

void count_active_of_gguf(const Subject& subject, Report& report) {
  Parameters& parameters = report.parameters;
  if (!subject.is_gguf() || parameters.active || !parameters.total || parameters.by_group.empty()) return;
  Counts counts = counts_of(parameters);
  if (counts.experts > 0) {
    const auto all = figure_of(subject, "expert_count"), used = figure_of(subject, "expert_used_count");
    if (const std::string fault = fault_of(subject.artifact, all, used); !fault.empty()) {
      const bool is_silent = !all || !used;
      add_check(report.findings, "ACTIVE_UNKNOWN", is_silent ? FindingLevel::kInfo : FindingLevel::kWarning,
                subject.place(is_silent || *used <= *all ? "expert_count" : "expert_used_count"),
                fault + ", so the active parameters are not known",
                "convert the model again with a newer converter");
      return;
    }
    counts.experts = counts.experts / *all * *used;  // stacks have equal experts
  }
  parameters.active_without_embedding = model::capped_sum(counts.dense, counts.experts);
  parameters.active = model::capped_sum(*parameters.active_without_embedding, counts.embedding);
}

}  // namespace plimsoll::inspect
