// SPDX-License-Identifier: Apache-2.0
#include "artifact/tensor_merge.h"

#include <fmt/format.h>

#include <utility>

namespace plimsoll::artifact {

TensorMerge::TensorMerge(ArtifactParts& parts, std::size_t count) : parts_(parts) {
  parts_.tensors.reserve(count);
  parts_.names.reset(count);
}

std::optional<std::uint32_t> TensorMerge::add(Tensor&& tensor, std::uint64_t hash) {
  const auto place = static_cast<std::uint32_t>(parts_.tensors.size());
  const auto earlier = parts_.names.insert(
      hash, place, [&](std::uint32_t other) { return parts_.tensors[other].name == tensor.name; });
  if (earlier) return earlier;
  std::int64_t bytes = 0, elements = 0;
  if (__builtin_add_overflow(bytes_, tensor.bytes, &bytes) ||
      __builtin_add_overflow(elements_, tensor.elements(), &elements)) {
    if (!std::exchange(has_overflow_, true))
      parts_.findings.push_back(
          {"ST_SHAPE_OVERFLOW", FindingLevel::kError, FindingKind::kMalformed,
           fmt::format("{}: {}", parts_.files[static_cast<std::size_t>(tensor.file)].path, tensor.name),
           "the sizes of all tensors together do not fit 63 bits; this one is counted as empty",
           "download or convert the file again"});
    tensor.bytes = 0;
    tensor.shape = Shape{0};
  } else {
    bytes_ = bytes;
    elements_ = elements;
  }
  parts_.tensors.push_back(std::move(tensor));
  return std::nullopt;
}

}  // namespace plimsoll::artifact
