// SPDX-License-Identifier: Apache-2.0
// Which attention kernels has vLLM for a GPU and a model, and in which of them may keys and values be 8-bit
// floats? Constants; any thread may call. Source: vLLM 0.32.0, vllm/v1/attention/backends, 2026-11-30.
#pragma once

#include <string_view>

namespace plimsoll::facts {

enum class AttentionKind { kHeads, kLatent, kSparseLatent };

struct AttentionKernel {
  std::string_view name;
  AttentionKind kind = AttentionKind::kHeads;
  int least = 0, most = 0;       // compute capability: 80 = 8.0
  int least_for_fp8 = 0;         // from here on keys and values may be 8-bit floats
  bool has_fixed_heads = false;  // heads of 64, 128, 256 and 512 elements alone
  bool takes_sinks = false;
};

/// What a model asks of a kernel.
struct AttentionNeed {
  AttentionKind kind = AttentionKind::kHeads;
  int head_dim = 0;  // the widest
  bool has_sinks = false;
  bool is_fp8 = false;
};

/// The first kernel that does it on a GPU of that compute capability; null when there is none.
const AttentionKernel* find_attention_kernel(const AttentionNeed& need, int capability);

/// The lowest capability on which some kernel does it; 0 when none does.
int least_capability(const AttentionNeed& need);

}  // namespace plimsoll::facts
