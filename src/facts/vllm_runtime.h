// SPDX-License-Identifier: Apache-2.0
// What did vLLM take of a GPU beside weights and cache, in recorded start-ups?
// Constants of the formula in memory/vllm_runtime.h, one row for the releases from one on; fitted by
// tools/fit_runtime and kept here as data. Any thread may call.
#pragma once

#include <span>
#include <string_view>

namespace plimsoll::facts {

struct VllmRuntime {
  int major = 0, minor = 0;        // the first release that it holds for
  double sampler_copies = 0;       // 32-bit copies of the logits of all sequences while one is drawn
  double hidden_vectors = 0;       // vectors as wide as the model that each token of a batch takes
  double inner_vectors = 0;        // vectors as wide as a rank's feed-forward, likewise
  std::int64_t one_gpu_mib = 0;    // outside of torch: context, libraries' workspaces
  std::int64_t many_gpus_mib = 0;  // the same with what GPUs exchange
  std::int64_t graphs_mib = 0;     // what graphs are estimated at, where the budget holds them
  std::int64_t drafts_mib = 0;     // of a drafter
  std::int64_t band_mib = 0;       // half of the band that holds nine of ten rows, dense on one GPU
  std::int64_t wide_band_mib = 0;  // with several GPUs, experts or drafts
  std::string_view source;         // releases, GPUs and number of rows that it rests on
};

/// Newest first.
std::span<const VllmRuntime> vllm_runtimes();

/// The row for a version: the newest that is no newer, the oldest where none is; the newest for an unreadable
/// one.
const VllmRuntime& vllm_runtime(std::string_view version);

}  // namespace plimsoll::facts
