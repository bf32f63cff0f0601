// SPDX-License-Identifier: Apache-2.0
#include "inspect/card_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "inspect/claims.h"

namespace plimsoll::inspect {
namespace {

using Figures = std::vector<std::int64_t>;

void add_if(Figures& figures, const std::optional<std::int64_t>& value) {
  if (value && *value > 0) figures.push_back(*value);
}

/// What a claim of all parameters may rightly count: with or without draft layers, buffers and embedding.
Figures total_figures(const Parameters& parameters) {
  Figures figures;
  add_if(figures, parameters.total);
  add_if(figures, parameters.hub_total);
  if (parameters.total && parameters.mtp) add_if(figures, checked_sum(*parameters.total, *parameters.mtp));
  return figures;
}

Figures active_figures(const Parameters& parameters) {
  Figures figures;
  add_if(figures, parameters.active);
  add_if(figures, parameters.active_without_embedding);
  return figures;
}

Figures context_figures(const Context& context) {
  Figures figures;
  add_if(figures, context.native_tokens);
  add_if(figures, context.extended_tokens);
  add_if(figures, context.max_model_len);
  return figures;
}

bool agrees_with_any(const Claim& claim, const Figures& figures) {
  return std::any_of(figures.begin(), figures.end(),
                     [&](std::int64_t figure) { return agrees(claim, figure); });
}

/// Cards speak of other models too: the claim that agrees speaks for this one; where none does, the first.
const Claim* chosen(const std::vector<Claim>& claims, Claim::Kind kind, const Figures& figures) {
  const Claim* first = nullptr;
  for (const Claim& claim : claims) {
    if (claim.kind != kind) continue;
    if (agrees_with_any(claim, figures)) return &claim;
    if (!first) first = &claim;
  }
  return first;
}

void compare(const Claim* claim, const Figures& figures, const char* id, const char* what, Report& report) {
  if (!claim || figures.empty() || agrees_with_any(*claim, figures)) return;
  // A card may promise less context than the files allow.
  const bool is_modest = claim->kind == Claim::Kind::kContext &&
                         claim->value <= *std::max_element(figures.begin(), figures.end());
  if (is_modest) return;
  add_check(report.findings, id, FindingLevel::kWarning, "README.md",
            fmt::format("the card says \"{}\" ({} {}); the files have {}", claim->text, claim->value, what,
                        figures.front()),
            "trust the files; the card may speak of another model");
}

std::string name_of(const Subject& subject, const Report& report) {
  if (const auto* name = subject.figures["general.name"].as_string(); name && subject.is_gguf()) return *name;
  // An id on a hub speaks for itself; its files may lie in a folder of any name.
  std::error_code error;
  const bool is_path = std::filesystem::exists(report.source, error);
  const std::filesystem::path root(is_path ? subject.artifact.root()
                                           : report.source.substr(0, report.source.find('@')));
  const std::filesystem::path leaf = root.filename().empty() ? root.parent_path() : root;
  // In a hub cache the folder's name is the commit; models--org--name stands two levels above.
  if (leaf.parent_path().filename() == "snapshots")
    return leaf.parent_path().parent_path().filename().string();
  return leaf.filename().string();
}

void check_name(const Subject& subject, Report& report) {
  const Figures totals = total_figures(report.parameters), actives = active_figures(report.parameters);
  if (totals.empty()) return;
  const std::string name = name_of(subject, report);
  for (Claim claim : claims_in_name(name)) {
    // Names round further than cards: 31.6 billion are sold as 30B.
    claim.precision = std::max(claim.precision, claim.value / 10);
    const bool is_right = agrees_with_any(claim, actives) ||
                          (claim.kind == Claim::Kind::kSize && agrees_with_any(claim, totals));
    if (is_right || (claim.kind == Claim::Kind::kActive && actives.empty())) continue;
    // "8x7B": so many experts, of which attention and embedding are counted once in the total.
    const bool is_product = claim.text.find_first_of("xX") != std::string::npos;
    const auto within = [&](std::int64_t total) { return total > claim.value / 2 && total <= claim.value; };
    if (is_product && std::any_of(totals.begin(), totals.end(), within)) continue;
    const bool is_active = claim.kind == Claim::Kind::kActive;
    add_check(report.findings, "NAME_SIZE", FindingLevel::kInfo, subject.config_file,
              fmt::format("the name \"{}\" says {} ({} {}parameters); the files have {}", name, claim.text,
                          claim.value, is_active ? "active " : "", is_active ? actives[0] : totals[0]),
              "plan with the files' figures");
    return;
  }
}

Json value_of(const Claim* claim) {
  return claim ? Json(claim->value) : Json();
}

}  // namespace

void check_card(const Subject& subject, const ModelCard* card, Report& report) {
  const std::vector<Claim> claims = card ? claims_in_text(card->text) : std::vector<Claim>();
  const Figures totals = total_figures(report.parameters), actives = active_figures(report.parameters),
                lengths = context_figures(report.context);
  const Claim* total = chosen(claims, Claim::Kind::kTotal, totals);
  const Claim* active = chosen(claims, Claim::Kind::kActive, actives);
  const Claim* context = chosen(claims, Claim::Kind::kContext, lengths);
  report.card_claims = Json::object(
      {{"total", value_of(total)}, {"active", value_of(active)}, {"context_tokens", value_of(context)}});
  compare(total, totals, "CARD_TOTAL", "parameters", report);
  compare(active, actives, "CARD_ACTIVE", "active parameters", report);
  compare(context, lengths, "CARD_CONTEXT", "tokens of context", report);
  check_name(subject, report);
}

}  // namespace plimsoll::inspect
