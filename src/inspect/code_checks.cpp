// SPDX-License-Identifier: Apache-2.0
#include "inspect/code_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "facts/facts.h"
#include "inspect/names_list.h"

namespace plimsoll::inspect {
namespace {

using Names = std::set<std::string>;

// Places that transformers asks for auto_map.
struct Place {
  std::string file;
  const Json* config;
};

std::vector<Place> places_of(const Subject& subject) {
  std::vector<Place> places{{subject.config_file, &subject.artifact.config()}};
  for (const char* file : {"tokenizer_config.json", "preprocessor_config.json", "processor_config.json",
                           "generation_config.json"})
    places.push_back({file, &subject.artifact.json_file(file)});
  return places;
}

// "modeling_x.XForCausalLM" or "org/name--modeling_x.XForCausalLM", alone or in a list (slow and fast
// tokenizers).
void add_references(const Json& value, Names& references) {
  if (const auto* text = value.as_string()) references.insert(*text);
  for (const Json& item : value.items())
    if (const auto* text = item.as_string()) references.insert(*text);
}

bool is_elsewhere(const std::string& reference) {
  return reference.find("--") != std::string::npos;
}

std::string module_file(const std::string& reference) {
  return reference.substr(0, reference.rfind('.')) + ".py";
}

// Whether vLLM has the class and the config's class of this model itself, and so runs none of its code.
bool is_native(const Report& report) {
  const std::string model_type = report.model_type.value_or("");
  const auto types = facts::config_types();
  return report.architecture &&
         std::binary_search(types.begin(), types.end(), std::string_view(model_type)) &&
         facts::support_of(facts::ServingEngine::kVllm, *report.architecture, model_type).status ==
             facts::SupportStatus::kSupported;
}

// Whether a map brings only the class that the config names, and its config: what such an engine has itself.
// Tokenizers and processors of their own are run by all engines.
bool is_replaceable(const Json& map, const std::string& architecture) {
  bool has_model = false, names_it = false;
  for (const auto& [name, value] : map.members()) {
    if (name != "AutoConfig" && !name.starts_with("AutoModel")) return false;
    if (name == "AutoConfig") continue;
    Names references;
    add_references(value, references);
    for (const std::string& reference : references) {
      has_model = true;
      names_it |= reference.substr(reference.rfind('.') + 1) == architecture;
    }
  }
  return names_it || !has_model;
}

Names python_files(const artifact::Artifact& artifact) {
  Names files;
  for (const artifact::File& file : artifact.files())
    if (file.role == artifact::FileRole::kCode) files.insert(file.path);
  return files;
}

// Pipelines of a model's own are code, too: {"task": {"impl": "file.Class"}}.
void check_pipelines(const Subject& subject, Findings& findings) {
  Names references;
  for (const auto& [task, pipeline] : subject.artifact.config()["custom_pipelines"].members())
    add_references(pipeline["impl"], references);
  if (!references.empty())
    add_check(
        findings, "REMOTE_CODE", FindingLevel::kWarning, subject.config_file + ": /custom_pipelines",
        fmt::format("custom_pipelines names {}, which transformers runs only with trust_remote_code; it "
                    "is not run here",
                    names_list(references)),
        "read that code before you trust it, or use a revision without it");
}

}  // namespace

void check_code(const Subject& subject, Report& report) {
  if (subject.is_gguf()) return;
  Findings& findings = report.findings;
  const Names files = python_files(subject.artifact);
  const bool is_known = is_native(report);
  bool has_map = false;
  check_pipelines(subject, findings);
  for (const Place& place : places_of(subject)) {
    Names references, missing;
    for (const auto& [name, value] : (*place.config)["auto_map"].members()) add_references(value, references);
    if (references.empty()) continue;
    has_map = true;
    bool is_foreign = false;
    for (const std::string& reference : references) {
      is_foreign |= is_elsewhere(reference);
      if (!is_elsewhere(reference) && !files.contains(module_file(reference)))
        missing.insert(module_file(reference));
    }
    const bool is_needed = !is_known || !is_replaceable((*place.config)["auto_map"], *report.architecture);
    std::string message =
        is_needed
            ? fmt::format(
                  "auto_map names {}, which engines run only with trust_remote_code; it is not run here",
                  names_list(references))
            : fmt::format(
                  "auto_map names {}; vLLM has {} itself and needs none of it, other loaders run it with "
                  "trust_remote_code",
                  names_list(references), *report.architecture);
    if (is_foreign)
      message += "; code of another repository is fetched at its newest state unless --code-revision pins it";
    const bool has_folder = subject.artifact.form() != artifact::Form::kConfigOnly;
    if (!missing.empty() && has_folder)
      message += fmt::format("; {} is not in the folder", names_list(missing));
    add_check(findings, "REMOTE_CODE", is_needed ? FindingLevel::kWarning : FindingLevel::kInfo,
              place.file + ": /auto_map", message,
              "read that code before you trust it, or use a revision without it");
  }
  if (!has_map && !files.empty())
    add_check(findings, "CODE_FILES", FindingLevel::kInfo, *files.begin(),
              fmt::format("{} Python file{} beside the weights ({}); no auto_map loads them", files.size(),
                          files.size() == 1 ? "" : "s", names_list(files)),
              "engines that know the architecture need none of them");
}

}  // namespace plimsoll::inspect
