// SPDX-License-Identifier: Apache-2.0
#include "base/nvidia_smi.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <memory>

namespace plimsoll {

namespace {

std::string output_of(const char* command) {
  constexpr std::size_t kMost = std::size_t{64} << 10;
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command, "r"), ::pclose);
  if (!pipe) return text;
  std::array<char, 4096> buffer;
  while (text.size() < kMost) {
    const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
    if (size == 0) break;
    text.append(buffer.data(), size);
  }
  return text;
}

}  // namespace

// A driver that hangs must not hang us.
std::string nvidia_smi_output() {
  return output_of(
      "timeout 10 nvidia-smi --query-gpu=name,memory.total,driver_version,compute_cap --format=csv,noheader "
      "2>/dev/null");
}

std::optional<Bytes> nvidia_smi_memory_used() {
  return parse_memory_used(
      output_of("timeout 10 nvidia-smi --query-gpu=memory.used --format=csv,noheader,nounits 2>/dev/null"));
}

std::optional<Bytes> parse_memory_used(std::string_view lines) {
  constexpr std::int64_t kMostMebibytes = std::int64_t{1} << 30;
  std::optional<Bytes> sum;
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    std::int64_t mebibytes = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), mebibytes);
    if (error != std::errc() || stop != line.data() + line.size() || mebibytes < 0 ||
        mebibytes > kMostMebibytes)
      return std::nullopt;
    sum = sum.value_or(Bytes(0)) + Bytes(mebibytes << 20);
  }
  return sum;
}

}  // namespace plimsoll
