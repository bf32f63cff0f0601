// SPDX-License-Identifier: Apache-2.0
// How fast are the matrix products at the shapes of a 135M model? Per instruction set, stored type, shape and
// number of tokens: GB/s of stored weights and GFLOP/s, on one thread.
#include <benchmark/benchmark.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace plimsoll::kernels {
namespace {

struct Shape {
  std::int64_t rows, columns;
};
constexpr Shape kShapes[] = {{576, 576}, {1536, 576}, {576, 1536}, {49152, 576}};  // SmolLM2-135M

// Random bits whose scales are small: a half below 2 in both places where block types keep one.
std::vector<std::byte> random_weights(DType dtype, std::int64_t elements) {
  std::mt19937 random(1);
  std::vector<std::byte> stored(static_cast<std::size_t>(stored_bytes(dtype, elements)->value));
  for (std::byte& byte : stored) byte = static_cast<std::byte>(random() % 60);
  return stored;
}

void matmul(benchmark::State& state, Isa isa, DType dtype, Shape shape, std::int64_t tokens) {
  const auto weights = random_weights(dtype, shape.rows * shape.columns);
  const std::vector<float> x(static_cast<std::size_t>(tokens * shape.columns), 0.5f);
  std::vector<float> out(static_cast<std::size_t>(tokens * shape.rows));
  std::vector<float> scratch(static_cast<std::size_t>(kScratchRows * shape.columns));
  const Kernels& kernels = kernels_for(isa);
  for (auto _ : state) {
    kernels.matmul(dtype, weights.data(), shape.columns, 0, shape.rows, x.data(), tokens, out.data(),
                   shape.rows, scratch.data());
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  using benchmark::Counter;
  const auto flops = static_cast<double>(2 * shape.rows * shape.columns * tokens);
  state.counters["GB/s"] =
      Counter(static_cast<double>(weights.size()) / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] = Counter(flops / 1e9, Counter::kIsIterationInvariantRate);
}

void read_memory(benchmark::State& state) {
  const std::vector<std::uint64_t> memory(std::size_t{1} << 25, 1);  // 256 MiB, beyond every cache
  std::uint64_t sum = 0;
  for (auto _ : state) {
    for (const std::uint64_t word : memory) sum += word;
    benchmark::DoNotOptimize(sum);
  }
  state.counters["GB/s"] =
      benchmark::Counter(static_cast<double>(memory.size() * sizeof(std::uint64_t)) / 1e9,
                         benchmark::Counter::kIsIterationInvariantRate);
}

void register_all() {
  benchmark::RegisterBenchmark("read_memory", read_memory);
  for (const Isa isa : available_isas())
    for (const DType dtype :
         {DType::kF32, DType::kBF16, DType::kQ4_0, DType::kQ4_1, DType::kQ5_0, DType::kQ8_0, DType::kQ2K,
          DType::kQ3K, DType::kQ4K, DType::kQ5K, DType::kQ6K, DType::kMXFP4})
      for (const Shape shape : kShapes)
        for (const std::int64_t tokens : {1, 4, 128}) {
          if (shape.columns % info(dtype).block_elements != 0) continue;
          if (tokens > 1 && shape.rows > 10'000) continue;  // the vocabulary is multiplied for one token
          const std::string label = std::string(to_string(isa)) + "/" + std::string(name(dtype)) + "/" +
                                    std::to_string(shape.rows) + "x" + std::to_string(shape.columns) + "/" +
                                    std::to_string(tokens);
          benchmark::RegisterBenchmark(label.c_str(), matmul, isa, dtype, shape, tokens);
        }
}

}  // namespace
}  // namespace plimsoll::kernels

int main(int argc, char** argv) {
  plimsoll::kernels::register_all();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
