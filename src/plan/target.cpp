// SPDX-License-Identifier: Apache-2.0
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

}  // namespace

Result<Target> parse_target(const std::string& text) {
  Target target;
  const std::size_t colon = text.rfind(':');
  const std::string name = text.substr(0, colon);
  target.asked = name;
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
  target.name = std::string(gpu->name);
  target.memory = *gpu->memory();
  return target;
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
