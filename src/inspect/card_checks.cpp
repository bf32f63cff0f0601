// SPDX-License-Identifier: Apache-2.0
#include "inspect/card_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "artifact/given_path.h"
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

/// The claims of one kind in a card, and which of them speaks for this model.
struct Said {
  const Claim* claim = nullptr;  // null: none of this kind
  bool is_clear = false;         // it is about this model, or the card knows only this one figure
  bool is_scaled = false;        // a length that the card reaches with a scaling of the positions
};

/// Cards speak of other models too: the claim that agrees speaks for this one; where none does, the one whose
/// sentence names this model, else the first.
Said said_of(const std::vector<Claim>& claims, Claim::Kind kind, const Figures& figures) {
  Said said;
  bool is_alone = true;
  for (const Claim& claim : claims) {
    if (claim.kind != kind) continue;
    if (agrees_with_any(claim, figures)) return {&claim, true};
    if (claim.is_aside) continue;
    if (!said.claim) said.claim = &claim;
    is_alone &= claim.value == said.claim->value && !claim.is_listed;
  }
  const auto own = std::find_if(claims.begin(), claims.end(), [&](const Claim& claim) {
    return claim.kind == kind && claim.is_own && !claim.is_aside;
  });
  if (own != claims.end()) return {&*own, true};
  said.is_clear = is_alone;
  return said;
}

void compare(const Said& said, const Figures& figures, const char* id, const char* what, Report& report) {
  const Claim* claim = said.claim;
  if (!claim || figures.empty() || agrees_with_any(*claim, figures)) return;
  // A card may promise less context than the files allow.
  const bool is_modest = claim->kind == Claim::Kind::kContext &&
                         claim->value <= *std::max_element(figures.begin(), figures.end());
  if (is_modest) return;
  constexpr std::int64_t kMostScaling = 8;
  if (said.is_scaled && claim->value / kMostScaling <= figures.front()) {
    add_check(report.findings, id, FindingLevel::kInfo, "README.md",
              fmt::format("the card says \"{}\" ({} {}) and tells of a scaling of the positions; the config "
                          "declares none that reaches it, the files have {}",
                          claim->text, claim->value, what, figures.front()),
              "declare rope_scaling as the card says where you need that length");
    return;
  }
  add_check(report.findings, id, said.is_clear ? FindingLevel::kWarning : FindingLevel::kInfo, "README.md",
            said.is_clear
                ? fmt::format("the card says \"{}\" ({} {}); the files have {}", claim->text, claim->value,
                              what, figures.front())
                : fmt::format("the card names several figures, \"{}\" among them ({} {}); the files "
                              "have {}, which is none of them",
                              claim->text, claim->value, what, figures.front()),
            "trust the files; the card may speak of another model");
}

/// "YaRN", "rope_scaling": a length beyond the config's is a setting away.
bool tells_of_scaling(const std::string& text) {
  for (const char* word : {"YaRN", "yarn", "Yarn", "rope_scaling", "RoPE scaling", "rope scaling"})
    if (text.find(word) != std::string::npos) return true;
  return false;
}

/// Names round further than cards: 31.6 billion are sold as 30B.
Claim rounded(Claim claim) {
  claim.precision = std::max(claim.precision, claim.value / 10);
  return claim;
}

/// Whether the name says the size that the files have: "Llama-3.1-8B", whatever else the card speaks of.
bool is_sized_right(const std::string& name, const Figures& totals) {
  const std::vector<Claim> claims = claims_in_name(name);
  return std::any_of(claims.begin(), claims.end(), [&](const Claim& claim) {
    return claim.kind == Claim::Kind::kSize && agrees_with_any(rounded(claim), totals);
  });
}

void check_name(const Subject& subject, const std::string& name, Report& report) {
  const Figures totals = total_figures(report.parameters), actives = active_figures(report.parameters);
  if (totals.empty()) return;
  const bool has_right_size = is_sized_right(name, totals);
  for (const Claim& said : claims_in_name(name)) {
    const Claim claim = rounded(said);
    // "0.6B-1000B-tokens": one size is the model's.
    if (claim.kind == Claim::Kind::kSize && has_right_size) continue;
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

Json value_of(const Said& said) {
  return said.claim ? Json(said.claim->value) : Json();
}

}  // namespace

std::string model_name(const Subject& subject, const Report& report) {
  if (const auto* name = subject.figures["general.name"].as_string(); name && subject.is_gguf()) return *name;
  // An id on a hub speaks for itself; its files may lie in a folder of any name.
  std::error_code error;
  const bool is_path = std::filesystem::exists(report.source, error);
  const std::filesystem::path root(is_path ? subject.artifact.root()
                                           : report.source.substr(0, report.source.find('@')));
  if (const auto repository = artifact::repository_of_snapshot(root.string()))
    return repository->substr(repository->find('/') + 1);
  return (root.filename().empty() ? root.parent_path() : root).filename().string();
}

void check_card(const Subject& subject, const ModelCard* card, Report& report) {
  const std::string name = model_name(subject, report);
  const std::vector<Claim> claims = card ? claims_in_text(card->text, name) : std::vector<Claim>();
  const Figures totals = total_figures(report.parameters), actives = active_figures(report.parameters),
                lengths = context_figures(report.context);
  Said total = said_of(claims, Claim::Kind::kTotal, totals);
  const Said active = said_of(claims, Claim::Kind::kActive, actives);
  Said context = said_of(claims, Claim::Kind::kContext, lengths);
  context.is_scaled = card && tells_of_scaling(card->text);
  // Then the card's other sizes are other models'.
  if (total.claim && !total.claim->is_own && !agrees_with_any(*total.claim, totals) &&
      is_sized_right(name, totals))
    total = {};
  report.card_claims = Json::object(
      {{"total", value_of(total)}, {"active", value_of(active)}, {"context_tokens", value_of(context)}});
  compare(total, totals, "CARD_TOTAL", "parameters", report);
  compare(active, actives, "CARD_ACTIVE", "active parameters", report);
  compare(context, lengths, "CARD_CONTEXT", "tokens of context", report);
  check_name(subject, name, report);
}

}  // namespace plimsoll::inspect
