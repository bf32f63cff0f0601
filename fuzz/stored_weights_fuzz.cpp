// SPDX-License-Identifier: Apache-2.0
// Quantization configs and the tensors beside them, out of any JSON: no crash, every kind of tensor is read
// or told, no count below 0, and no pattern that hangs.
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/json.h"
#include "fuzz/made_artifact.h"
#include "memory/memory.h"
#include "model/model.h"
#include "model/quantization.h"
#include "model/stored_weights.h"

namespace {

using namespace plimsoll;

void ask_by_name(const model::Quantization& quantization, const artifact::Artifact& made) {
  for (const auto& tensor : made.tensors()) {
    const auto module = model::split_name(tensor.name).module;
    const auto* scheme = quantization.scheme_of(module);
    if (scheme && quantization.leaves(module)) std::abort();
    if (scheme && tensor.shape.size() >= 2)
      if (const auto stored = memory::stored_tensors({tensor.shape.begin(), tensor.shape.end()}, *scheme))
        for (const auto& part : *stored)
          if (part.elements < 0) std::abort();
  }
  (void)quantization.unread_patterns();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto json = parse_json({reinterpret_cast<const char*>(data), size}, "input");
  if (!json) return 0;
  const fuzz::MadeArtifact made(artifact::Form::kSafetensors, *json);
  const auto quantization = model::read_quantization(made.config(), made.json_file("hf_quant_config.json"));
  if (quantization) ask_by_name(*quantization, made);
  const auto stored = model::read_stored_weights(made, quantization ? &*quantization : nullptr);
  if (stored.kinds.size() != stored.tensors.kinds.size()) std::abort();
  for (const auto& kind : stored.kinds) {
    if (kind.elements.value_or(0) < 0 || kind.weight.elements.value_or(0) < 0) std::abort();
    if (kind.is_companion && kind.elements != 0) std::abort();
  }
  if (const auto spec = model::read_spec(made)) {
    const auto checkpoint = memory::stored_checkpoint(*spec, quantization);
    if (checkpoint && (checkpoint->bytes.value < 0 || checkpoint->elements < 0)) std::abort();
  }
  return 0;
}
