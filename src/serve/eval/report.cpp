// SPDX-License-Identifier: Apache-2.0
// The evaluation as a document and as a page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "serve/eval/eval.h"

namespace plimsoll::serve {
namespace {

constexpr double kLn2 = 0.693147180559945309;

std::optional<double> bits_per_byte(const TextReport& text, const TextRow& row) {
  if (!row.has_figures || text.scored_bytes.value_or(0) == 0) return std::nullopt;
  return row.scores.nll().mean * static_cast<double>(text.scored_tokens) / kLn2 /
         static_cast<double>(*text.scored_bytes);
}

Json divergence_json(const TextReport& text, const TextRow& row) {
  if (!row.has_figures || !text.reference) return {};
  const Divergence d = row.scores.divergence();
  return Json::object({{"kl_mean", d.kl.mean},
                       {"kl_mean_error", d.kl.error},
                       {"kl_median", d.kl_median},
                       {"kl_p90", d.kl_p90},
                       {"kl_p95", d.kl_p95},
                       {"kl_p99", d.kl_p99},
                       {"kl_p999", d.kl_p999},
                       {"kl_max", d.kl_max},
                       {"same_top", d.same_top},
                       {"mean_abs_delta_logit", d.mean_abs_delta_logit},
                       {"mean_delta_p", d.mean_delta_p},
                       {"rms_delta_p", d.rms_delta_p},
                       {"perplexity_ratio", d.perplexity_ratio}});
}

Json settings_json(const Variant& variant) {
  Json settings = Json::object();
  for (const auto& [key, value] : variant.settings) settings.set(key, value);
  return settings;
}

Json row_json(const TextReport& text, const TextRow& row, const Variant& variant) {
  std::optional<double> nll, perplexity, error;
  if (row.has_figures) {
    const Estimate estimate = row.scores.nll();
    nll = estimate.mean;
    perplexity = std::exp(estimate.mean);
    error = *perplexity * estimate.error;
  }
  Json json = settings_json(variant);
  json.set("perplexity", Json(perplexity));
  json.set("perplexity_error", Json(error));
  json.set("nll_nats", Json(nll));
  json.set("bits_per_byte", Json(bits_per_byte(text, row)));
  json.set("divergence", divergence_json(text, row));
  json.set("prompt_tokens_per_s", Json(row.prompt_tokens_per_s));
  json.set("output_tokens_per_s", Json(row.output_tokens_per_s));
  json.set("weights_bytes", row.prompt_tokens_per_s ? Json(row.weights.value) : Json());
  return json;
}

Json text_json(const EvalReport& report) {
  const TextReport& text = *report.text;
  Json rows = Json::array();
  for (std::size_t i = 0; i < text.rows.size(); ++i)
    rows.push_back(row_json(text, text.rows[i], report.variants[i]));
  return Json::object({{"file", text.path},
                       {"tokens", text.tokens},
                       {"windows", to_string(text.rule)},
                       {"ctx_size", text.ctx_size},
                       {"stride", text.rule == WindowRule::kStrided ? Json(text.stride) : Json()},
                       {"num_windows", text.windows},
                       {"scored_tokens", text.scored_tokens},
                       {"scored_bytes", Json(text.scored_bytes)},
                       {"reference", Json(text.reference)},
                       {"rows", std::move(rows)}});
}

Json passkey_json(const EvalReport& report) {
  const PasskeyReport& passkey = *report.passkey;
  Json rows = Json::array();
  const std::size_t per_variant = passkey.cells.size() / report.variants.size();
  for (std::size_t i = 0; i < passkey.cells.size(); ++i) {
    const PasskeyCell& cell = passkey.cells[i];
    Json row = settings_json(report.variants[i / per_variant]);
    row.set("length_tokens", cell.length);
    row.set("depth_percent", cell.depth);
    row.set("recalled", Json(cell.recalled));
    rows.push_back(std::move(row));
  }
  const auto known = [](std::int64_t tokens) { return tokens > 0 ? Json(tokens) : Json(); };
  return Json::object({{"native_tokens", known(passkey.native_tokens)},
                       {"extended_tokens", known(passkey.extended_tokens)},
                       {"trials", passkey.trials},
                       {"rows", std::move(rows)}});
}

Json basis_json(const EvalReport& report) {
  Json basis = Json::object();
  const auto measured = [&](const std::string& pointer, const char* source) {
    basis.set(pointer,
              Json::object({{"kind", "measured"}, {"low", nullptr}, {"high", nullptr}, {"source", source}}));
  };
  if (report.text)
    for (std::size_t i = 0; i < report.text->rows.size(); ++i) {
      const std::string row = fmt::format("/text/rows/{}/", i);
      for (const char* name : {"perplexity", "nll_nats", "bits_per_byte", "divergence"})
        measured(row + name, "the logits of this run");
      for (const char* name : {"prompt_tokens_per_s", "output_tokens_per_s"})
        measured(row + name, "the clock of this run, one sequence");
    }
  return basis;
}

std::string figure(std::optional<double> value, const char* form) {
  return value ? fmt::format(fmt::runtime(form), *value) : "-";
}

using Table = std::vector<std::vector<std::string>>;  // [lines][columns]

/// Columns are as wide as their widest cell and two more, the first one to the left.
void add_table(std::string& page, const Table& table) {
  constexpr std::size_t kFirst = 18, kNext = 13, kGap = 2;
  std::vector<std::size_t> widths;
  for (const auto& line : table)
    for (std::size_t i = 0; i < line.size(); ++i) {
      if (i == widths.size()) widths.push_back(i == 0 ? kFirst : kNext);
      widths[i] = std::max(widths[i], line[i].size() + kGap);
    }
  for (const auto& line : table) {
    page += fmt::format("{:<{}}", line.front(), widths.front());
    for (std::size_t i = 1; i < line.size(); ++i) page += fmt::format("{:>{}}", line[i], widths[i]);
    page += "\n";
  }
}

void add_text(std::string& page, const TextReport& text) {
  page += fmt::format("{}: {} tokens, {} windows of {} ({}", text.path, with_commas(text.tokens),
                      with_commas(text.windows), with_commas(text.ctx_size), to_string(text.rule));
  if (text.rule == WindowRule::kStrided) page += fmt::format(", stride {}", with_commas(text.stride));
  page += fmt::format("); {} tokens scored", with_commas(text.scored_tokens));
  if (text.scored_bytes) page += fmt::format(", {} bytes", with_commas(*text.scored_bytes));
  page += "\n\n";
  Table table = {{"", "perplexity", "+/-", "bits/byte", "prompt tok/s", "output tok/s", "weights GiB"}};
  for (const TextRow& row : text.rows) {
    std::optional<double> perplexity, error;
    if (row.has_figures) {
      perplexity = std::exp(row.scores.nll().mean);
      error = *perplexity * row.scores.nll().error;
    }
    table.push_back({row.variant, figure(perplexity, "{:.4f}"), figure(error, "{:.4f}"),
                     figure(bits_per_byte(text, row), "{:.4f}"), figure(row.prompt_tokens_per_s, "{:.1f}"),
                     figure(row.output_tokens_per_s, "{:.1f}"),
                     row.prompt_tokens_per_s ? fmt::format("{:.2f}", static_cast<double>(row.weights.value) /
                                                                         static_cast<double>(kGiB))
                                             : "-"});
  }
  add_table(page, table);
  if (!text.reference) return;
  page += fmt::format("\nagainst {}\n", *text.reference);
  table = {{"", "KL mean", "+/-", "KL median", "KL 99%", "KL max", "same top %", "|d logit|", "RMS dp %"}};
  for (const TextRow& row : text.rows) {
    if (!row.has_figures) {
      table.push_back({row.variant, "-", "-", "-", "-", "-", "-", "-", "-"});
      continue;
    }
    const Divergence d = row.scores.divergence();
    table.push_back({row.variant, fmt::format("{:.6f}", d.kl.mean), fmt::format("{:.6f}", d.kl.error),
                     fmt::format("{:.6f}", d.kl_median), fmt::format("{:.6f}", d.kl_p99),
                     fmt::format("{:.6f}", d.kl_max), fmt::format("{:.3f}", 100 * d.same_top),
                     fmt::format("{:.5f}", d.mean_abs_delta_logit),
                     fmt::format("{:.3f}", 100 * d.rms_delta_p)});
  }
  add_table(page, table);
}

void add_passkey(std::string& page, const PasskeyReport& passkey) {
  page += fmt::format("pass keys found of {}, by depth; native context {}, extended {}\n\n", passkey.trials,
                      passkey.native_tokens > 0 ? with_commas(passkey.native_tokens) : "not known",
                      passkey.extended_tokens > 0 ? with_commas(passkey.extended_tokens) : "not known");
  std::vector<std::string> line = {"", "tokens"};
  for (const int depth : passkey.depths) line.push_back(fmt::format("{}%", depth));
  Table table = {line};
  for (std::size_t i = 0; i < passkey.cells.size(); i += passkey.depths.size()) {
    line = {passkey.cells[i].variant, with_commas(passkey.cells[i].length)};
    for (std::size_t k = 0; k < passkey.depths.size(); ++k) {
      const auto& recalled = passkey.cells[i + k].recalled;
      line.push_back(recalled ? std::to_string(*recalled) : "-");
    }
    table.push_back(line);
  }
  add_table(page, table);
}

}  // namespace

Json to_json(const EvalReport& report) {
  return Json::object({{"schema", "plimsoll.eval/1"},
                       {"model", report.model},
                       {"text", report.text ? text_json(report) : Json()},
                       {"passkey", report.passkey ? passkey_json(report) : Json()},
                       {"findings", to_json(report.findings)},
                       {"basis", basis_json(report)}});
}

std::string to_text(const EvalReport& report) {
  std::string page = report.model + "\n\n";
  if (report.text) add_text(page, *report.text);
  if (report.text && report.passkey) page += "\n";
  if (report.passkey) add_passkey(page, *report.passkey);
  for (const Finding& finding : report.findings)
    page += fmt::format("\n{} {}: {}{}", to_string(finding.level), finding.id, finding.message,
                        finding.fix.empty() ? "" : "; " + finding.fix);
  return page + (report.findings.empty() ? "" : "\n");
}

}  // namespace plimsoll::serve
