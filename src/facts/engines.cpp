// SPDX-License-Identifier: Apache-2.0
#include "facts/engines.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

namespace plimsoll::facts {

std::vector<int> release_numbers(std::string_view version) {
  std::vector<int> numbers;
  const char* at = version.data();
  const char* end = at + version.size();
  while (at != end && numbers.size() < 4) {
    int number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    if (error != std::errc{}) break;
    numbers.push_back(number);
    at = stop;
    if (at == end || *at != '.') break;
    ++at;
  }
  return numbers;
}

namespace {

constexpr std::array<std::pair<EngineName, std::string_view>, 5> kNames{{
    {EngineName::kPlimsoll, "plimsoll"},
    {EngineName::kAny, "any"},
    {EngineName::kVllm, "vllm"},
    {EngineName::kSglang, "sglang"},
    {EngineName::kLlamaCpp, "llama.cpp"},
}};

struct EngineVersion {
  EngineName name;
  std::string_view version;  // "0.33.0"; empty for an engine whose builds are not told apart
  std::string_view source;
};

// Newest first within an engine.
constexpr EngineVersion kVersions[] = {
    {EngineName::kPlimsoll, "0.1.0", "this program"},
    {EngineName::kAny, "", "no engine: the formula alone"},
    {EngineName::kVllm, "0.33.0", "release on PyPI"},
    {EngineName::kVllm, "0.32.0", "release on PyPI"},
    {EngineName::kVllm, "0.31.0", "release on PyPI"},
    {EngineName::kVllm, "0.30.0", "release on PyPI"},
    {EngineName::kVllm, "0.29.0", "release on PyPI"},
    {EngineName::kVllm, "0.28.0", "release on PyPI"},
    {EngineName::kVllm, "0.27.1", "release on PyPI"},
    {EngineName::kVllm, "0.27.0", "release on PyPI"},
    {EngineName::kVllm, "0.26.0", "release on PyPI"},
    {EngineName::kVllm, "0.25.1", "release on PyPI"},
    {EngineName::kVllm, "0.25.0", "release on PyPI"},
    {EngineName::kVllm, "0.24.0", "release on PyPI"},
    {EngineName::kVllm, "0.23.0", "release on PyPI"},
    {EngineName::kVllm, "0.22.1", "release on PyPI"},
    {EngineName::kVllm, "0.22.0", "release on PyPI"},
    {EngineName::kVllm, "0.21.0", "release on PyPI"},
    {EngineName::kVllm, "0.20.2", "release on PyPI"},
    {EngineName::kVllm, "0.20.1", "release on PyPI"},
    {EngineName::kVllm, "0.20.0", "release on PyPI"},
    {EngineName::kVllm, "0.19.1", "release on PyPI"},
    {EngineName::kVllm, "0.19.0", "release on PyPI"},
    {EngineName::kVllm, "0.18.1", "release on PyPI"},
    {EngineName::kVllm, "0.18.0", "release on PyPI"},
    {EngineName::kVllm, "0.17.1", "release on PyPI"},
    {EngineName::kVllm, "0.17.0", "release on PyPI"},
    {EngineName::kVllm, "0.16.0", "release on PyPI"},
    {EngineName::kVllm, "0.15.1", "release on PyPI"},
    {EngineName::kVllm, "0.15.0", "release on PyPI"},
    {EngineName::kVllm, "0.14.1", "release on PyPI"},
    {EngineName::kVllm, "0.14.0", "release on PyPI"},
    {EngineName::kVllm, "0.13.0", "release on PyPI"},
    {EngineName::kVllm, "0.12.0", "release on PyPI"},
    {EngineName::kVllm, "0.11.2", "release on PyPI"},
    {EngineName::kVllm, "0.11.1", "release on PyPI"},
    {EngineName::kVllm, "0.11.0", "release on PyPI"},
    {EngineName::kVllm, "0.10.2", "release on PyPI"},
    {EngineName::kVllm, "0.10.1.1", "release on PyPI"},
    {EngineName::kVllm, "0.10.1", "release on PyPI"},
    {EngineName::kVllm, "0.10.0", "release on PyPI"},
    {EngineName::kVllm, "0.9.2", "release on PyPI"},
    {EngineName::kVllm, "0.9.1", "release on PyPI"},
    {EngineName::kVllm, "0.9.0.1", "release on PyPI"},
    {EngineName::kVllm, "0.9.0", "release on PyPI"},
    {EngineName::kVllm, "0.8.5", "release on PyPI"},
    {EngineName::kVllm, "0.8.4", "release on PyPI"},
    {EngineName::kVllm, "0.8.3", "release on PyPI"},
    {EngineName::kVllm, "0.8.2", "release on PyPI"},
    {EngineName::kVllm, "0.8.1", "release on PyPI"},
    {EngineName::kVllm, "0.8.0", "release on PyPI"},
    {EngineName::kVllm, "0.7.3", "release on PyPI"},
    {EngineName::kVllm, "0.7.2", "release on PyPI"},
    {EngineName::kVllm, "0.7.1", "release on PyPI"},
    {EngineName::kVllm, "0.7.0", "release on PyPI"},
    {EngineName::kVllm, "0.6.6", "release on PyPI"},
    {EngineName::kVllm, "0.6.5", "release on PyPI"},
    {EngineName::kVllm, "0.6.4", "release on PyPI"},
    {EngineName::kVllm, "0.6.3", "release on PyPI"},
    {EngineName::kVllm, "0.6.2", "release on PyPI"},
    {EngineName::kVllm, "0.6.1", "release on PyPI"},
    {EngineName::kVllm, "0.6.0", "release on PyPI"},
    {EngineName::kSglang, "0.5.23", "release on PyPI"},
    {EngineName::kLlamaCpp, "", "builds are numbered, not versioned"},
};

/// Built from a checkout without tags: says nothing about its age.
bool is_untagged(std::string_view version) {
  return version.starts_with("0.1.dev") || version.starts_with("0.0.0") || version == "dev";
}

const EngineVersion& newest(EngineName name) {
  for (const EngineVersion& row : kVersions)
    if (row.name == name) return row;
  check_failed("row", __FILE__, __LINE__, "every engine name has a row");
}

/// As many of the version's numbers as were asked for.
std::vector<int> numbers_like(std::string_view version, const std::vector<int>& asked) {
  std::vector<int> numbers = release_numbers(version);
  numbers.resize(std::min(numbers.size(), asked.size()));
  return numbers;
}

/// The known version that stands for `asked`, newest that is not newer: of "0.19" the last 0.19.
const EngineVersion& standing_for(EngineName name, std::string_view asked) {
  const std::vector<int> wanted = release_numbers(asked);
  if (is_untagged(asked) || wanted.empty()) return newest(name);
  const EngineVersion* oldest = nullptr;
  for (const EngineVersion& row : kVersions) {
    if (row.name != name) continue;
    if (numbers_like(row.version, wanted) <= wanted) return row;
    oldest = &row;
  }
  return oldest ? *oldest : newest(name);
}

}  // namespace

std::string_view to_string(EngineName name) {
  for (const auto& [value, text] : kNames)
    if (value == name) return text;
  return "?";
}

Result<EngineChoice> parse_engine(std::string_view text) {
  const std::string_view name_text = text.substr(0, text.find('@'));
  EngineChoice choice;
  bool is_known = false;
  for (const auto& [value, name] : kNames)
    if (name == name_text) {
      choice.name = value;
      is_known = true;
    }
  if (!is_known)
    return fail(ErrorCode::kUsage,
                "no engine is known by the name \"" + std::string(name_text.substr(0, 80)) + "\"", "--engine",
                "one of: plimsoll, any, vllm, sglang, llama.cpp, with @VERSION behind it");
  if (name_text.size() < text.size()) choice.asked = std::string(text.substr(name_text.size() + 1));
  const EngineVersion& used =
      choice.asked.empty() ? newest(choice.name) : standing_for(choice.name, choice.asked);
  choice.version = std::string(used.version);
  const std::vector<int> wanted = release_numbers(choice.asked);
  const bool is_same_release =
      !is_untagged(choice.asked) && numbers_like(used.version, wanted) == wanted && !wanted.empty();
  if (!choice.asked.empty() && !is_same_release)
    choice.findings.push_back(
        {"VERSION_UNKNOWN", FindingLevel::kWarning, FindingKind::kCheckFailed, "--engine",
         "version " + choice.asked.substr(0, 80) + " of " + std::string(name_text) + " is not known; " +
             (choice.version.empty() ? "its rules" : choice.version) + " is used",
         "name a known version, or expect small differences"});
  return choice;
}

}  // namespace plimsoll::facts
