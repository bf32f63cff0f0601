// SPDX-License-Identifier: Apache-2.0
// A plan for people: every number with its unit, GB for the simple table as the document prints it.
#include <fmt/format.h>

#include <iterator>

#include "plan/plan.h"

namespace plimsoll::plan {
namespace {

double gb(Bytes bytes) {
  return static_cast<double>(bytes.value) / static_cast<double>(kGB);
}

/// "Llama 3.1 8B" -> "8B", as the document's lines have it.
std::string size_of(const std::string& title) {
  const std::size_t space = title.rfind(' ');
  return space == std::string::npos ? title : title.substr(space + 1);
}

void append_simple(const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  for (const ModelFigures& model : plan.models)
    fmt::format_to(to, "{:>3} KV per token: {} bytes, 8K ctx {:.2f} GB, 128K ctx {:.1f} GB\n",
                   size_of(model.title), with_commas(model.kv_bytes_per_token.value),
                   gb(model.kv_bytes_per_token * 8192), gb(model.kv_bytes_per_token * 131072));
  if (!plan.models.empty()) {
    const ModelFigures& first = plan.models.front();
    fmt::format_to(to, "    {} without GQA: {} bytes per token\n\n", size_of(first.title),
                   with_commas(first.kv_bytes_per_token_without_gqa.value));
  }
  fmt::format_to(to, "{:<22}  {:<7}  {:>9}  {:<8}  {:>10}  {:>6}  {:>8}  {:>7}  {:>8}\n", "model", "weights",
                 "GPUs", "KV dtype", "weights GB", "KV GB", "tokens", "ctx", "requests");
  for (const Row& row : plan.rows) {
    const std::string gpus =
        row.target ? fmt::format("{}x{:g}", row.target->count, gb(row.target->memory)) : std::string("-");
    fmt::format_to(to, "{:<22}  {:<7}  {:>9}  {:<8}  {:>10.1f}  {:>6.1f}  {:>8}  {:>7}  {:>8.1f}\n",
                   row.title, row.weights_dtype, gpus, row.kv_cache_dtype, gb(row.total_weights),
                   gb(row.total_kv_cache), with_commas(row.kv_tokens.value),
                   with_commas(row.max_model_len.value), row.max_concurrency);
    if (!plan.is_document_table && !row.fits) fmt::format_to(to, "does not fit: {}\n", row.engine_message);
  }
}

std::string exact_and_rounded(Bytes bytes) {
  return fmt::format("{:>15} bytes {:>11} {:>12}", with_commas(bytes.value), as_gb(bytes), as_gib(bytes));
}

std::string number_or_dash(const std::optional<std::int64_t>& value) {
  return value ? with_commas(*value) : "-";
}

void append_levers(const Row& row, std::string& out) {
  if (row.levers.empty()) return;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "  what could be turned, cheap to dear:\n");
  for (const Lever& lever : row.levers) {
    const auto requests = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.1f}", *value) : std::string("-");
    };
    fmt::format_to(to, "    {:<28} tokens {} -> {}, requests {} -> {}; {}\n", lever.flag,
                   number_or_dash(lever.kv_tokens_before), number_or_dash(lever.kv_tokens_after),
                   requests(lever.requests_before), requests(lever.requests_after), lever.caution);
  }
}

void append_row(const Row& row, const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  fmt::format_to(to, "{}, engine {}{}{}", row.title, to_string(plan.engine.name),
                 plan.engine.version.empty() ? "" : " ", plan.engine.version);
  if (row.target)
    fmt::format_to(to, ", {} x {} ({})", row.target->count, row.target->name.value_or("memory"),
                   as_gib(row.target->memory));
  fmt::format_to(to, "\n  {}\n", row.fits ? "fits" : "does not fit: " + row.engine_message);
  if (row.budget)
    fmt::format_to(to, "  {:<26} {}\n", "memory that may be used", exact_and_rounded(*row.budget));
  for (const Part& part : row.parts)
    if (part.bytes.value > 0)
      fmt::format_to(to, "  {:<26} {}{}{}\n", part.part, exact_and_rounded(part.bytes),
                     part.why.empty() ? "" : "  ", part.why);
  fmt::format_to(to, "  {:<26} {} bytes ({})\n", "KV per token", with_commas(row.kv_bytes_per_token.value),
                 row.kv_cache_dtype);
  fmt::format_to(to, "  {:<26} {} tokens\n", "longest request", with_commas(row.max_model_len.value));
  if (row.fits) {
    fmt::format_to(to, "  {:<26} {} tokens", "KV cache holds", with_commas(row.kv_tokens.value));
    if (row.block_size)
      fmt::format_to(to, " in {} blocks of {}", with_commas(row.num_blocks.value), *row.block_size);
    fmt::format_to(to, "\n  {:<26} {:.2f}\n", "requests at full length", row.max_concurrency);
  }
  if (row.estimated_max_model_len)
    fmt::format_to(to, "  {:<26} {} tokens\n", "longest that would fit",
                   with_commas(row.estimated_max_model_len->value));
  append_levers(row, out);
  for (const Finding& finding : row.findings)
    fmt::format_to(to, "  {}: {} {}\n", to_string(finding.level), finding.id, finding.message);
  if (!row.command.empty() && row.fits) {
    fmt::format_to(to, "  command:");
    for (const std::string& word : row.command) fmt::format_to(to, " {}", word);
    fmt::format_to(to, "\n");
  }
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string out;
  if (plan.is_simple) {
    append_simple(plan, out);
  } else {
    for (const Row& row : plan.rows) {
      if (!out.empty()) out += "\n";
      append_row(row, plan, out);
    }
  }
  for (const Finding& finding : plan.findings)
    fmt::format_to(std::back_inserter(out), "{}: {} {}\n", to_string(finding.level), finding.id,
                   finding.message);
  return out;
}

}  // namespace plimsoll::plan
