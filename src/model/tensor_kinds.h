// SPDX-License-Identifier: Apache-2.0
// Which kinds of tensors does an artifact hold? Tensors whose names differ in layer and expert numbers only,
// and that agree in dtype and shape, are one kind: 92,000 tensors of a large model are some dozens of kinds,
// so that everything that is asked about names and shapes is asked once per kind. Leaves the meaning of names
// to others. A TensorKinds owns its data; pure, any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "artifact/artifact.h"
#include "base/dtype.h"

namespace plimsoll::model {

/// Neighbours in file order that share the first number of their names.
struct NumberRun {
  std::int64_t number = -1;  // of the layer, as a rule; -1: no number in the name
  std::int64_t count = 0;
};

struct TensorKind {
  std::string
      pattern;  // the name, each segment that is a whole number as '*': model.layers.*.mlp.up_proj.weight
  DType dtype = DType::kF32;
  std::vector<std::int64_t> shape;
  std::int64_t elements = 0;  // of one such tensor
  std::int64_t count = 0;
  std::int64_t bytes = 0;       // of all, as stored
  std::size_t first = 0;        // index of the first such tensor
  std::vector<NumberRun> runs;  // sums to count

  /// elements x count, at most 2^63-1.
  std::int64_t total_elements() const;
};

struct TensorKinds {
  std::vector<TensorKind> kinds;       // in the order of their first tensor
  std::vector<std::uint32_t> kind_of;  // [tensors]: index into kinds
};

TensorKinds tensor_kinds(const artifact::Artifact& artifact);

/// The name with each segment that is a whole number as '*'.
std::string name_pattern(std::string_view name);
/// True when the names have one pattern.
bool have_one_pattern(std::string_view a, std::string_view b);

/// Sum that stays at 2^63-1 where it does not fit: figures of damaged files are shown, never wrapped.
std::int64_t capped_sum(std::int64_t a, std::int64_t b);
std::int64_t capped_product(std::int64_t a, std::int64_t b);

}  // namespace plimsoll::model
