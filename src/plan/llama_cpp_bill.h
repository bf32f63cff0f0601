// SPDX-License-Identifier: Apache-2.0
// Inside the plan room: what llama.cpp allocates on each device for one context length. Pure.
#pragma once

#include <vector>

#include "memory/memory.h"
#include "plan/rows.h"

namespace plimsoll::plan {

/// Of one device.
struct LlamaCppDeviceBill {
  Bytes model, repacked, cache, states, output, compute;
  Bytes total() const { return model + repacked + cache + states + output + compute; }
};

struct LlamaCppBill {
  memory::LlamaCppCache cache;
  memory::LlamaCppCompute compute;
  std::vector<LlamaCppDeviceBill> gpus;  // [GPUs]
  LlamaCppDeviceBill host;

  /// The fullest GPU, or the host where there is none.
  const LlamaCppDeviceBill& fullest() const;
  bool fits_in(Bytes budget) const;
};

/// The same question at any length.
class LlamaCppQuestion {
 public:
  /// Errors: kUsage for flags that make no sense to the engine.
  static Result<LlamaCppQuestion> read(const Question& question);

  Result<LlamaCppBill> bill(std::int64_t context_tokens) const;
  const memory::LlamaCppContext& context() const { return context_; }
  const memory::LlamaCppPlacement& placement() const { return placement_; }
  const memory::LlamaCppModelWeights& model() const { return model_; }
  const memory::LlamaCppWeightBuffers& weights() const { return weights_; }
  bool ignores_windows() const { return ignores_windows_; }

 private:
  explicit LlamaCppQuestion(const Question& question) : question_(question) {}
  Status read_cache_types();
  Status read_placement();
  Status read_weights();

  const Question& question_;
  memory::LlamaCppContext context_;
  memory::LlamaCppPlacement placement_;
  memory::LlamaCppModelWeights model_;
  memory::LlamaCppWeightBuffers weights_;
  std::vector<int> devices_;  // [layers + 1]
  bool ignores_windows_ = false;
};

/// The engine's names of buffers, device by device.
std::vector<Buffer> llama_cpp_buffers(const LlamaCppQuestion& question, const LlamaCppBill& bill);

}  // namespace plimsoll::plan
