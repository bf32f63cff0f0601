// SPDX-License-Identifier: Apache-2.0
// A plan for people: every number with its unit, GB for the simple table as the document prints it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "base/printable.h"
#include "plan/plan.h"

namespace plimsoll::plan {
namespace {

/// A word as a POSIX shell reads it back: quoted unless it is plain.
std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./:@%+=,";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

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

void append_levers(const Row& row, std::string& out) {
  if (row.levers.empty()) return;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "  what could be turned, cheap to dear:\n");
  for (const Lever& lever : row.levers) {
    const auto change = [](const std::string& before, const std::string& after) {
      return before.empty() ? after : before + " -> " + after;
    };
    const auto tokens = [](const std::optional<std::int64_t>& value) {
      return value ? with_commas(*value) : std::string();
    };
    const auto requests = [](const std::optional<double>& value) {
      return value ? fmt::format("{:.1f}", *value) : std::string();
    };
    fmt::format_to(to, "    {:<34} tokens {}, requests {}; {}\n", lever.flag,
                   change(tokens(lever.kv_tokens_before), tokens(lever.kv_tokens_after)),
                   change(requests(lever.requests_before), requests(lever.requests_after)), lever.caution);
  }
}

std::string where_of(const Row& row) {
  if (!row.target) return "";
  return fmt::format("{} x {} ({})", row.target->count, row.target->name.value_or("memory"),
                     as_gib(row.target->memory));
}

/// Figures are those of one GPU, except the tokens and requests that all of them hold together.
void append_figures(const Row& row, const char* each, std::string& out) {
  auto to = std::back_inserter(out);
  const auto label = [&](const std::string& name) { return name + each; };
  if (row.budget)
    fmt::format_to(to, "  {:<32} {}\n", label("memory that may be used"), exact_and_rounded(*row.budget));
  for (const Part& part : row.parts)
    if (part.bytes.value > 0)
      fmt::format_to(to, "  {:<32} {}{}{}\n", label(part.part), exact_and_rounded(part.bytes),
                     part.why.empty() ? "" : "  ", part.why);
  for (const Buffer& buffer : row.buffers)
    fmt::format_to(to, "  {:<32} {}\n", buffer.device + " " + buffer.kind + " buffer",
                   exact_and_rounded(buffer.bytes));
  if (row.error_bar.value > 0)
    fmt::format_to(to, "  {:<32} {}  more or less in the KV cache\n", label("error bar"),
                   exact_and_rounded(row.error_bar));
  fmt::format_to(to, "  {:<32} {} bytes ({})\n", label("KV per token"),
                 with_commas(row.kv_bytes_per_token.value), row.kv_cache_dtype);
  fmt::format_to(to, "  {:<32} {} tokens\n", "longest request", with_commas(row.max_model_len.value));
  if (row.fits) {
    fmt::format_to(to, "  {:<32} {} tokens", "KV cache holds", with_commas(row.kv_tokens.value));
    if (row.block_size)
      fmt::format_to(to, " in {} blocks of {}", with_commas(row.num_blocks.value), *row.block_size);
    fmt::format_to(to, "\n  {:<32} {:.2f}\n", "requests at full length", row.max_concurrency);
  }
  if (row.estimated_max_model_len)
    fmt::format_to(to, "  {:<32} {} tokens\n", "longest that would fit",
                   with_commas(row.estimated_max_model_len->value));
}

void append_row(const Row& row, const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  const bool is_per_gpu = plan.engine.name == facts::EngineName::kAny && row.target && !row.target->is_here;
  fmt::format_to(to, "{}, engine {}{}{}",
                 printable(row.model + (row.title == row.model ? "" : " (" + row.title + ")")),
                 to_string(plan.engine.name), plan.engine.version.empty() ? "" : " ", plan.engine.version);
  if (row.target) fmt::format_to(to, ", {}", where_of(row));
  fmt::format_to(to, "\n  {}\n", row.fits ? "fits" : "does not fit: " + row.engine_message);
  if (row.can_be) append_figures(row, is_per_gpu ? " per GPU" : "", out);
  append_levers(row, out);
  for (const Finding& finding : row.findings)
    fmt::format_to(to, "  {}: {} {}\n", to_string(finding.level), finding.id, printable(finding.message));
  if (!row.command.empty()) {
    fmt::format_to(to, "  command:");
    for (const std::string& word : row.command) fmt::format_to(to, " {}", shell_word(word));
    fmt::format_to(to, "\n");
  }
}

bool has_several_models(const Plan& plan) {
  return std::any_of(plan.rows.begin(), plan.rows.end(),
                     [&](const Row& row) { return row.model != plan.rows.front().model; });
}

/// One line for each model and place.
void append_overview(const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  std::size_t width = 5;
  for (const Row& row : plan.rows) width = std::max(width, row.model.size());
  fmt::format_to(
      to,
      "engine {}; name a MODEL for its parts, levers and command\n{:<{}}  {:<12}  {:>9}  {:>12}  {:>8}  {}\n",
      to_string(plan.engine.name), "model", width, "answer", "ctx", "tokens", "requests", "where");
  for (const Row& row : plan.rows)
    fmt::format_to(to, "{:<{}}  {:<12}  {:>9}  {:>12}  {:>8}  {}\n", printable(row.model), width,
                   row.fits ? "fits" : "does not fit", with_commas(row.max_model_len.value),
                   row.fits ? with_commas(row.kv_tokens.value) : "-",
                   row.fits ? fmt::format("{:.1f}", row.max_concurrency) : "-", where_of(row));
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string out;
  if (plan.is_simple) {
    append_simple(plan, out);
  } else if (!plan.rows.empty() && has_several_models(plan)) {
    append_overview(plan, out);
  } else {
    for (const Row& row : plan.rows) {
      if (!out.empty()) out += "\n";
      append_row(row, plan, out);
    }
  }
  for (const Finding& finding : plan.findings)
    fmt::format_to(std::back_inserter(out), "{}: {} {}\n", to_string(finding.level), finding.id,
                   printable(finding.message));
  return printable_page(out);
}

}  // namespace plimsoll::plan
