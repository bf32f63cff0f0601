// SPDX-License-Identifier: Apache-2.0
// Which GPUs are there, how much memory and speed has each, and which one does a name mean?
// Rows are constants in gpus_table.cpp, each with its source; what is not known is absent, never 0.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace plimsoll::facts {

struct GpuFacts {
  std::string_view name;                     // H100-SXM5-80GB
  std::string_view vendor;                   // NVIDIA AMD Intel Apple
  std::optional<std::int64_t> memory_mib;    // as the driver reports it; absent for unified memory
  std::optional<double> bandwidth_gb_per_s;  // 10^9 bytes per second
  std::optional<double> bf16_dense_tflops;
  std::optional<double> fp8_dense_tflops;
  std::optional<double> int8_dense_tops;
  std::optional<double> fp4_dense_tflops;
  std::optional<double> link_gb_per_s;  // all links of one GPU together, both directions
  std::string_view link;                // NVLink4, PCIe5, ...
  std::string_view compute_capability;  // 9.0, gfx942
  bool has_fp8 = false;
  bool has_fp4 = false;
  std::string_view source;

  std::optional<Bytes> memory() const {
    return memory_mib ? std::optional(Bytes(*memory_mib * kMiB)) : std::nullopt;
  }
};

std::span<const GpuFacts> all_gpus();

/// The row a name means. Case, spaces, punctuation, vendor and marketing words do not count, so that "H100",
/// "h100-80gb" and "NVIDIA H100 80GB HBM3" are one row; a stated size must agree with the row's memory. Where
/// several forms of equal size remain, the SXM one is meant.
/// Errors: kUsage for an unknown name, and for one that leaves the size open ("A100"), listing the choices.
Result<const GpuFacts*> find_gpu(std::string_view name);

}  // namespace plimsoll::facts
