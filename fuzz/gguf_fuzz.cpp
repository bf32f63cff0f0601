// SPDX-License-Identifier: Apache-2.0
// The GGUF header reader over any bytes: no crash, and no tensor whose bytes overflow.
#include <cstddef>
#include <cstdint>
#include <span>

#include "artifact/gguf.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  plimsoll::Findings findings;
  const auto header =
      plimsoll::artifact::read_gguf({std::as_bytes(std::span(data, size)), "input", {}, nullptr}, findings);
  for (const auto& tensor : header.tensors)
    if (tensor.bytes < 0 || tensor.offset_bytes < 0 || tensor.offset_bytes > INT64_MAX - tensor.bytes)
      __builtin_trap();
  return 0;
}
