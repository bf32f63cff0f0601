// SPDX-License-Identifier: Apache-2.0
#include "inspect/license_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "facts/catalogue.h"
#include "facts/licenses.h"

namespace plimsoll::inspect {
namespace {

using facts::LicenseFacts;
using facts::Permission;

std::optional<std::string> text_of(const Json& value) {
  const std::string* text = value.as_string();
  return text && !text->empty() ? std::optional(*text) : std::nullopt;
}

/// Where a licence is stated, and as what.
struct Statement {
  std::string where;
  std::string id;                   // as it is spelled there
  std::optional<std::string> name;  // license_name, beside "other"
  const LicenseFacts* row = nullptr;

  const std::string& shown() const { return name ? *name : id; }
};

const LicenseFacts* row_of(const std::string& id, const std::optional<std::string>& name) {
  // "other" says nothing; the name beside it does.
  if (name)
    if (const auto* row = facts::find_license(*name)) return row;
  return facts::find_license(id);
}

constexpr const char* kCardPlace = "README.md: license";

/// How much a licence forbids; of several, the one that forbids most is kept to.
int strictness(const std::string& id) {
  const auto* row = facts::find_license(id);
  if (!row || row->commercial_use == Permission::kUnknown) return 2;
  return row->commercial_use == Permission::kNo ? 3 : row->commercial_use == Permission::kConditional ? 1 : 0;
}

std::optional<std::string> strictest(const std::vector<std::string>& ids) {
  const auto worst = std::max_element(ids.begin(), ids.end(), [](const std::string& a, const std::string& b) {
    return strictness(a) < strictness(b);
  });
  return worst == ids.end() ? std::nullopt : std::optional(*worst);
}

std::optional<Statement> stated(const Subject& subject, const ModelCard* card) {
  const artifact::Artifact& artifact = subject.artifact;
  Statement statement;
  std::optional<std::string> id;
  if (subject.is_gguf()) {
    id = text_of(subject.figures["general.license"]);
    statement.name = text_of(subject.figures["general.license.name"]);
    statement.where = subject.place("general.license");
  }
  const bool says_itself = id || statement.name;
  if (!says_itself && card && !card->values("license").empty()) {
    id = strictest(card->values("license"));
    statement.name = card->field("license_name");
    statement.where = kCardPlace;
  } else if (const artifact::HubFacts* hub = artifact.hub(); !says_itself && hub && !hub->license.empty()) {
    id = hub->license;
    statement.where = "hub: license";
  } else if (artifact.form() == artifact::Form::kConfigOnly && artifact.files().empty()) {
    if (const auto* entry = facts::find_catalogue(artifact.root()); entry && !entry->license.empty())
      id = std::string(entry->license);
    statement.where = "catalogue: license";
  }
  if (!id && !statement.name) return std::nullopt;
  constexpr std::size_t kLongestName = 120;
  statement.id = id.value_or("other").substr(0, kLongestName);
  if (statement.name) statement.name = statement.name->substr(0, kLongestName);
  statement.row = row_of(statement.id, statement.name);
  return statement;
}

struct LicenseFile {
  std::string path;
  const LicenseFacts* row = nullptr;  // null: its text is not recognised
};

std::optional<LicenseFile> license_file(const artifact::Artifact& artifact) {
  std::optional<LicenseFile> found;
  for (const artifact::File& file : artifact.files()) {
    const bool is_at_root = file.path.find('/') == std::string::npos;
    if (file.role != artifact::FileRole::kLicense || !is_at_root) continue;
    const auto text = artifact.text_file(file.path);
    if (!text) continue;
    const LicenseFacts* row = facts::recognize_license(*text);
    // NOTICE and USE_POLICY stand beside the licence; the file that is recognised speaks.
    if (!found || (!found->row && row)) found = LicenseFile{file.path, row};
  }
  return found;
}

Json permission_json(Permission permission) {
  return permission == Permission::kUnknown ? Json() : Json(facts::to_string(permission));
}

void add_terms_finding(const LicenseFacts& row, const std::string& where, Findings& findings) {
  const std::string cite = fmt::format(" ({}; {}, {})", row.title, row.source, row.date);
  if (!row.is_known())
    add_check(
        findings, "LICENSE_UNKNOWN", FindingLevel::kWarning, where,
        fmt::format("the licence \"{}\" is a text of its own whose terms are not known here{}", row.id, cite),
        "read the licence before you deploy, pass on or fine-tune the model");
  else if (row.commercial_use == Permission::kNo)
    add_check(findings, "LICENSE_NONCOMMERCIAL", FindingLevel::kWarning, where,
              fmt::format("\"{}\" allows no commercial use: {}{}", row.id, row.conditions, cite),
              "do not deploy it commercially without an agreement with the publisher");
  else if (row.commercial_use == Permission::kConditional || row.redistribution == Permission::kConditional ||
           row.derivatives != Permission::kYes)
    add_check(findings, "LICENSE_CONDITIONS", FindingLevel::kInfo, where,
              fmt::format("\"{}\" sets conditions: {}{}", row.id, row.conditions, cite),
              "check that your use meets them");
}

// Whether consent is asked for is the repository's matter, not the licence's.
Json gated_json(const artifact::HubFacts* hub, const ModelCard* card) {
  if (hub) return hub->is_gated;
  if (card && card->has_prefix("extra_gated_")) return true;
  return {};
}

// Two licences for one model: that of a GGUF's keys and of its card, or of either and of a LICENSE file.
void check_conflicts(const Subject& subject, const ModelCard* card, const std::optional<Statement>& statement,
                     const std::optional<LicenseFile>& file, Findings& findings) {
  const auto is_version_of = [](std::string_view exact, std::string_view family) {
    return exact == family || exact.starts_with(std::string(family) + "-");
  };
  // A GGUF's own licence goes before its card's.
  if (const auto said = card ? card->values("license") : std::vector<std::string>();
      subject.is_gguf() && statement && statement->row && statement->where != kCardPlace && !said.empty()) {
    const auto id = strictest(said);
    const auto* other = row_of(*id, card->field("license_name"));
    if (other && !is_version_of(other->id, statement->row->id) &&
        !is_version_of(statement->row->id, other->id))
      add_check(findings, "LICENSE_CONFLICT", FindingLevel::kWarning, kCardPlace,
                fmt::format("{} says \"{}\", the card says \"{}\"", statement->where, statement->row->id,
                            other->id),
                "ask the publisher which one holds; until then keep to the stricter one");
  }
  if (statement && statement->row && file && file->row && !is_version_of(file->row->id, statement->row->id))
    add_check(findings, "LICENSE_CONFLICT", FindingLevel::kWarning, file->path,
              fmt::format("{} says \"{}\", the text of {} is \"{}\"", statement->where, statement->row->id,
                          file->path, file->row->id),
              "ask the publisher which one holds; until then keep to the stricter one");
}

}  // namespace

void check_license(const Subject& subject, const ModelCard* card, Report& report) {
  const auto statement = stated(subject, card);
  const auto file = license_file(subject.artifact);
  const LicenseFacts* row = statement ? statement->row : file ? file->row : nullptr;
  // A card that says "other" leaves it to the file.
  const bool is_open_card = statement && !row && file && file->row;
  if (is_open_card) row = file->row;
  const std::string where = statement && !is_open_card ? statement->where : file ? file->path : "README.md";

  if (statement && facts::find_license(statement->id))
    report.license = std::string(facts::find_license(statement->id)->id);
  else if (statement && !is_open_card)
    report.license = row ? std::string(row->id) : statement->shown();
  else if (row)
    report.license = std::string(row->id);

  report.license_terms =
      Json::object({{"id", report.license},
                    {"name", row         ? Json(row->title)
                             : statement ? Json(statement->name)
                                         : Json()},
                    {"commercial_use", row ? permission_json(row->commercial_use) : Json()},
                    {"redistribution", row ? permission_json(row->redistribution) : Json()},
                    {"derivatives", row ? permission_json(row->derivatives) : Json()},
                    {"gated", gated_json(subject.artifact.hub(), card)},
                    {"conditions", row && !row->conditions.empty() ? Json(row->conditions) : Json()},
                    {"source", row ? Json(fmt::format("{}, {}", row->source, row->date)) : Json()}});

  if (const auto all = card ? card->values("license") : std::vector<std::string>();
      all.size() > 1 && statement && statement->where == kCardPlace)
    add_check(report.findings, "LICENSE_SEVERAL", FindingLevel::kWarning, kCardPlace,
              fmt::format("the card names {} licences, \"{}\" among them, which forbids most", all.size(),
                          statement->id),
              "ask the publisher which one holds for the weights; until then keep to the strictest");
  if (row)
    add_terms_finding(*row, where, report.findings);
  else if (statement || file)
    add_check(report.findings, "LICENSE_UNKNOWN", FindingLevel::kWarning, where,
              statement ? fmt::format("the licence \"{}\" is not known here; its terms are open",
                                      statement->shown().substr(0, 120))
                        : "the text of the licence is not recognised; its terms are open",
              "read the licence before you deploy, pass on or fine-tune the model");
  else if (card)
    add_check(report.findings, "LICENSE_MISSING", FindingLevel::kWarning, kCardPlace,
              "the model card names no licence and there is no LICENSE file: nothing is allowed by default",
              "ask the publisher for the terms");
  check_conflicts(subject, card, statement, file, report.findings);
}

}  // namespace plimsoll::inspect
