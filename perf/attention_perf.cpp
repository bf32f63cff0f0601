// SPDX-License-Identifier: Apache-2.0
// How fast is attention over the paged cache? Decode of one row at several contexts, every head's keys and
// values fetched from memory, and prefill of a whole prompt in tiles; per instruction set, shape, cache and
// number of threads. GB/s of keys and values, GFLOP/s of products; beside them what memory gives and the
// processor can multiply in the same minute.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/kernels.h"

namespace plimsoll::kernels {
namespace {

using benchmark::Counter;

struct Shape {
  const char* name;
  int q_heads, kv_heads;
  std::int64_t head_dim;
  int group() const { return q_heads / kv_heads; }
};
constexpr Shape kShapes[] = {{"SmolLM2-135M", 9, 3, 64}, {"Qwen3-0.6B", 16, 8, 128}};
constexpr std::int64_t kBlockSize = 16;
constexpr std::int64_t kPoolBytes = std::int64_t{192} << 20;  // beyond the caches

struct Setup {
  Isa isa;
  Shape shape;
  DType dtype;
  std::int64_t tokens;
  int threads;
};

std::int64_t vector_bytes(const Setup& setup) {
  return setup.shape.head_dim * info(setup.dtype).block_bytes +
         (setup.dtype == DType::kI8 ? std::int64_t{sizeof(float)} : 0);
}

// A pool of blocks that hold one head's keys, then its values, in random order.
struct Pool {
  explicit Pool(const Setup& setup, std::int64_t at_least) {
    const std::int64_t of_block = 2 * kBlockSize * vector_bytes(setup);
    blocks.resize(static_cast<std::size_t>(std::max(kPoolBytes, at_least) / of_block));
    std::iota(blocks.begin(), blocks.end(), 0);
    std::shuffle(blocks.begin(), blocks.end(), std::mt19937(1));
    bytes.resize(blocks.size() * static_cast<std::size_t>(of_block));
    // Small numbers in every form: bf16 and f32 below 1, eight-bit codes of either sign, scales likewise.
    for (std::size_t i = 0; i < bytes.size(); i += 2) {
      bytes[i] = static_cast<std::byte>(i * 37 >> 3);
      bytes[i + 1] = static_cast<std::byte>(0x3c + (i >> 5) % 3);
    }
    cached.dtype = setup.dtype;
    cached.head_dim = cached.value_dim = setup.shape.head_dim;
    cached.keys = bytes.data();
    cached.values = bytes.data() + kBlockSize * vector_bytes(setup);
    cached.key_bytes = cached.value_bytes = vector_bytes(setup);
    cached.block_size = kBlockSize;
    cached.block_bytes = of_block;
  }
  std::vector<std::int32_t> blocks;
  std::vector<std::byte> bytes;
  KeyValues cached;
};

// One tile of rows that end at `end`, over blocks from `first_block` on.
void attend_tile(const Setup& setup, const Pool& pool, std::size_t first_block, std::int64_t rows,
                 std::int64_t end, const float* numbers, float* out, float* scratch) {
  AttentionTile tile;
  tile.cached = pool.cached;
  tile.cached.blocks = pool.blocks.data() + first_block;
  tile.scale = 0.05f;
  AttentionQuery queries[kAttentionQueries];
  std::size_t count = 0;
  for (std::int64_t row = 0; row < rows; ++row)
    for (int head = 0; head < setup.shape.group(); ++head, ++count) {
      const auto at = static_cast<std::int64_t>(count) * setup.shape.head_dim;
      queries[count].query = numbers + at;
      queries[count].out = out + at;
      queries[count].end = end - rows + 1 + row;
    }
  tile.queries = {queries, count};
  attend(kernels_for(setup.isa), tile, scratch);
}

struct Buffers {
  explicit Buffers(const Setup& setup)
      : stride(attention_scratch(setup.shape.head_dim, setup.shape.head_dim)),
        width(kAttentionQueries * setup.shape.head_dim),
        scratch(static_cast<std::size_t>(stride * setup.threads)),
        out(static_cast<std::size_t>(width * setup.threads)),
        numbers(static_cast<std::size_t>(width), 0.25f) {}
  std::int64_t stride, width;
  std::vector<float> scratch, out, numbers;
};

void print(benchmark::State& state, double bytes, double flops) {
  state.counters["GB/s"] = Counter(bytes / 1e9, Counter::kIsIterationInvariantRate);
  state.counters["GFLOP/s"] = Counter(flops / 1e9, Counter::kIsIterationInvariantRate);
}

// One row each of as many heads and sequences as the pool holds.
void decode(benchmark::State& state, const Setup& setup) {
  const Pool pool(setup, 0);
  Buffers buffers(setup);
  ThreadPool team(setup.threads);
  const auto of_item = static_cast<std::size_t>(setup.tokens / kBlockSize);
  const auto items = static_cast<std::int64_t>(pool.blocks.size() / of_item);
  for (auto _ : state)
    team.run(items, [&](std::int64_t item, int thread) {
      attend_tile(setup, pool, static_cast<std::size_t>(item) * of_item, 1, setup.tokens,
                  buffers.numbers.data(), buffers.out.data() + thread * buffers.width,
                  buffers.scratch.data() + thread * buffers.stride);
    });
  const auto positions = static_cast<double>(items * setup.tokens);
  print(state, positions * 2 * static_cast<double>(vector_bytes(setup)),
        positions * 4 * static_cast<double>(setup.shape.group() * setup.shape.head_dim));
}

// All rows of a prompt, of all heads of one layer.
void prefill(benchmark::State& state, const Setup& setup) {
  const std::int64_t of_head = setup.tokens / kBlockSize, rows = kAttentionQueries / setup.shape.group();
  const Pool pool(setup, setup.shape.kv_heads * setup.tokens * 2 * vector_bytes(setup));
  Buffers buffers(setup);
  ThreadPool team(setup.threads);
  const std::int64_t tiles = (setup.tokens + rows - 1) / rows;
  for (auto _ : state)
    team.run(tiles * setup.shape.kv_heads, [&](std::int64_t item, int thread) {
      const std::int64_t head = item % setup.shape.kv_heads, tile = tiles - 1 - item / setup.shape.kv_heads;
      const std::int64_t end = std::min(setup.tokens, (tile + 1) * rows);
      attend_tile(setup, pool, static_cast<std::size_t>(head * of_head), end - tile * rows, end,
                  buffers.numbers.data(), buffers.out.data() + thread * buffers.width,
                  buffers.scratch.data() + thread * buffers.stride);
    });
  const auto pairs = static_cast<double>(setup.tokens * (setup.tokens + 1) / 2 * setup.shape.q_heads);
  print(state, 0, pairs * 4 * static_cast<double>(setup.shape.head_dim));
}

void read_memory(benchmark::State& state, int threads) {
  const std::vector<std::uint64_t> memory(static_cast<std::size_t>(kPoolBytes) / 8, 1);
  ThreadPool team(threads);
  const std::int64_t words = 1 << 16;
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads) * 8);
  for (auto _ : state)
    team.run(std::ssize(memory) / words, [&](std::int64_t part, int thread) {
      const auto from = memory.begin() + part * words;
      sums[static_cast<std::size_t>(thread) * 8] += std::accumulate(from, from + words, std::uint64_t{0});
    });
  benchmark::DoNotOptimize(sums.data());
  print(state, static_cast<double>(kPoolBytes), 0);
}

