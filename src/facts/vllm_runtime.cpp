// SPDX-License-Identifier: Apache-2.0
#include "facts/vllm_runtime.h"

#include <algorithm>
#include <vector>

#include "facts/engines.h"

namespace plimsoll::facts {
namespace {

// Written by tools/fit_runtime: do not edit.
// Columns: release; copies of logits; vectors per token, wide and inner; MiB outside of torch with one GPU
// and with several; MiB of graphs, of a drafter; half bands; source.
constexpr VllmRuntime kRuntimes[] = {
    {0, 20, 3.90, 3.00, 3.0, 40, 208, 0, 1088, 960, 1920, "17 starts of 1 sources"},
    {0, 17, 3.90, 3.00, 3.0, 40, 208, 256, 1088, 960, 1920, "8 starts of 2 sources"},
    {0, 8, 9.80, 3.00, 3.0, 40, 208, 256, 1088, 960, 1920, "15 starts of 4 sources"},
    {0, 7, 9.80, 3.00, 3.0, 56, 512, 256, 1088, 960, 1920, "6 starts of 6 sources"},
    {0, 6, 9.80, 3.00, 3.0, 368, 512, 256, 1088, 960, 1920, "4 starts of 3 sources"},
};

}  // namespace

std::span<const VllmRuntime> vllm_runtimes() {
  return kRuntimes;
}

const VllmRuntime& vllm_runtime(std::string_view version) {
  const std::vector<int> asked = release_numbers(version);
  if (asked.empty()) return kRuntimes[0];
  const auto at = std::find_if(std::begin(kRuntimes), std::end(kRuntimes), [&](const VllmRuntime& row) {
    return std::vector{row.major, row.minor} <= asked;
  });
  return at == std::end(kRuntimes) ? *(std::end(kRuntimes) - 1) : *at;
}

}  // namespace plimsoll::facts
