// SPDX-License-Identifier: Apache-2.0
// What another release makes of the same question. Where a value differs, the rules are walked through
// release by release, so that the one that moved it is named.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>

#include "plan/rows.h"

namespace plimsoll::plan {
namespace {

using Numbers = std::vector<int>;

std::string written(const Numbers& release) {
  return fmt::format("{}", fmt::join(release, "."));
}

/// The releases after the older and up to the newer one in which rules or fitted constants changed.
std::vector<Numbers> steps_between(Numbers older, Numbers newer) {
  std::vector<Numbers> steps;
  for (const memory::VllmChange& change : memory::vllm_changes())
    steps.push_back({change.major, change.minor, change.patch});
  for (const facts::VllmRuntime& row : facts::vllm_runtimes()) steps.push_back({row.major, row.minor, 0});
  std::sort(steps.begin(), steps.end());
  steps.erase(std::unique(steps.begin(), steps.end()), steps.end());
  std::erase_if(steps, [&](const Numbers& step) { return step <= older || step > newer; });
  return steps;
}

std::string layout_of(const Row& row) {
  std::string text;
  for (const memory::VllmGroup& group : row.groups)
    text += fmt::format("{}{} x {} in blocks of {}", text.empty() ? "" : "; ", group.num_layers,
                        memory::engine_name(group.kind), group.block_size);
  return text;
}

using Values = std::vector<std::pair<std::string, Json>>;

/// What is compared of a row: how much may be used, what takes it, what is left, and what that holds.
Values values_of(const Row& row) {
  const auto number = [](const auto& value) { return value ? Json(*value) : Json(); };
  const auto bytes = [](const std::optional<Bytes>& value) { return value ? Json(value->value) : Json(); };
  const auto when_fits = [&](auto value) { return row.fits ? Json(value) : Json(); };
  Values values = {{"gpu_memory_utilization", number(row.memory_utilization)},
                   {"budget_bytes_per_gpu", bytes(row.budget)},
                   {"max_num_batched_tokens", number(row.batch_tokens)},
                   {"max_num_seqs", number(row.batch_sequences)},
                   {"weights_bytes_per_gpu", row.weights.value}};
  for (const Part& part : row.parts)
    if (part.part != "weights" && part.part != "kv_cache")
      values.emplace_back("memory/" + part.part, part.bytes.value);
  const Values rest = {{"kv_cache_bytes_per_gpu", row.kv_cache.value},
                       {"kv_groups", layout_of(row)},
                       {"block_size", number(row.block_size)},
                       {"bytes_per_block", bytes(row.bytes_per_block)},
                       {"required_kv_cache_bytes_per_gpu", row.required_kv_cache.value},
                       {"num_blocks", when_fits(row.num_blocks.value)},
                       {"kv_tokens", when_fits(row.kv_tokens.value)},
                       {"max_concurrency", when_fits(row.max_concurrency)},
                       {"estimated_max_model_len",
                        row.estimated_max_model_len ? Json(row.estimated_max_model_len->value) : Json()},
                       {"fits", row.fits}};
  values.insert(values.end(), rest.begin(), rest.end());
  return values;
}

Result<Row> row_in(const Question& question, const std::string& version) {
  Question asked = question;
  asked.engine_version = version;
  asked.rules.memory_utilization = memory::vllm_rules(version).memory_utilization;
  return make_row(asked);
}

}  // namespace

Json Change::difference() const {
  const auto one = before.as_integer(), two = after.as_integer();
  if (one && two) return *two - *one;
  const auto first = before.as_double(), second = after.as_double();
  return first && second ? Json(*second - *first) : Json();
}

Status add_against(const Question& question, const Row& row, Against& against) {
  const std::string &before = question.engine_version, &after = against.engine.version;
  PLIMSOLL_TRY(Row other, row_in(question, after));
  const std::size_t index = against.rows.size();
  if (row.can_be && other.can_be) {
    const Values now = values_of(row), then = values_of(other);
    const Numbers one = facts::release_numbers(before), two = facts::release_numbers(after);
    PLIMSOLL_TRY(const Row oldest, row_in(question, std::min(one, two) == one ? before : after));
    Values last = values_of(oldest);
    std::vector<Change> changes(now.size());
    for (const Numbers& step : steps_between(std::min(one, two), std::max(one, two))) {
      PLIMSOLL_TRY(const Row reached, row_in(question, written(step)));
      Values next = values_of(reached);
      for (std::size_t i = 0; i < next.size(); ++i)
        if (next[i].second != last[i].second) changes[i].releases.push_back(written(step));
      last = std::move(next);
    }
    for (std::size_t i = 0; i < now.size(); ++i) {
      if (now[i].second == then[i].second) continue;
      changes[i].row = index;
      std::tie(changes[i].field, changes[i].before) = now[i];
      changes[i].after = then[i].second;
      against.changes.push_back(std::move(changes[i]));
    }
  }
  against.rows.push_back(std::move(other));
  return {};
}

std::vector<std::pair<std::string, std::string>> rules_between(const std::string& one,
                                                               const std::string& other) {
  const Numbers a = facts::release_numbers(one), b = facts::release_numbers(other);
  std::vector<std::pair<std::string, std::string>> rules;
  for (const Numbers& step : steps_between(std::min(a, b), std::max(a, b))) {
    for (const memory::VllmChange& change : memory::vllm_changes())
      if (Numbers{change.major, change.minor, change.patch} == step)
        rules.emplace_back(written(step), change.what);
    for (const facts::VllmRuntime& fit : facts::vllm_runtimes())
      if (Numbers{fit.major, fit.minor, 0} == step)
        rules.emplace_back(written(step),
                           "other constants, fitted on recorded starts: " + std::string(fit.source));
  }
  return rules;
}

}  // namespace plimsoll::plan
