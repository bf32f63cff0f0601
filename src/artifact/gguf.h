// SPDX-License-Identifier: Apache-2.0
// What do the key/value pairs and the tensor list of one GGUF file say, and do they keep the format's rules?
// Reads versions 1 to 3 in either byte order from a mapped file; never tensor data. Every count is held
// against the file's size before anything is allocated. Pure; the result owns its strings.
// Format and ids of findings: docs/formats/gguf.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/finding.h"
#include "base/json.h"

namespace plimsoll::artifact {

struct GgufHeader {
  bool is_readable = false;  // everything up to the tensor data was understood
  std::uint32_t version = 0;
  bool is_big_endian = false;
  Json metadata;                // object of all keys, arrays included
  std::vector<Tensor> tensors;  // in the file's order; `file` is left 0
};

/// Reads the header of the file whose bytes are given. Everything wrong is appended to `findings`, with
/// `path` as the place; what was read up to a fault that ends reading is kept.
GgufHeader read_gguf(std::span<const std::byte> file, std::string_view path, Findings& findings);

}  // namespace plimsoll::artifact
