// SPDX-License-Identifier: Apache-2.0
// Which weights of the model do the stored tensors make up? Every kind of tensor is a weight (plain, or the
// carrier of a quantized one), a companion of one, or does not fit, which is told by name. Reads headers, and
// values only where a weight's shape is stored as values. Linear in the number of tensors. Pure, any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "artifact/artifact.h"
#include "model/model.h"
#include "model/quantization.h"
#include "model/stored_layout.h"
#include "model/tensor_kinds.h"

namespace plimsoll::model {

/// What one kind of tensors is.
struct StoredKind {
  std::string module;  // pattern: model.layers.*.mlp.up_proj; with `.weight` and other endings taken off
  Part part = Part::kWeight;
  bool has_ending = false;               // `.weight` and such; false: a parameter under its own name
  bool is_companion = false;             // scales, zero points and such: no weight of the model
  bool is_quantized = false;             // a carrier of codes
  DecodedWeight weight;                  // of a quantized carrier
  std::optional<std::int64_t> elements;  // weights that all tensors of this kind hold; 0 for companions
};

struct StoredFault {
  std::string tensor;  // the first that does not fit
  std::string message;
};

struct StoredWeights {
  TensorKinds tensors;
  std::vector<StoredKind> kinds;  // [tensors.kinds]
  std::vector<StoredFault> faults;
  bool has_unasked = false;  // more modules than Quantization::kMaxTries allows: the main scheme guided some

  bool has_quantized() const;
};

/// `declared` guides where shapes leave a choice; null for a model that declares no quantization.
/// GGUF's block types need no companions: their dtype says all.
StoredWeights read_stored_weights(const artifact::Artifact& artifact, const Quantization* declared);

/// One of the copies that a weight stands for, under its own name ("{}" is its number).
Weight copy_of(const Weight& weight, int number);

/// Of experts: whether one tensor [copies, ...] holds them all, as in GGUF, and where the name has no place
/// for a number.
bool is_stacked(const artifact::Artifact& artifact, const Weight& weight);

/// The tensors that make up one weight and its copies: the one that find_tensor names, or, where a folder has
/// it quantized, its codes and all companions of its module. Empty when there is none; any thread.
std::vector<const artifact::Tensor*> tensors_of(const artifact::Artifact& artifact, const Weight& weight);

}  // namespace plimsoll::model
