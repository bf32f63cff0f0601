// SPDX-License-Identifier: Apache-2.0
#include "plan/search_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>

#include "base/printable.h"

namespace plimsoll::plan {
namespace {

constexpr std::size_t kMostRows = 20;  // of each model; the document has all

std::string gpus_of(const std::optional<Target>& target) {
  return target ? fmt::format("{} x {}", target->count, target->name.value_or(target->asked)) : "-";
}

std::string yes(bool value) {
  return value ? "yes" : "-";
}

void append_rows(const Plan& plan, std::size_t begin, std::size_t end, std::string& out) {
  auto to = std::back_inserter(out);
  std::size_t width = 4;
  const std::size_t shown = std::min(end, begin + kMostRows);
  for (std::size_t i = begin; i < shown; ++i) width = std::max(width, gpus_of(plan.rows[i].target).size());
  fmt::format_to(to, "{:<{}}  {:>9}  {:>3}  {:>3}  {:>3}  {:>3}  {:>4}  {:<8}  {:<8}  {:>9}  {:>12}  {:>8}\n",
                 "GPUs", width, plan.search->has_prices ? "per hour" : "GiB", "TP", "PP", "DP", "EP", "DCP",
                 "weights", "KV", "ctx", "tokens", "requests");
  for (std::size_t i = begin; i < shown; ++i) {
    const Row& row = plan.rows[i];
    fmt::format_to(
        to, "{:<{}}  {:>9}  {:>3}  {:>3}  {:>3}  {:>3}  {:>4}  {:<8}  {:<8}  {:>9}  {:>12}  {:>8.1f}\n",
        gpus_of(row.target), width, fmt::format("{:g}", row.cost.value_or(0)), row.tensor_parallel,
        std::max<std::size_t>(1, row.stage_blocks.size()), row.data_parallel, yes(row.is_expert_parallel),
        row.decode_context_parallel, row.weights_dtype, row.kv_cache_dtype,
        with_commas(row.max_model_len.value), with_commas(row.kv_tokens.value * row.data_parallel),
        row.max_concurrency * row.data_parallel);
  }
  if (end > shown) fmt::format_to(to, "and {} more; --format json has all\n", end - shown);
}

struct Group {
  std::size_t num_layouts = 0;
  const Rejected* example = nullptr;
};

/// Rejected layouts by their reason; those that lack memory together, with the one that lacks least.
void append_rejected(const Plan& plan, const std::string& model, std::string& out) {
  auto to = std::back_inserter(out);
  std::map<std::string, Group> groups;
  for (const Rejected& layout : plan.search->rejected) {
    if (layout.model != model) continue;
    Group& group = groups[layout.missing ? layout.id : layout.id + " " + layout.reason];
    ++group.num_layouts;
    if (!group.example || (layout.missing && layout.missing < group.example->missing))
      group.example = &layout;
  }
  if (!groups.empty()) out += "rejected\n";
  for (const auto& [name, group] : groups) {
    const Rejected& layout = *group.example;
    fmt::format_to(to, "  {:>5} layout{} {}: ", group.num_layouts, group.num_layouts == 1 ? " " : "s",
                   layout.id);
    if (layout.missing)
      fmt::format_to(to, "nearest {} as TP {}, PP {}, DP {}, weights {}, KV {}: ", gpus_of(layout.target),
                     layout.tensor_parallel, layout.pipeline_parallel, layout.data_parallel,
                     layout.weights_dtype, layout.kv_cache_dtype);
    fmt::format_to(to, "{}\n", printable(layout.reason));
  }
}

}  // namespace

std::string search_text(const Plan& plan, const std::string& engine) {
  std::string out;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "engine {}; {} layouts tried, {} fit; cheapest first, by {}\n", engine,
                 with_commas(plan.search->num_layouts),
                 with_commas(static_cast<std::int64_t>(plan.rows.size())),
                 plan.search->has_prices ? "price" : "GPU memory, as no prices are given (--gpu-price)");
  std::vector<std::string> models;
  for (const Row& row : plan.rows)
    if (models.empty() || models.back() != row.model) models.push_back(row.model);
  for (const Rejected& layout : plan.search->rejected)
    if (std::find(models.begin(), models.end(), layout.model) == models.end()) models.push_back(layout.model);
  for (const std::string& model : models) {
    const auto is_its = [&](const Row& row) { return row.model == model; };
    const auto begin = std::find_if(plan.rows.begin(), plan.rows.end(), is_its);
    const auto end = std::find_if_not(begin, plan.rows.end(), is_its);
    fmt::format_to(to, "\n{}\n", printable(model));
    if (begin == end) out += "no layout fits\n";
    if (begin != end)
      append_rows(plan, static_cast<std::size_t>(begin - plan.rows.begin()),
                  static_cast<std::size_t>(end - plan.rows.begin()), out);
    append_rejected(plan, model, out);
  }
  return out;
}

}  // namespace plimsoll::plan
