// SPDX-License-Identifier: Apache-2.0
#include "base/nvidia_smi.h"

#include <array>
#include <cstdio>
#include <memory>

namespace plimsoll {

std::string nvidia_smi_output() {
  // A driver that hangs must not hang us.
  constexpr const char* kCommand =
      "timeout 10 nvidia-smi --query-gpu=name,memory.total,driver_version,compute_cap --format=csv,noheader "
      "2>/dev/null";
  constexpr std::size_t kMost = std::size_t{64} << 10;
  std::string text;
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(kCommand, "r"), ::pclose);
  if (!pipe) return text;
  std::array<char, 4096> buffer;
  while (text.size() < kMost) {
    const std::size_t size = std::fread(buffer.data(), 1, buffer.size(), pipe.get());
    if (size == 0) break;
    text.append(buffer.data(), size);
  }
  return text;
}

}  // namespace plimsoll
