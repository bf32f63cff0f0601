// SPDX-License-Identifier: Apache-2.0
// Runs the checks in order over one artifact.
#include "inspect/inspect.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "artifact/given_path.h"
#include "artifact/lock.h"
#include "facts/catalogue.h"
#include "inspect/card_checks.h"
#include "inspect/code_checks.h"
#include "inspect/config_checks.h"
#include "inspect/context_checks.h"
#include "inspect/environment_checks.h"
#include "inspect/generation_checks.h"
#include "inspect/license_checks.h"
#include "inspect/model_card.h"
#include "inspect/multimodal.h"
#include "inspect/parallel_checks.h"
#include "inspect/quantization.h"
#include "inspect/revision_checks.h"
#include "inspect/sidecar_checks.h"
#include "inspect/sizes.h"
#include "inspect/structure.h"
#include "inspect/subject.h"
#include "inspect/support_checks.h"
#include "inspect/tensor_view.h"
#include "inspect/token_checks.h"
#include "inspect/weight_checks.h"

namespace plimsoll::inspect {
namespace {

std::string config_file_of(const artifact::Artifact& artifact) {
  const auto& files = artifact.files();
  if (artifact.form() == artifact::Form::kGguf) {
    const auto gguf =
        std::find_if(files.begin(), files.end(), [](const auto& f) { return f.path.ends_with(".gguf"); });
    return gguf == files.end() ? artifact.root() : gguf->path;
  }
  return artifact::is_lone_file(artifact) ? files.front().path : "config.json";
}

std::optional<std::string> text_of(const Json& value) {
  const std::string* text = value.as_string();
  return text ? std::optional(*text) : std::nullopt;
}

void name_model(const Subject& subject, Report& report) {
  const artifact::Artifact& artifact = subject.artifact;
  report.commit = artifact.commit();
  if (report.spec) {
    report.architecture = report.spec->architecture;
    report.model_type = report.spec->model_type;
  } else if (subject.is_gguf()) {
    report.architecture = text_of(artifact.config()["general.architecture"]);
  } else {
    const auto& names = artifact.config()["architectures"].items();
    if (!names.empty()) report.architecture = text_of(names.front());
    report.model_type = text_of(artifact.config()["model_type"]);
  }
}

// What stands beside the weights: card, licence, commit, code, defaults; and what the model asks of engines.
Status check_deployment(const Subject& subject, Report& report) {
  const auto card = read_model_card(subject.artifact);
  const ModelCard* known_card = card ? &*card : nullptr;
  check_license(subject, known_card, report);
  check_revision(subject, known_card, report);
  check_code(subject, report);
  check_generation(subject, report);
  check_card(subject, known_card, report);
  measure_maximum_input(subject, report);
  check_parallel(subject, report);
  check_support(subject, report);
  return check_environment(subject, report);
}

bool artifact_is_adapter(const artifact::Artifact& artifact) {
  const Findings& findings = artifact.findings();
  return artifact.config().is_null() &&
         std::any_of(findings.begin(), findings.end(),
                     [](const Finding& finding) { return finding.id == "ADAPTER_ONLY"; });
}

Status run_checks(const Subject& subject, Report& report) {
  std::optional<Error> spec_error;
  if (auto spec = model::read_spec(subject.artifact))
    report.spec = std::move(*spec);
  else
    spec_error = spec.error();
  // What an adapter changes is described by the model that it is for.
  if (artifact_is_adapter(subject.artifact)) spec_error.reset();
  name_model(subject, report);
  check_config(subject, spec_error, report.findings);
  if (report.spec) check_assumed(subject, *report.spec, report.findings);
  read_context(subject, report);
  PLIMSOLL_TRY_VOID(measure_kv_cache(subject, report));
  measure_sizes(subject, report);
  check_declaration(subject, report);
  check_weights(subject, report);
  check_sidecars(subject, report.findings);
  check_tokens(subject, report);
  read_multimodal(subject, report);
  PLIMSOLL_TRY_VOID(check_deployment(subject, report));
  if (!subject.artifact.tensors().empty())
    report.values_scanned = subject.options.is_deep && subject.artifact.has_tensor_bytes();
  if (subject.options.is_deep) {
    Findings deep = artifact::deep_findings(subject.artifact);
    report.findings.insert(report.findings.end(), std::make_move_iterator(deep.begin()),
                           std::make_move_iterator(deep.end()));
  }
  return {};
}

// The record's other fields are held against the files when they are opened.
void check_locked_length(const artifact::Artifact& artifact, Report& report) {
  const artifact::LockRecord* lock = artifact.lock();
  const auto& length = report.context.max_model_len;
  if (!lock || !lock->max_model_len || length == lock->max_model_len) return;
  report.findings.push_back(
      {"LOCK_MISMATCH", FindingLevel::kWarning, FindingKind::kCheckFailed, "max_model_len",
       fmt::format("the lock record gives a length of {} tokens, the model has {} by default",
                   *lock->max_model_len, length ? std::to_string(*length) : "none"),
       "see what changed; `plimsoll pull ... -o FILE` writes a new record"});
}

}  // namespace

Result<Report> inspect(const std::string& model, const Options& options) {
  PLIMSOLL_TRY(const auto artifact, artifact::open(model, {.lock = options.lock,
                                                           .checks_digests = options.is_deep,
                                                           .catalogue = facts::catalogue_config}));
  std::string pointer;
  const Json& figures = artifact->form() == artifact::Form::kGguf
                            ? artifact->config()
                            : model::language_config(artifact->config(), pointer);
  const Subject subject{*artifact, options, config_file_of(*artifact), pointer, figures};
  Report report;
  report.source = model;
  report.workload = options.workload;
  report.files = artifact->files();
  report.findings = artifact->findings();
  PLIMSOLL_TRY_VOID(run_checks(subject, report));
  if (options.lists_tensors) report.tensors = tensor_list(*artifact);
  if (!options.tensor.empty()) {
    PLIMSOLL_TRY(report.tensor, tensor_statistics(*artifact, options.tensor));
  }
  check_locked_length(*artifact, report);
  for (const std::string& path : artifact->cut_files())
    report.findings.push_back({"FILE_UNREADABLE", FindingLevel::kError, FindingKind::kMalformed, path,
                               "the file became shorter while it was read, or its disk fails: what was not "
                               "there was read as zeros",
                               "look again when nothing writes to the file any more"});
  std::stable_sort(report.findings.begin(), report.findings.end(),
                   [](const Finding& a, const Finding& b) { return a.level > b.level; });
  return report;
}

std::optional<ErrorCode> verdict_code(const Findings& findings) {
  std::optional<ErrorCode> worst;
  for (const Finding& finding : findings) {
    if (finding.level != FindingLevel::kError) continue;
    if (finding.kind == FindingKind::kMalformed) return ErrorCode::kMalformed;
    if (finding.kind == FindingKind::kUnsupported) worst = ErrorCode::kUnsupported;
    if (finding.kind == FindingKind::kCheckFailed && !worst) worst = ErrorCode::kNo;
  }
  return worst;
}

}  // namespace plimsoll::inspect
