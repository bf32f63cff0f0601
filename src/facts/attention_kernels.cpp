// SPDX-License-Identifier: Apache-2.0
#include "facts/attention_kernels.h"

#include <algorithm>
#include <array>

namespace plimsoll::facts {
namespace {

using enum AttentionKind;

// Kernels that others on the same GPU make superfluous for these questions are left out.
constexpr std::array<AttentionKernel, 5> kKernels{{
    {"FLASHINFER", kHeads, 80, 121, 80, true, false},
    {"TRITON_ATTN", kHeads, 70, 129, 89, false, true},
    {"TRITON_MLA", kLatent, 70, 129, 89, false, false},
    {"FLASHMLA_SPARSE", kSparseLatent, 90, 109, 90, false, false},
    {"FLASHINFER_MLA_SPARSE_SM120", kSparseLatent, 120, 129, 120, false, false},
}};

bool has_fixed_size(int head_dim) {
  constexpr std::array<int, 4> kSizes{64, 128, 256, 512};
  return std::find(kSizes.begin(), kSizes.end(), head_dim) != kSizes.end();
}

bool can_do(const AttentionKernel& kernel, const AttentionNeed& need) {
  return kernel.kind == need.kind && (!need.has_sinks || kernel.takes_sinks) &&
         (!kernel.has_fixed_heads || has_fixed_size(need.head_dim));
}

int least_for(const AttentionKernel& kernel, const AttentionNeed& need) {
  return need.is_fp8 ? std::max(kernel.least, kernel.least_for_fp8) : kernel.least;
}

}  // namespace

const AttentionKernel* find_attention_kernel(const AttentionNeed& need, int capability) {
  for (const AttentionKernel& kernel : kKernels)
    if (can_do(kernel, need) && capability >= least_for(kernel, need) && capability <= kernel.most)
      return &kernel;
  return nullptr;
}

int least_capability(const AttentionNeed& need) {
  int least = 0;
  for (const AttentionKernel& kernel : kKernels)
    if (can_do(kernel, need) && (least == 0 || least_for(kernel, need) < least))
      least = least_for(kernel, need);
  return least;
}

}  // namespace plimsoll::facts
