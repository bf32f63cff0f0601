// SPDX-License-Identifier: Apache-2.0
// What do the key/value pairs and the tensor list of one GGUF file say, and do they keep the format's rules?
// Reads versions 1 to 3 in either byte order; never tensor data. Every count is held against the file's size
// before anything is allocated. Pure; names of tensors are views into the bytes that were given.
// Format and ids of findings: docs/formats/gguf.md.
#pragma once

#include <cstdint>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/safetensors.h"
#include "base/finding.h"
#include "base/json.h"

namespace plimsoll::artifact {

struct GgufHeader {
  bool is_readable = false;  // everything up to the tensor data was understood
  std::uint32_t version = 0;
  bool is_big_endian = false;
  Json metadata;                      // object of all keys, arrays included
  std::vector<Tensor> tensors;        // in the file's order; `file` is left 0
  std::vector<std::uint64_t> hashes;  // hash_of the name, per tensor
};

/// Reads the header of a file. Everything wrong is appended to `findings`; what was read up to a fault that
/// ends reading is kept.
GgufHeader read_gguf(const HeaderSource& source, Findings& findings);

}  // namespace plimsoll::artifact
