// SPDX-License-Identifier: Apache-2.0
// One list of tensors out of the lists of several files: each name once, and sizes that can be added up.
// Fills ArtifactParts; single thread.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "artifact/shard_headers.h"
#include "artifact/store.h"

namespace plimsoll::artifact {

/// Told of each tensor that is met again: the number of its shard, the tensor, the place of the earlier one.
using OnRepeated = std::function<void(std::size_t shard, const Tensor& tensor, std::uint32_t earlier)>;

/// Moves what `headers` hold of the shards `order` (numbers in headers.shards) into `parts`: mappings,
/// findings, tensors. Returns the place of each one's first tensor, as `order`. For one set of files: parts
/// has no tensors before.
std::vector<std::uint32_t> merge_headers(ShardHeaders headers, std::span<const std::size_t> order,
                                         ArtifactParts& parts, const OnRepeated& on_repeated);

class TensorMerge {
 public:
  /// `count`: of all tensors that are to come.
  TensorMerge(ArtifactParts& parts, std::size_t count);

  /// Appends a tensor, or returns the place of an earlier one of its name. One whose size cannot be added to
  /// the others' is told, and counts as empty. Only a tensor that was appended is moved from. `hash`: hash_of
  /// its name.
  std::optional<std::uint32_t> add(Tensor&& tensor, std::uint64_t hash);

  /// The same over parts.tensors as they stand: those that are met again are taken out of the list.
  /// `hashes`: of all of them; `starts`: the places where files begin, which are moved along.
  void take_out_repeated(std::span<const std::uint64_t> hashes, std::vector<std::uint32_t>& starts,
                         const std::function<void(std::size_t start, const Tensor&, std::uint32_t)>& tell);

 private:
  void count(Tensor& tensor);

  ArtifactParts& parts_;
  std::int64_t bytes_ = 0, elements_ = 0;
  bool has_overflow_ = false;
};

}  // namespace plimsoll::artifact
