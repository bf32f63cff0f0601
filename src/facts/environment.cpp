// SPDX-License-Identifier: Apache-2.0
#include "facts/environment.h"

#include <array>
#include <charconv>

#include "facts/compute_capability.h"

namespace plimsoll::facts {
namespace {

constexpr std::size_t kMaxGpus = 64;  // of one machine; more lines are no such output

constexpr std::array<EngineEnvironment, 2> kEnvironments{{
    {"vllm", "0.33.0", "13.0", "580.65.06", 75,
     "vLLM 0.33.0 builds for CUDA 13.0; CUDA 13.0's release notes name the driver; 2026-11-29"},
    {"sglang", "0.5.23", "13.0", "580.65.06", 80,
     "SGLang 0.5.23 requires cuda-python 13.0; CUDA 13.0's release notes name the driver; 2026-11-29"},
}};

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\r";
  const std::size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlanks) - begin + 1);
}

std::string_view take(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return trimmed(part);
}

bool is_version(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9' &&
         text.find_first_not_of("0123456789.") == std::string_view::npos && text.find('.') != text.npos;
}

/// "81559 MiB"
std::optional<Bytes> memory_in(std::string_view text) {
  std::int64_t amount = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), amount);
  if (error != std::errc{} || amount <= 0 || amount > (std::int64_t{1} << 40)) return std::nullopt;
  const std::string_view unit = trimmed(text.substr(static_cast<std::size_t>(stop - text.data())));
  return unit == "MiB" || unit.empty() ? std::optional(Bytes(amount * kMiB)) : std::nullopt;
}

}  // namespace

std::span<const EngineEnvironment> engine_environments() {
  return kEnvironments;
}

std::vector<InstalledGpu> parse_nvidia_smi(std::string_view output) {
  std::vector<InstalledGpu> gpus;
  while (!output.empty() && gpus.size() < kMaxGpus) {
    std::string_view line = take(output, '\n');
    InstalledGpu gpu;
    gpu.name = std::string(take(line, ',').substr(0, 120));
    const std::string_view memory = take(line, ','), driver = take(line, ','), capability = take(line, ',');
    if (gpu.name.empty() || !is_version(driver)) continue;
    gpu.memory = memory_in(memory);
    gpu.driver = std::string(driver);
    gpu.compute_capability = parse_capability(capability);
    gpus.push_back(std::move(gpu));
  }
  return gpus;
}

std::string parse_driver_version(std::string_view text) {
  // "NVRM version: NVIDIA UNIX x86_64 Kernel Module  570.124.06  Wed ..."; open modules say more words
  // before.
  std::string_view line = take(text, '\n');
  if (!line.starts_with("NVRM version")) return {};
  while (!line.empty())
    if (const std::string_view word = take(line, ' '); is_version(word)) return std::string(word);
  return {};
}

bool is_at_least(std::string_view version, std::string_view least) {
  while (!version.empty() || !least.empty()) {
    int have = 0, want = 0;
    const std::string_view one = take(version, '.'), other = take(least, '.');
    std::from_chars(one.data(), one.data() + one.size(), have);
    std::from_chars(other.data(), other.data() + other.size(), want);
    if (have != want) return have > want;
  }
  return true;
}

}  // namespace plimsoll::facts
