// SPDX-License-Identifier: Apache-2.0
// The checks that read every tensor.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "artifact/artifact.h"
#include "base/hash.h"

namespace plimsoll::artifact {
namespace {

// What is looked at before its pages are given back.
constexpr std::int64_t kStepBytes = 16 * kMiB;

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

// All bits set is E8M0's "not a number"; the FNUZ kinds use the pattern of -0 for it.
NonFinite count_bytes(std::span<const std::byte> data, std::byte nan) {
  return {std::count(data.begin(), data.end(), nan), 0};
}

// Block types keep their values in integers and 16-bit scales, which stand at these places of a block.
struct Scales {
  DType dtype;
  std::array<int, 2> at;  // -1: there is no second
};
constexpr std::array<Scales, 20> kScales{{
    {DType::kQ4_0, {0, -1}},   {DType::kQ4_1, {0, 2}},   {DType::kQ5_0, {0, -1}},   {DType::kQ5_1, {0, 2}},
    {DType::kQ8_0, {0, -1}},   {DType::kQ2K, {80, 82}},  {DType::kQ3K, {108, -1}},  {DType::kQ4K, {0, 2}},
    {DType::kQ5K, {0, 2}},     {DType::kQ6K, {208, -1}}, {DType::kIQ2XXS, {0, -1}}, {DType::kIQ2XS, {0, -1}},
    {DType::kIQ3XXS, {0, -1}}, {DType::kIQ1S, {0, -1}},  {DType::kIQ4NL, {0, -1}},  {DType::kIQ3S, {0, -1}},
    {DType::kIQ2S, {0, -1}},   {DType::kIQ4XS, {0, -1}}, {DType::kTQ1_0, {52, -1}}, {DType::kTQ2_0, {64, -1}},
}};

// A block begins with its scale, a power of two whose exponent byte 255 is "not a number" (OCP MX 1.0).
NonFinite count_mxfp4(std::span<const std::byte> data) {
  NonFinite found;
  const auto block = static_cast<std::size_t>(info(DType::kMXFP4).block_bytes);
  for (std::size_t begin = 0; begin + block <= data.size(); begin += block)
    found.nan += data[begin] == std::byte{0xFF};
  return found;
}

// The 16-bit scale of a block is spread over the upper four bits of the four words that end it, lowest first.
NonFinite count_iq1_m(std::span<const std::byte> data) {
  NonFinite found;
  const auto block = static_cast<std::size_t>(info(DType::kIQ1M).block_bytes);
  for (std::size_t end = block; end <= data.size(); end += block) {
    std::array<std::byte, 2> scale{};
    for (std::size_t word = 0; word < 4; ++word)
      scale[word / 2] |= (data[end - 7 + 2 * word] & std::byte{0xF0}) >> (word % 2 == 0 ? 4 : 0);
    const NonFinite one = count<std::uint16_t>(scale, 0x7C00, 0x03FF);
    found.nan += one.nan;
    found.infinite += one.infinite;
  }
  return found;
}

NonFinite count_scales(DType dtype, std::span<const std::byte> data) {
  NonFinite sum;
  const auto row =
      std::find_if(kScales.begin(), kScales.end(), [&](const Scales& s) { return s.dtype == dtype; });
  if (row == kScales.end()) return sum;
  const auto block = static_cast<std::size_t>(info(dtype).block_bytes);
  for (std::size_t begin = 0; begin + block <= data.size(); begin += block)
    for (const int at : row->at) {
      if (at < 0) continue;
      const NonFinite found =
          count<std::uint16_t>(data.subspan(begin + static_cast<std::size_t>(at), 2), 0x7C00, 0x03FF);
      sum.nan += found.nan;
      sum.infinite += found.infinite;
    }
  return sum;
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
    case DType::kC64:  // two of these
      return count<std::uint32_t>(data, 0x7F800000, 0x007FFFFF);
    case DType::kF8E8M0:
      return count_bytes(data, std::byte{0xFF});
    case DType::kF8E4M3FNUZ:
    case DType::kF8E5M2FNUZ:
      return count_bytes(data, std::byte{0x80});
    case DType::kMXFP4:
      return count_mxfp4(data);
    case DType::kIQ1M:
      return count_iq1_m(data);
    default:
      return count_scales(dtype, data);  // integers have none
  }
}

// In steps, each given back, so that a model larger than the memory can be read.
NonFinite count_in_steps(const Artifact& artifact, DType dtype, std::span<const std::byte> data) {
  NonFinite sum;
  const auto whole_blocks =
      static_cast<std::size_t>(kStepBytes / info(dtype).block_bytes * info(dtype).block_bytes);
  while (!data.empty()) {
    const auto step = data.first(std::min(data.size(), whole_blocks));
    const NonFinite found = count_non_finite(dtype, step);
    sum.nan += found.nan;
    sum.infinite += found.infinite;
    artifact.release(step);
    data = data.subspan(step.size());
  }
  return sum;
}

void check_digests(const Artifact& artifact, Findings& findings) {
  // What a lock record has told already is not told again.
  std::unordered_set<std::string_view> told;
  for (const Finding& finding : artifact.findings())
    if (finding.id == "LOCK_MISMATCH") told.insert(finding.where);
  for (const File& file : artifact.files()) {
    const std::string path = artifact.path_of(file);
    if (file.sha256.empty() || path.empty() || told.contains(file.path)) continue;
    const auto found = digest_of_file(path, DigestKind::kSha256);
    if (!found || *found == file.sha256) continue;  // that it cannot be read was told by open()
    findings.push_back({"SHA256_MISMATCH", FindingLevel::kError, FindingKind::kMalformed, file.path,
                        fmt::format("the content's sha256 is {}, {} is expected", *found, file.sha256),
                        "download the file again"});
  }
}

}  // namespace

Findings deep_findings(const Artifact& artifact) {
  Findings findings;
  if (!artifact.has_tensor_bytes())
    return {{"TENSORS_NOT_HERE", FindingLevel::kWarning, FindingKind::kCheckFailed, artifact.root(),
             "only headers were read from the hub: the values of tensors were not checked",
             "`plimsoll pull` the model first"}};
  // Values of the other byte order are numbers that nobody stored.
  const auto& known = artifact.findings();
  const bool is_foreign_order = std::any_of(
      known.begin(), known.end(), [](const Finding& finding) { return finding.id == "GGUF_BIG_ENDIAN"; });
  for (const Tensor& tensor : artifact.tensors()) {
    if (is_foreign_order) break;
    const auto data = artifact.data(tensor);
    if (!data) continue;
    const NonFinite found = count_in_steps(artifact, tensor.dtype, *data);
    if (found.nan == 0 && found.infinite == 0) continue;
    findings.push_back(
        {artifact.form() == Form::kGguf ? "GGUF_NONFINITE" : "ST_NONFINITE", FindingLevel::kError,
         FindingKind::kCheckFailed,
         fmt::format("{}: {}", artifact.files()[static_cast<std::size_t>(tensor.file)].path, tensor.name),
         fmt::format("{} NaN and {} Inf among {} values", found.nan, found.infinite, tensor.elements()),
         "the weights are damaged: download or convert them again"});
  }
  check_digests(artifact, findings);
  return findings;
}

}  // namespace plimsoll::artifact
