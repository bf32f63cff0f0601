// SPDX-License-Identifier: Apache-2.0
#include "inspect/gguf_active.h"

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

}  // namespace

void count_active_of_gguf(const Subject& subject, Report& report) {
  Parameters& parameters = report.parameters;
  if (!subject.is_gguf() || parameters.active || !parameters.total || parameters.by_group.empty()) return;
  Counts counts = counts_of(parameters);
  if (counts.experts > 0) {
    const auto all = figure_of(subject, "expert_count"), used = figure_of(subject, "expert_used_count");
    if (!all || !used || *all == 0 || *used > *all) {
      add_check(report.findings, "ACTIVE_UNKNOWN", FindingLevel::kInfo, subject.place("expert_count"),
                "the file holds experts and does not say how many a token uses, so the active parameters are "
                "not known",
                "convert the model again with a newer converter");
      return;
    }
    counts.experts = counts.experts / *all * *used;  // stacks have equal experts
  }
  parameters.active_without_embedding = model::capped_sum(counts.dense, counts.experts);
  parameters.active = model::capped_sum(*parameters.active_without_embedding, counts.embedding);
}

}  // namespace plimsoll::inspect
