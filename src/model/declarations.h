// SPDX-License-Identifier: Apache-2.0
// Which files of a folder declare how its weights are quantized, and which of them counts? Several objects of
// config.json may, and files that quantizers write beside it. What an object says: quantization.h.
// Values without other ownership; pure, any thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "model/quantization.h"

namespace plimsoll::model {

struct Declaration {
  std::string file;     // beside the config; empty: the config itself
  std::string pointer;  // within the file; empty: the whole of it
  Quantization said;
};

/// All of them, the one that engines take first. Nothing for GGUF.
std::vector<Declaration> declarations_of(const artifact::Artifact& artifact);

/// The one that counts: what config.json and hf_quant_config.json say, or else quantize_config.json
/// (AutoGPTQ) or quant_config.json (AutoAWQ), which is then named in `file`. Nothing for GGUF and for plain
/// models.
std::optional<Quantization> declared_quantization(const artifact::Artifact& artifact);

}  // namespace plimsoll::model
