// SPDX-License-Identifier: Apache-2.0
// What does the header of one safetensors file say, and does it keep the format's rules?
// Reads the length field and the JSON header of a mapped file, never tensor data. Pure; the result owns its
// strings. Format and ids of findings: docs/formats/safetensors.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "base/finding.h"

namespace plimsoll::artifact {

struct SafetensorsHeader {
  bool is_readable = false;     // the header is JSON; tensors that break a rule alone are left out
  std::vector<Tensor> tensors;  // by offset; `file` is left 0
  std::vector<std::pair<std::string, std::string>> metadata;
};

/// Reads the header of the file whose bytes are given. Everything wrong is appended to `findings`, with
/// `path` as the place. Tensors whose range leaves the file are listed all the same (the header still counts
/// them); reading their data fails.
SafetensorsHeader read_safetensors(std::span<const std::byte> file, std::string_view path,
                                   Findings& findings);

}  // namespace plimsoll::artifact
