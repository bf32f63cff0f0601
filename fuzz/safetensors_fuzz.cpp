// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file: the header is read without a crash, and where nothing was found wrong
// every tensor lies inside the file.
#include <cstdint>
#include <cstdlib>
#include <span>

#include "artifact/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::Findings findings;
  const auto header = plimsoll::artifact::read_safetensors(std::as_bytes(std::span(data, size)),
                                                           "fuzz.safetensors", findings);
  const bool is_sound = plimsoll::worst_level(findings) != plimsoll::FindingLevel::kError;
  for (const auto& tensor : header.tensors) {
    if (tensor.bytes < 0 || tensor.offset_bytes < 0) std::abort();
    if (is_sound && static_cast<std::uint64_t>(tensor.offset_bytes + tensor.bytes) > size) std::abort();
  }
  return 0;
}
