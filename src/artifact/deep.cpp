// SPDX-License-Identifier: Apache-2.0
// The checks that read every tensor.
#include <fmt/format.h>

#include <cstring>
#include <utility>

#include "artifact/artifact.h"

namespace plimsoll::artifact {
namespace {

struct NonFinite {
  std::int64_t nan = 0, infinite = 0;
};

// Counts by the bits: all exponent bits set means infinite with an empty mantissa, else not a number.
template <class Bits>
NonFinite count(std::span<const std::byte> data, Bits exponent, Bits mantissa) {
  NonFinite found;
  for (std::size_t at = 0; at + sizeof(Bits) <= data.size(); at += sizeof(Bits)) {
    Bits bits;
    std::memcpy(&bits, data.data() + at, sizeof(Bits));
    const bool is_special = (bits & exponent) == exponent;
    const bool has_mantissa = (bits & mantissa) != 0;
    found.nan += is_special && has_mantissa;
    found.infinite += is_special && !has_mantissa;
  }
  return found;
}

// E4M3 (the "fn" kind) has no infinity and one not-a-number per sign.
NonFinite count_e4m3(std::span<const std::byte> data) {
  NonFinite found;
  for (const std::byte byte : data) found.nan += (byte & std::byte{0x7F}) == std::byte{0x7F};
  return found;
}

NonFinite count_non_finite(DType dtype, std::span<const std::byte> data) {
  switch (dtype) {
    case DType::kBF16:
      return count<std::uint16_t>(data, 0x7F80, 0x007F);
    case DType::kF16:
      return count<std::uint16_t>(data, 0x7C00, 0x03FF);
    case DType::kF32:
      return count<std::uint32_t>(data, 0x7F800000, 0x007FFFFF);
    case DType::kF64:
      return count<std::uint64_t>(data, 0x7FF0000000000000, 0x000FFFFFFFFFFFFF);
    case DType::kF8E5M2:
      return count<std::uint8_t>(data, 0x7C, 0x03);
    case DType::kF8E4M3:
      return count_e4m3(data);
    default:
      return {};  // integers have none; block types keep their values in integers
  }
}

}  // namespace

Findings deep_findings(const Artifact& artifact) {
  Findings findings;
  if (!artifact.has_tensor_bytes())
    return {{"TENSORS_NOT_HERE", FindingLevel::kWarning, FindingKind::kCheckFailed, artifact.root(),
             "only headers were read from the hub: the values of tensors were not checked",
             "`plimsoll pull` the model first"}};
  for (const Tensor& tensor : artifact.tensors()) {
    const auto data = artifact.data(tensor);
    if (!data) continue;
    const NonFinite found = count_non_finite(tensor.dtype, *data);
    if (found.nan == 0 && found.infinite == 0) continue;
    findings.push_back(
        {artifact.form() == Form::kGguf ? "GGUF_NONFINITE" : "ST_NONFINITE", FindingLevel::kError,
         FindingKind::kCheckFailed,
         fmt::format("{}: {}", artifact.files()[static_cast<std::size_t>(tensor.file)].path, tensor.name),
         fmt::format("{} NaN and {} Inf among {} values", found.nan, found.infinite, tensor.elements()),
         "the weights are damaged: download or convert them again"});
  }
  return findings;
}

}  // namespace plimsoll::artifact
