// SPDX-License-Identifier: Apache-2.0
// Which weights does the embedded engine turn into blocks of few bits when it loads a model
// (`--quantization`), and what do the weights then take? The engine allocates by it, plan prints it. Pure.
// Source: docs/formulas/load_quantization.md.
#pragma once

#include "artifact/artifact.h"
#include "base/dtype.h"
#include "base/result.h"
#include "base/units.h"
#include "memory/weights.h"
#include "model/model.h"

namespace plimsoll::memory {

/// The block type of a format: q8_0 for int8, q4_1 for int4. Errors: kUsage for other formats.
Result<DType> block_at_load(WeightFormat format);

/// Whether a weight is turned into blocks: a matrix of a linear layer whose input fills whole blocks.
/// Embeddings, output head, routers, the gate of a shared expert, norms and biases stay as stored.
bool becomes_blocks(const model::Weight& weight);

/// Bytes of all weights that the engine computes with once they are loaded so: blocks, and the rest as
/// stored. `artifact`: null for a lone config, whose dtype then stands for all.
/// Errors: kUsage for other formats; kUnsupported for a model that is stored quantized, and for a lone config
/// whose weights are not known one by one; kMalformed when the bytes do not fit 63 bits.
Result<Bytes> loaded_weights_bytes(const artifact::Artifact* artifact, const model::ModelSpec& spec,
                                   WeightFormat format);

}  // namespace plimsoll::memory
