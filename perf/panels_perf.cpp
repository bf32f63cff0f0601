// SPDX-License-Identifier: Apache-2.0
// How fast are products of panels at the shapes of a 135M model? Per instruction set, stored type, shape and
// rows of inputs: GB/s of panels, and GOP/s, on one thread. The head is beyond every cache, the others lie in
// it: set the first beside read_memory, the others beside `peak` of matmul_perf's limits.
#include <benchmark/benchmark.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/panels.h"

namespace plimsoll::kernels {
namespace {

struct Shape {
  std::int64_t rows, columns;
};
constexpr Shape kShapes[] = {{1536, 576}, {576, 1536}, {49152, 576}};  // SmolLM2-135M

void panels(benchmark::State& state, Isa isa, DType dtype, Shape shape, std::int64_t tokens) {
  const Kernels& kernels = kernels_for(isa);
  const std::int64_t bytes = panel_bytes(dtype, shape.columns), count = shape.rows / kPanelRows;
  const auto all = static_cast<std::size_t>(bytes * count);
  const std::unique_ptr<std::byte[]> weights(new (std::align_val_t{kPanelAlignment})
                                                 std::byte[all]);  // NOLINT: freed with the process
  std::mt19937 random(1);
  for (std::size_t i = 0; i < all; ++i) weights[i] = static_cast<std::byte>(random() % 60);
  const std::vector<float> x(static_cast<std::size_t>(tokens * shape.columns), 0.5f);
  std::vector<Int8Block> codes(x.size() / kInt8Block);
  kernels.to_int8_blocks(x.data(), std::ssize(codes), 1, codes.data());
  std::vector<float> out(static_cast<std::size_t>(tokens * shape.rows));
  std::vector<std::byte> scratch(static_cast<std::size_t>(panel_scratch_bytes(shape.columns)));
  for (auto _ : state) {
    for (std::int64_t panel = 0; panel < count; ++panel) {
      PanelProduct product{.dtype = dtype, .panel = weights.get() + panel * bytes, .columns = shape.columns};
      product.rows = kPanelRows;
      product.tokens = tokens;
      product.out = out.data() + panel * kPanelRows;
      product.out_stride = shape.rows;
      product.scratch = scratch.data();
      product.next = panel + 1 < count ? product.panel + bytes : nullptr;
      if (dtype == DType::kBF16)
        kernels.panel_float(product, x.data());
      else
        kernels.panel_int8(product, codes.data());
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  state.counters["GB/s"] = Counter(static_cast<double>(all) / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["GOP/s"] = Counter(static_cast<double>(2 * shape.rows * shape.columns * tokens) / 1e9,
                                    Counter::kIsIterationInvariantRate);
}

void register_all() {
  for (const Isa isa : available_isas())
    for (const DType dtype :
         {DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ8_0, DType::kQ4K, DType::kQ6K})
      for (const Shape shape : kShapes)
        for (const std::int64_t tokens : {1, 2, 4, 8, 32, 256}) {
          if (!fits_panels(dtype, shape.columns)) continue;
          if (isa == Isa::kScalar && tokens > 1) continue;
          const std::string label = std::string(to_string(isa)) + "/" + std::string(name(dtype)) + "/" +
                                    std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "/" +
                                    std::to_string(tokens);
          benchmark::RegisterBenchmark(label.c_str(), panels, isa, dtype, shape, tokens);
        }
}

}  // namespace
}  // namespace plimsoll::kernels

int main(int argc, char** argv) {
  plimsoll::kernels::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
