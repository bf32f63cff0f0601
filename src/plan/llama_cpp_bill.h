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
  std::vector<int> devices;  // of each layer and the output: [layers + 1]; -1: the CPU
  bool is_moved = false;     // --fit gave GPUs other layers than their memory would
};

/// A GPU and what of it may be used.
struct LlamaCppGpu {
  std::optional<std::string> name;
  Bytes free;    // at the start
  Bytes budget;  // less what --fit leaves free
};

/// The same question at any length.
class LlamaCppQuestion {
 public:
  /// Errors: kUsage for flags that make no sense to the engine.
  static Result<LlamaCppQuestion> read(const Question& question);

  /// Layers lie where flags say, or by free memory; where that does not fit and no flag forbids it, as many
  /// on each GPU as it holds, if all find a place. Source: docs/formulas/llama_cpp.md, "What fits".
  Result<LlamaCppBill> bill(std::int64_t context_tokens) const;
  bool fits(const LlamaCppBill& bill) const;
  /// The device with the least room left: a GPU, or the host where there is none.
  const LlamaCppDeviceBill& tightest(const LlamaCppBill& bill) const;
  /// Of the same device. Nothing where the cache's size is given, or no device.
  std::optional<Bytes> budget(const LlamaCppBill& bill) const;
  /// What each device has to hold; nothing without GPUs.
  std::vector<DeviceUse> uses(const LlamaCppBill& bill) const;

  const std::vector<LlamaCppGpu>& gpus() const { return gpus_; }
  const memory::LlamaCppContext& context() const { return context_; }
  const memory::LlamaCppPlacement& placement() const { return layout_.placement; }
  const memory::LlamaCppModelWeights& model() const { return model_; }
  bool ignores_windows() const { return ignores_windows_; }

 private:
  /// Where layers lie, and with them weights.
  struct Layout {
    memory::LlamaCppPlacement placement;
    memory::LlamaCppWeightBuffers weights;
    std::vector<int> devices;
  };

  explicit LlamaCppQuestion(const Question& question) : question_(question) {}
  Status read_cache_types();
  void read_gpus();
  Status read_placement();
  Status read_weights();
  Result<Layout> layout_for(memory::LlamaCppPlacement placement) const;
  LlamaCppBill bill_of(const Layout& layout, memory::LlamaCppCache cache,
                       const memory::LlamaCppCompute& compute) const;
  void add_compute(LlamaCppBill& bill) const;
  bool is_pipelined() const;
  bool may_move_layers() const;
  std::vector<double> layers_that_fit(const LlamaCppBill& bill) const;
  std::size_t tightest_gpu(const LlamaCppBill& bill) const;

  const Question& question_;
  memory::LlamaCppContext context_;
  memory::LlamaCppModelWeights model_;
  memory::LlamaCppLayerBytes layer_bytes_;
  Layout layout_;  // as asked
  std::vector<LlamaCppGpu> gpus_;
  std::optional<Bytes> host_budget_;
  bool ignores_windows_ = false;
};

/// The engine's names of buffers, device by device.
std::vector<Buffer> llama_cpp_buffers(const LlamaCppQuestion& question, const LlamaCppBill& bill);

}  // namespace plimsoll::plan
