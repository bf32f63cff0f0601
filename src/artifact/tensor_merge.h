// SPDX-License-Identifier: Apache-2.0
// One list of tensors out of the lists of several files: each name once, and sizes that can be added up.
// Fills ArtifactParts; single thread.
#pragma once

#include <cstdint>
#include <optional>

#include "artifact/store.h"

namespace plimsoll::artifact {

class TensorMerge {
 public:
  /// `count`: of all tensors that are to come.
  TensorMerge(ArtifactParts& parts, std::size_t count);

  /// Appends a tensor, or returns the place of an earlier one of its name. One whose size cannot be added to
  /// the others' is told, and counts as empty. Only a tensor that was appended is moved from. `hash`: hash_of
  /// its name.
  std::optional<std::uint32_t> add(Tensor&& tensor, std::uint64_t hash);

 private:
  ArtifactParts& parts_;
  std::int64_t bytes_ = 0, elements_ = 0;
  bool has_overflow_ = false;
};

}  // namespace plimsoll::artifact
