// SPDX-License-Identifier: Apache-2.0
// How fast are the operations beside the matrix products, at the sizes of a 135M model? Per instruction set:
// elements per second on one thread, everything in the first-level cache.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "kernels/kernels.h"

namespace plimsoll::kernels {
namespace {

struct Buffers {
  std::vector<float> a, b, out;
  std::vector<std::uint16_t> halves;
  std::vector<std::uint8_t> codes;

  explicit Buffers(std::int64_t n)
      : a(static_cast<std::size_t>(n)),
        b(a),
        out(a),
        halves(static_cast<std::size_t>(n), 0x3f80),
        codes(static_cast<std::size_t>(n), 0x38) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] = b[i] = static_cast<float>(i % 17) * 0.25f - 2.0f;
  }
};

template <class Operation>
void add(const std::string& label, std::int64_t n, Operation operation) {
  for (const Isa isa : available_isas())
    benchmark::RegisterBenchmark(
        (std::string(to_string(isa)) + "/" + label + "/" + std::to_string(n)).c_str(),
        [n, isa, operation](benchmark::State& state) {
          Buffers buffers(n);
          const Kernels& kernels = kernels_for(isa);
          for (auto _ : state) {
            operation(kernels, buffers, n);
            benchmark::ClobberMemory();
          }
          state.counters["elements/s"] =
              benchmark::Counter(static_cast<double>(n), benchmark::Counter::kIsIterationInvariantRate);
        });
}

void register_all() {
  add("rms_norm", 576, [](const Kernels& k, Buffers& b, std::int64_t n) {
    k.rms_norm(b.a.data(), b.b.data(), n, 1e-5f, b.out.data());
  });
  add("silu_mul", 1536, [](const Kernels& k, Buffers& b, std::int64_t n) {
    k.silu_mul(b.a.data(), b.b.data(), n, b.out.data());
  });
  add("softmax", 1024, [](const Kernels& k, Buffers& b, std::int64_t n) { k.softmax(b.out.data(), n); });
  add("rope", 576, [](const Kernels& k, Buffers& b, std::int64_t n) {
    k.rope(b.out.data(), static_cast<int>(n / 64), 64, 64, false, b.a.data(), b.b.data());
  });
  add("to_bf16", 576,
      [](const Kernels& k, Buffers& b, std::int64_t n) { k.to_bf16(b.a.data(), n, b.halves.data()); });
  add("dot_f32", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    benchmark::DoNotOptimize(k.dot_f32(b.a.data(), b.b.data(), n));
  });
  add("dot_bf16", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    benchmark::DoNotOptimize(k.dot_bf16(b.a.data(), b.halves.data(), n));
  });
  add("to_e4m3", 576,
      [](const Kernels& k, Buffers& b, std::int64_t n) { k.to_e4m3(b.a.data(), n, b.codes.data()); });
  add("to_i8", 576, [](const Kernels& k, Buffers& b, std::int64_t n) {
    benchmark::DoNotOptimize(k.to_i8(b.a.data(), n, reinterpret_cast<std::int8_t*>(b.codes.data())));
  });
  add("dot_e4m3", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    benchmark::DoNotOptimize(k.dot_e4m3(b.a.data(), b.codes.data(), n));
  });
  add("dot_i8", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    benchmark::DoNotOptimize(k.dot_i8(b.a.data(), reinterpret_cast<const std::int8_t*>(b.codes.data()), n));
  });
  add("add_scaled_f32", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    k.add_scaled_f32(0.5f, b.a.data(), n, b.out.data());
  });
  add("add_scaled_bf16", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    k.add_scaled_bf16(0.5f, b.halves.data(), n, b.out.data());
  });
  add("add_scaled_e4m3", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    k.add_scaled_e4m3(0.5f, b.codes.data(), n, b.out.data());
  });
  add("add_scaled_i8", 64, [](const Kernels& k, Buffers& b, std::int64_t n) {
    k.add_scaled_i8(0.5f, reinterpret_cast<const std::int8_t*>(b.codes.data()), n, b.out.data());
  });
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