// The same blocks, read in the order of the table: what a plain sum reaches without fetching ahead.
void read_blocks(benchmark::State& state, const Setup& setup) {
  const Pool pool(setup, 0);
  ThreadPool team(setup.threads);
  std::vector<std::uint64_t> sums(static_cast<std::size_t>(setup.threads) * 8);
  const auto words = static_cast<std::ptrdiff_t>(pool.cached.block_bytes / 8), step = std::ptrdiff_t{64};
  for (auto _ : state)
    team.run(std::ssize(pool.blocks) / step, [&](std::int64_t part, int thread) {
      for (std::int64_t i = part * step; i < (part + 1) * step; ++i) {
        const auto* from = reinterpret_cast<const std::uint64_t*>(
            pool.bytes.data() + pool.blocks[static_cast<std::size_t>(i)] * pool.cached.block_bytes);
        sums[static_cast<std::size_t>(thread) * 8] += std::accumulate(from, from + words, std::uint64_t{0});
      }
    });
  benchmark::DoNotOptimize(sums.data());
  print(state, static_cast<double>(pool.bytes.size()), 0);
}

// Products of rows that stay in the first-level cache: what matmul reaches of the peak.
void multiply_in_cache(benchmark::State& state, Isa isa) {
  const std::int64_t rows = 32, columns = 128, tokens = 12;
  const std::vector<float> weights(static_cast<std::size_t>(rows * columns), 0.5f);
  const std::vector<float> x(static_cast<std::size_t>(tokens * columns), 0.5f);
  std::vector<float> out(static_cast<std::size_t>(tokens * rows));
  for (auto _ : state) {
    kernels_for(isa).matmul(DType::kF32, reinterpret_cast<const std::byte*>(weights.data()), columns, 0, rows,
                            x.data(), tokens, out.data(), rows, nullptr);
    benchmark::ClobberMemory();
  }
  print(state, 0, static_cast<double>(2 * rows * columns * tokens));
}

void register_all() {
  const int all = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  std::vector<int> teams{1};
  if (all > 1) teams.push_back(all);
  const auto add = [](const std::string& label, auto function, auto argument) {
    benchmark::RegisterBenchmark(label.c_str(), function, argument)
        ->UseRealTime()
        ->Unit(benchmark::kMicrosecond);
  };
  for (const int threads : teams) add("read_memory/" + std::to_string(threads) + "t", read_memory, threads);
  for (const Isa isa : available_isas()) {
    add("multiply_in_cache/" + std::string(to_string(isa)), multiply_in_cache, isa);
    for (const Shape& shape : kShapes)
      for (const DType dtype : {DType::kBF16, DType::kF32, DType::kI8, DType::kF8E4M3})
        for (const int threads : teams) {
          const std::string label = std::string(to_string(isa)) + "/" + shape.name + "/" +
                                    std::string(name(dtype)) + "/" + std::to_string(threads) + "t/";
          add(label + "read_blocks", read_blocks, Setup{isa, shape, dtype, 0, threads});
          for (const std::int64_t tokens : {128, 1024, 4096})
            add(label + "decode/" + std::to_string(tokens), decode,
                Setup{isa, shape, dtype, tokens, threads});
          for (const std::int64_t tokens : {512, 2048})
            add(label + "prefill/" + std::to_string(tokens), prefill,
                Setup{isa, shape, dtype, tokens, threads});
        }
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
