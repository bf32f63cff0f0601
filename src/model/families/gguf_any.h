// SPDX-License-Identifier: Apache-2.0
// What do the keys of a GGUF file say about a model whose family no row reads? Layers, heads, windows, states
// and experts, one value per layer where the file has one; no list of weights: sizes come from the tensors.
// Pure.
#pragma once

#include "artifact/artifact.h"
#include "model/key_reader.h"
#include "model/model.h"

namespace plimsoll::model {

/// True for the names that llama.cpp's converters write into general.architecture.
bool is_gguf_architecture(std::string_view name);

/// Reads the keys that llama.cpp's converters write for all architectures.
/// Errors (kept in `keys`): kMalformed for figures that cannot be, or when there are no layers.
/// Source: docs/formats/gguf.md, "Keys of the model"; llama.cpp's constants of the same names.
ModelSpec read_any_gguf(KeyReader& keys, const artifact::Artifact& artifact, std::string_view architecture);

}  // namespace plimsoll::model
