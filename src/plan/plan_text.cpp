// SPDX-License-Identifier: Apache-2.0
// A plan for people: every number with its unit, GB for the simple table as the document prints it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "base/printable.h"
#include "plan/search_text.h"

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
  const auto kind = [](const Target& target) {
    return fmt::format("{} x {} ({})", target.count, target.name.value_or("memory"), as_gib(target.memory));
  };
  std::string where = kind(*row.target);
  for (const Target& target : row.target->beside) where += " + " + kind(target);
  return where;
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
  for (const DeviceUse& device : row.devices)
    fmt::format_to(to, "  {:<32} {}{}, {} layers\n",
                   device.device + (device.gpu ? " " + *device.gpu : std::string()) + " holds",
                   exact_and_rounded(device.used),
                   device.budget ? "  of " + as_gib(*device.budget) : std::string(), device.layers);
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

/// "vllm 0.33.0 (the newest known)"
std::string engine_of(const facts::EngineChoice& engine) {
  const bool is_newest = engine.is_default && engine.name == facts::EngineName::kVllm;
  return std::string(to_string(engine.name)) + (engine.version.empty() ? "" : " " + engine.version) +
         (is_newest ? " (the newest known)" : "");
}

void append_row(const Row& row, const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  const bool is_per_gpu = row.target && !row.target->is_here &&
                          (plan.engine.name == facts::EngineName::kAny || row.target->num_gpus() > 1);
  fmt::format_to(to, "{}, engine {}",
                 printable(row.model + (row.title == row.model ? "" : " (" + row.title + ")")),
                 engine_of(plan.engine));
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

std::string answer_of(const Row& row) {
  if (!row.fits) return row.can_be ? "does not fit" : "cannot be";
  return row.form && !row.form->is_full_length ? "fits shorter" : "fits";
}

/// One line for each model and place.
void append_overview(const Plan& plan, std::string& out) {
  auto to = std::back_inserter(out);
  std::size_t width = 5, dtype_width = 7;
  for (const Row& row : plan.rows) {
    width = std::max(width, row.model.size());
    dtype_width = std::max(dtype_width, row.weights_dtype.size());
  }
  fmt::format_to(to, "engine {}; name one MODEL and one place for parts, levers and command\n",
                 engine_of(plan.engine));
  fmt::format_to(to, "{:<{}}  {:<12}  {:<{}}  {:>10}  {:>9}  {:>12}  {:>8}  {}\n", "model", width, "answer",
                 "weights", dtype_width, "GiB each", "ctx", "tokens", "requests", "where");
  for (const Row& row : plan.rows)
    fmt::format_to(to, "{:<{}}  {:<12}  {:<{}}  {:>10}  {:>9}  {:>12}  {:>8}  {}\n", printable(row.model),
                   width, answer_of(row), row.weights_dtype, dtype_width,
                   row.can_be ? fmt::format("{:.2f}", static_cast<double>(row.weights.value) / kGiB) : "-",
                   with_commas(row.max_model_len.value), row.fits ? with_commas(row.kv_tokens.value) : "-",
                   row.fits ? fmt::format("{:.1f}", row.max_concurrency) : "-", where_of(row));
}

/// 12,345; 0.92; text as it is; "-" where there is nothing.
std::string shown(const Json& value) {
  if (const auto integer = value.as_integer()) return with_commas(*integer);
  if (const auto number = value.as_double()) return fmt::format("{:.2f}", *number);
  if (const auto* text = value.as_string()) return *text;
  return value == Json(true) ? "yes" : value == Json(false) ? "no" : "-";
}

void append_changes(const Against& against, std::size_t row, std::string& out) {
  auto to = std::back_inserter(out);
  std::size_t width = 0;
  for (const Change& change : against.changes)
    if (change.row == row && !change.before.is_string())
      width = std::max({width, shown(change.before).size(), shown(change.after).size()});
  for (const Change& change : against.changes) {
    if (change.row != row) continue;
    const std::string releases = fmt::format("{}", fmt::join(change.releases, ", "));
    if (change.before.is_string()) {
      fmt::format_to(to, "  {:<32} {} -> {}  ({})\n", change.field, shown(change.before), shown(change.after),
                     releases);
      continue;
    }
    const Json difference = change.difference();
    const bool is_more = difference.as_double().value_or(0) > 0;
    fmt::format_to(to, "  {:<32} {:>{}}  {:>{}}  {:>{}}  {}\n", change.field, shown(change.before), width,
                   shown(change.after), width, (is_more ? "+" : "") + shown(difference), width + 1, releases);
  }
}

void append_against(const Plan& plan, std::string& out) {
  const Against& against = *plan.against;
  auto to = std::back_inserter(out);
  fmt::format_to(to, "\n{} -> {}: what changes\n", engine_of(plan.engine), engine_of(against.engine));
  for (std::size_t i = 0; i < plan.rows.size(); ++i) {
    const Row &before = plan.rows[i], &after = against.rows[i];
    if (plan.rows.size() > 1) fmt::format_to(to, "{}, {}\n", printable(before.model), where_of(before));
    fmt::format_to(to, "  {}\n",
                   !after.fits   ? "will not start: " + after.engine_message
                   : before.fits ? "starts as before"
                                 : "starts, which it did not before");
    append_changes(against, i, out);
  }
  if (!against.rules.empty()) out += "releases on the way\n";
  for (const auto& [release, what] : against.rules) fmt::format_to(to, "  {:<7} {}\n", release, what);
}

}  // namespace

std::string to_text(const Plan& plan) {
  std::string out;
  if (plan.is_simple) {
    append_simple(plan, out);
  } else if (plan.search) {
    out = search_text(plan, engine_of(plan.engine));
  } else if (plan.rows.size() == 1) {
    append_row(plan.rows.front(), plan, out);
  } else {
    append_overview(plan, out);
  }
  if (plan.against) append_against(plan, out);
  for (const Finding& finding : plan.findings)
    fmt::format_to(std::back_inserter(out), "{}: {} {}\n", to_string(finding.level), finding.id,
                   printable(finding.message));
  return printable_page(out);
}

}  // namespace plimsoll::plan
