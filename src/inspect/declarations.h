// SPDX-License-Identifier: Apache-2.0
// Who declares how the weights are quantized, and do all say the same? A folder may declare it in several
// objects of config.json and in the files that quantizers write beside it. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "inspect/subject.h"
#include "model/quantization.h"

namespace plimsoll::inspect {

struct Declaration {
  std::string place;  // "config.json: /quantization_config", "quantize_config.json"
  model::Quantization said;
};

/// All of them, the one that engines take first. Nothing for GGUF.
std::vector<Declaration> declarations_of(const Subject& subject);

/// What is declared where config.json and hf_quant_config.json say nothing: by quantize_config.json
/// (AutoGPTQ) or quant_config.json (AutoAWQ).
std::optional<Declaration> declared_beside(const Subject& subject);

/// QUANT_DECLARATIONS_DIFFER for each that disagrees with the first; QUANT_UNDECLARED where only a file
/// beside config.json tells.
void check_declarations(const Subject& subject, Findings& findings);

}  // namespace plimsoll::inspect
