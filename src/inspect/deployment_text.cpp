// SPDX-License-Identifier: Apache-2.0
#include "inspect/deployment_text.h"

#include <fmt/format.h>

#include "base/printable.h"

namespace plimsoll::inspect {
namespace {

void line(std::string& page, std::string_view label, const std::string& value) {
  if (!value.empty()) page += fmt::format("{:<22}{}\n", label, printable(value));
}

std::string text_of(const Json& value) {
  return value.is_string() ? *value.as_string() : std::string();
}

std::string license(const Report& report) {
  const Json& terms = report.license_terms;
  if (terms["id"].is_null()) return {};
  std::string text = text_of(terms["id"]);
  const std::string use = text_of(terms["commercial_use"]);
  if (use.empty()) return text + ": terms not known";
  return text + fmt::format(": commercial use {}, redistribution {}, derivatives {}", use,
                            text_of(terms["redistribution"]), text_of(terms["derivatives"]));
}

std::string defaults(const Report& report) {
  std::string text;
  for (const auto& [key, value] : report.generation_defaults.members())
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", key, dump(value));
  return text;
}

std::string window(const Report& report) {
  const auto& window = report.context.window;
  if (!window) return {};
  std::string text = fmt::format("{} tokens", with_commas(window->tokens));
  if (window->in_effect == false) return text + ", not in effect: " + window->reason;
  return window->layers ? text + fmt::format(" in {} layers", *window->layers) : text;
}

std::string maximum_input(const Report& report) {
  const auto& room = report.context.maximum_input;
  if (!room || !room->tokens) return {};
  return fmt::format("{} tokens: {} less {} for the answer ({}) and {} of the template",
                     with_commas(*room->tokens), with_commas(*report.context.max_model_len),
                     with_commas(room->reserved_output_tokens), room->reserved_by,
                     with_commas(*room->template_overhead_tokens));
}

std::string parallel(const Report& report) {
  std::string sizes, replicated, expert, reason;
  const auto note = [](std::string& to, int size) { to += (to.empty() ? "" : ", ") + std::to_string(size); };
  for (const ParallelRow& row : report.parallel) {
    if (row.is_possible) {
      note(sizes, row.tensor_parallel);
      if (row.kv_replicated) note(replicated, row.tensor_parallel);
    } else {
      if (row.with_expert_parallel.value_or(false)) note(expert, row.tensor_parallel);
      if (reason.empty()) reason = fmt::format("{}: {}", row.tensor_parallel, row.reason);
    }
  }
  if (report.parallel.empty()) return {};
  std::string text = sizes.empty() ? "none" : sizes;
  if (!replicated.empty()) text += fmt::format(" (KV replicated at {})", replicated);
  if (!expert.empty()) text += fmt::format("; with expert parallelism also {}", expert);
  return reason.empty() ? text : text + "; not " + reason;
}

std::string engines(const Report& report) {
  std::string text;
  for (const Json& row : report.support.items()) {
    const std::string status = text_of(row["status"]);
    if (status == "unknown") continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", text_of(row["engine"]), status);
    if (row["since"].is_string() && status != "unsupported") text += " since " + text_of(row["since"]);
  }
  return text;
}

}  // namespace

std::string deployment_text(const Report& report) {
  std::string page;
  line(page, "License", license(report));
  line(page, "Window", window(report));
  line(page, "Maximum input", maximum_input(report));
  line(page, "Sampling defaults", defaults(report));
  line(page, "Tensor parallel", parallel(report));
  line(page, "Engines", engines(report));
  for (const Json& row : report.environment.items()) {
    const auto is_met = row["ok"].as_bool();
    line(page, is_met ? *is_met ? "Has" : "Lacks" : "Open",
         text_of(row["need"]) + (row["found"].is_string() ? "; found " + text_of(row["found"]) : ""));
  }
  return page.empty() ? page : "\n" + page;
}

}  // namespace plimsoll::inspect
