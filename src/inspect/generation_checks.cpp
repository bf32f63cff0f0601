// SPDX-License-Identifier: Apache-2.0
#include "inspect/generation_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

namespace plimsoll::inspect {
namespace {

constexpr const char* kFile = "generation_config.json";
constexpr double kNoLimit = std::numeric_limits<double>::infinity();

/// A key that engines take over, the value that changes nothing, and what samplers accept.
struct SamplingKey {
  const char* name;
  double neutral;
  double least, most;
};
constexpr std::array<SamplingKey, 8> kKeys{{
    {"temperature", 1.0, 0.0, 2.0},
    {"top_p", 1.0, 0.0, 1.0},
    {"top_k", 0.0, -1.0, kNoLimit},
    {"min_p", 0.0, 0.0, 1.0},
    {"repetition_penalty", 1.0, 0.0, kNoLimit},
    {"presence_penalty", 0.0, -2.0, 2.0},
    {"frequency_penalty", 0.0, -2.0, 2.0},
    {"max_new_tokens", kNoLimit, 1.0, kNoLimit},
}};

bool is_refused(const SamplingKey& key, const Json& value) {
  const auto number = value.as_double();
  if (!number || !(*number >= key.least && *number <= key.most)) return true;
  const std::string_view name = key.name;
  if ((name == "top_k" || name == "max_new_tokens") && !value.as_integer()) return true;  // counts
  // Bounds that are open: nothing has a probability of 0 in sum, and penalties divide.
  return (name == "top_p" || name == "repetition_penalty") && *number == 0.0;
}

bool changes_nothing(const SamplingKey& key, const Json& value) {
  const bool is_switched_off = std::string_view(key.name) == "top_k" && value.as_double() == -1.0;
  return is_switched_off || value.as_double() == key.neutral;
}

}  // namespace

void check_generation(const Subject& subject, Report& report) {
  if (!subject.has_file(kFile)) return;
  const Json& config = subject.artifact.json_file(kFile);
  if (!config.is_object()) {
    report.findings.push_back(
        {"GEN_JSON", FindingLevel::kError, FindingKind::kMalformed, kFile,
         "generation_config.json does not hold a JSON object; engines refuse to start with it",
         "download the file again"});
    return;
  }
  report.generation_defaults = Json::object();
  std::string applied;
  for (const SamplingKey& key : kKeys) {
    const Json& value = config[key.name];
    if (value.is_null()) continue;
    report.generation_defaults.set(key.name, value);
    if (is_refused(key, value))
      add_check(report.findings, "GEN_VALUE", FindingLevel::kWarning, fmt::format("{}: /{}", kFile, key.name),
                fmt::format("{} is {}: requests that give no value of their own are refused", key.name,
                            dump(value).substr(0, 60)),
                "correct the value, or start engines with --generation-config vllm");
    else if (!changes_nothing(key, value))
      applied += fmt::format("{}{} {}", applied.empty() ? "" : ", ", key.name, dump(value));
  }
  if (!applied.empty())
    add_check(report.findings, "GEN_DEFAULTS", FindingLevel::kInfo, kFile,
              fmt::format("vLLM and SGLang apply {} to every request that says nothing else", applied),
              "give the values in requests, or start vLLM with --generation-config vllm for neutral ones");
}

}  // namespace plimsoll::inspect
