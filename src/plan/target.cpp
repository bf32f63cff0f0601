// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "plan/plan.h"

namespace plimsoll::plan {
namespace {

constexpr std::int64_t kMostGpus = 100'000;  // beyond any cluster; keeps products within 63 bits

Result<std::int64_t> count_of(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (error != std::errc{} || end != text.data() + text.size() || count < 1 || count > kMostGpus)
    return fail(ErrorCode::kUsage, "\"" + std::string(text.substr(0, 40)) + "\" is no number of GPUs",
                "--gpu", "write NAME:N, for example H100:2");
  return count;
}

Target target_of_gpu(const facts::GpuFacts& gpu) {
  Target target;
  target.gpu = &gpu;
  target.name = std::string(gpu.name);
  target.asked = *target.name;
  target.memory = *gpu.memory();
  return target;
}

// One kind of GPU.
Result<Target> parse_kind(const std::string& text) {
  Target target;
  const std::size_t colon = text.rfind(':');
  const std::string name = text.substr(0, colon);
  target.asked = name;
  target.is_count_given = colon != std::string::npos;
  if (colon != std::string::npos) {
    PLIMSOLL_TRY(target.count, count_of(std::string_view(text).substr(colon + 1)));
  }
  // A bare number is a name ("4090"), a size has its letters.
  const bool has_letters = name.find_first_not_of("0123456789.") != std::string::npos;
  if (const auto size = has_letters ? parse_size(name) : std::nullopt) {
    if (*size < 1)
      return fail(ErrorCode::kUsage, "a GPU without memory holds nothing", "--gpu", "write 24GB");
    target.memory = Bytes(*size);
    return target;
  }
  PLIMSOLL_TRY(const facts::GpuFacts* gpu, facts::find_gpu(name));
  if (!gpu->memory())
    return fail(ErrorCode::kUsage,
                std::string(gpu->name) + " shares the machine's memory, so its name tells no size", "--gpu",
                "give the size that the GPU may use, for example --gpu 48GB");
  Target named = target_of_gpu(*gpu);
  named.asked = target.asked;
  named.count = target.count;
  named.is_count_given = target.is_count_given;
  return named;
}

}  // namespace

std::int64_t Target::num_gpus() const {
  std::int64_t all = count;
  for (const Target& kind : beside) all += kind.count;
  return all;
}

Result<Target> parse_target(const std::string& text) {
  const std::size_t comma = text.find(',');
  PLIMSOLL_TRY(Target first, parse_kind(text.substr(0, comma)));
  if (comma == std::string::npos) return first;
  first.is_count_given = true;
  for (std::size_t at = comma + 1; at <= text.size();) {
    const std::size_t end = std::min(text.find(',', at), text.size());
    PLIMSOLL_TRY(Target kind, parse_kind(text.substr(at, end - at)));
    first.beside.push_back(std::move(kind));
    at = end + 1;
  }
  return first;
}

Status add_price(const std::string& text, std::vector<Target>& targets) {
  const std::size_t sign = std::min(text.find('='), text.size());
  PLIMSOLL_TRY(Target priced, parse_target(text.substr(0, sign)));
  double price = -1;
  const char* begin = text.data() + std::min(sign + 1, text.size());
  const auto [end, error] = std::from_chars(begin, text.data() + text.size(), price);
  if (error != std::errc{} || end != text.data() + text.size() || !(price >= 0 && price < 1e9))
    return fail(ErrorCode::kUsage, "\"" + text.substr(0, 60) + "\" names no GPU and its price", "--gpu-price",
                "write NAME=PRICE, for example H100=2.5");
  bool is_named = false;
  for (Target& target : targets)
    if (target.asked == priced.asked || (priced.name && target.name == priced.name)) {
      target.price = price;
      is_named = true;
    }
  if (is_named) return {};
  priced.price = price;
  targets.push_back(std::move(priced));
  return {};
}

std::optional<Target> target_of(const std::vector<facts::InstalledGpu>& gpus) {
  if (gpus.empty()) return std::nullopt;
  Target target;
  const auto known = facts::find_gpu(gpus.front().name);
  if (known && (*known)->memory()) target = target_of_gpu(**known);
  target.name = known ? std::string((*known)->name) : gpus.front().name;
  target.asked = *target.name;
  target.count = static_cast<std::int64_t>(gpus.size());
  std::optional<Bytes> least;
  for (const facts::InstalledGpu& gpu : gpus)
    if (gpu.memory && (!least || *gpu.memory < *least)) least = gpu.memory;
  if (least) target.memory = *least;
  return target.memory.value > 0 ? std::optional(target) : std::nullopt;
}

std::vector<Target> catalogue_targets() {
  constexpr std::int64_t kOneServer = 8;
  std::vector<Target> targets;
  for (const facts::GpuFacts& gpu : facts::all_gpus()) {
    if (!gpu.memory() || (gpu.vendor != "NVIDIA" && gpu.vendor != "AMD")) continue;
    targets.push_back(target_of_gpu(gpu));
    targets.back().count = kOneServer;
  }
  return targets;
}

Result<Target> target_here(const Machine& machine) {
  if (!machine.memory_total || !machine.memory_available)
    return fail(ErrorCode::kUnsupported, "this system does not tell how much memory it has (/proc/meminfo)",
                "--here", "give a size with --gpu 24GB");
  Target target;
  target.is_here = true;
  target.name = machine.cpu_model.empty() ? "CPU" : machine.cpu_model;
  target.memory = *machine.memory_total;
  target.available = machine.memory_available;
  return target;
}

}  // namespace plimsoll::plan
