// SPDX-License-Identifier: Apache-2.0
// What can this machine do right now: reading memory, meeting at a barrier, multiplying?
//
// usage: limits [THREADS]                  (2; 1 to 64)
//
// Prints one line of JSON. Every time is taken inside the workers, between the first start and the last end
// of a repetition: a timer thread without a core of its own would measure when it was woken. The best
// repetition counts, since others only take away. Instruction sets are those of the kernels, and PLIMSOLL_ISA
// forbids wider ones here as it does there. Built with `c++ -O2 -std=c++20 -pthread`; each function names the
// instruction set that it needs.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

namespace {

constexpr std::size_t kBufferBytes = std::size_t{256}
                                     << 20;  // several times any last-level cache of such machines

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Threads that wait for each other by spinning; after a while they offer their core to others.
class SpinBarrier {
 public:
  explicit SpinBarrier(int threads) : threads_(threads) {}

  void meet() {
    const unsigned round = round_.load(std::memory_order_relaxed);
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
      arrived_.store(0, std::memory_order_relaxed);
      round_.store(round + 1, std::memory_order_release);
      return;
    }
    for (int spins = 0; round_.load(std::memory_order_acquire) == round; ++spins)
      if (spins > 20000) std::this_thread::yield();
  }

 private:
  const int threads_;
  alignas(64) std::atomic<int> arrived_{0};
  alignas(64) std::atomic<unsigned> round_{0};
};

/// Thread number n takes the n-th of the cores that this process may use: two on one core would share it.
void take_core(int thread) {
  cpu_set_t usable, own;
  if (sched_getaffinity(0, sizeof usable, &usable) != 0) return;
  CPU_ZERO(&own);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    if (CPU_ISSET(core, &usable) && thread-- == 0) CPU_SET(core, &own);
  if (CPU_COUNT(&own) == 1) pthread_setaffinity_np(pthread_self(), sizeof own, &own);
}

/// The shortest of `repetitions` of `work(thread)` on all threads at once, in seconds.
double shortest(int threads, int repetitions, const std::function<void(int)>& work) {
  SpinBarrier barrier(threads);
  std::vector<double> starts(static_cast<std::size_t>(threads)), ends(starts.size());
  double best = std::numeric_limits<double>::infinity();
  const auto run = [&](int thread) {
    take_core(thread);
    for (int repetition = 0; repetition < repetitions; ++repetition) {
      barrier.meet();
      starts[static_cast<std::size_t>(thread)] = now_s();
      work(thread);
      ends[static_cast<std::size_t>(thread)] = now_s();
      barrier.meet();
      if (thread == 0)
        best = std::min(best, *std::max_element(ends.begin(), ends.end()) -
                                  *std::min_element(starts.begin(), starts.end()));
    }
  };
  std::vector<std::thread> workers;
  for (int thread = 0; thread < threads; ++thread) workers.emplace_back(run, thread);
  for (std::thread& worker : workers) worker.join();
  return best;
}

std::atomic<std::uint64_t> sink;  // what is summed up here cannot be left out

void read_scalar(const char* bytes, std::size_t size) {
  const auto* words = reinterpret_cast<const std::uint64_t*>(bytes);
  std::uint64_t a = 0, b = 0, c = 0, d = 0;
  for (std::size_t i = 0; i + 4 <= size / 8; i += 4) {
    a += words[i];
    b += words[i + 1];
    c += words[i + 2];
    d += words[i + 3];
  }
  sink += a + b + c + d;
}

__attribute__((target("avx2"))) void read_avx2(const char* bytes, std::size_t size) {
  __m256i sums[4] = {};
  for (std::size_t i = 0; i + 128 <= size; i += 128)
    for (std::size_t k = 0; k < 4; ++k)
      sums[k] =
          _mm256_add_epi64(sums[k], _mm256_load_si256(reinterpret_cast<const __m256i*>(bytes + i + 32 * k)));
  const __m256i sum =
      _mm256_add_epi64(_mm256_add_epi64(sums[0], sums[1]), _mm256_add_epi64(sums[2], sums[3]));
  sink += static_cast<std::uint64_t>(_mm256_extract_epi64(sum, 0) + _mm256_extract_epi64(sum, 1) +
                                     _mm256_extract_epi64(sum, 2) + _mm256_extract_epi64(sum, 3));
}

__attribute__((target("avx512f"))) void read_avx512(const char* bytes, std::size_t size) {
  __m512i sums[4] = {};
  for (std::size_t i = 0; i + 256 <= size; i += 256)
    for (std::size_t k = 0; k < 4; ++k)
      sums[k] = _mm512_add_epi64(sums[k], _mm512_load_si512(bytes + i + 64 * k));
  const __m512i sum =
      _mm512_add_epi64(_mm512_add_epi64(sums[0], sums[1]), _mm512_add_epi64(sums[2], sums[3]));
  alignas(64) std::uint64_t parts[8];
  _mm512_store_si512(parts, sum);
  for (const std::uint64_t part : parts) sink += part;
}

// The peaks: twelve sums that do not wait for each other. The empty asm makes an operand new to the compiler,
// so that nothing is taken out of the loop or done once for all sums.
constexpr int kSums = 12;
constexpr long kPeakRounds = 100'000;

#define PLIMSOLL_EACH_SUM _Pragma("GCC unroll 12") for (int k = 0; k < kSums; ++k)
#define PLIMSOLL_PEAK(name, isa, vector, zero, first, second, step) \
  __attribute__((target(isa))) void name() {                        \
    vector sums[kSums];                                             \
    PLIMSOLL_EACH_SUM sums[k] = zero;                               \
    auto a = first;                                                 \
    auto b = second;                                                \
    for (long round = 0; round < kPeakRounds; ++round) {            \
      PLIMSOLL_EACH_SUM {                                           \
        asm volatile("" : "+x"(a));                                 \
        sums[k] = step(sums[k], a, b);                              \
      }                                                             \
    }                                                               \
    PLIMSOLL_EACH_SUM asm volatile("" ::"x"(sums[k]));              \
  }

#define PLIMSOLL_FMA_256(sum, a, b) _mm256_fmadd_ps(a, b, sum)
#define PLIMSOLL_FMA_512(sum, a, b) _mm512_fmadd_ps(a, b, sum)
#define PLIMSOLL_PAIRS_256(sum, a, b) _mm256_add_epi16(sum, _mm256_maddubs_epi16(a, b))
#define PLIMSOLL_PAIRS_512(sum, a, b) _mm512_add_epi16(sum, _mm512_maddubs_epi16(a, b))
#define PLIMSOLL_FOURS_512(sum, a, b) _mm512_dpbusd_epi32(sum, a, b)
#define PLIMSOLL_BF16_512(sum, a, b) _mm512_dpbf16_ps(sum, a, b)

PLIMSOLL_PEAK(f32_avx2, "avx2,fma", __m256, _mm256_setzero_ps(), _mm256_set1_ps(0.5F), _mm256_set1_ps(0.25F),
              PLIMSOLL_FMA_256)
PLIMSOLL_PEAK(f32_avx512, "avx512f", __m512, _mm512_setzero_ps(), _mm512_set1_ps(0.5F), _mm512_set1_ps(0.25F),
              PLIMSOLL_FMA_512)
PLIMSOLL_PEAK(int8_avx2, "avx2", __m256i, _mm256_setzero_si256(), _mm256_set1_epi8(1), _mm256_set1_epi8(2),
              PLIMSOLL_PAIRS_256)
PLIMSOLL_PEAK(int8_avx512, "avx512f,avx512bw", __m512i, _mm512_setzero_si512(), _mm512_set1_epi8(1),
              _mm512_set1_epi8(2), PLIMSOLL_PAIRS_512)
PLIMSOLL_PEAK(int8_vnni, "avx512f,avx512vnni", __m512i, _mm512_setzero_si512(), _mm512_set1_epi8(1),
              _mm512_set1_epi8(2), PLIMSOLL_FOURS_512)
PLIMSOLL_PEAK(bf16_avx512, "avx512f,avx512bf16", __m512, _mm512_setzero_ps(),
              reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80)),
              reinterpret_cast<__m512bh>(_mm512_set1_epi32(0x3f803f80)), PLIMSOLL_BF16_512)

struct InstructionSet {
  const char* name;
  void (*read)(const char*, std::size_t);
  void (*f32)();
  int f32_per_step;  // multiplications and additions of one instruction
  void (*int8)();
  int int8_per_step;
  void (*bf16)();
  int bf16_per_step;
};

// As in the kernels, narrowest first.
const InstructionSet kSets[] = {
    {"scalar", read_scalar, nullptr, 0, nullptr, 0, nullptr, 0},
    {"avx2", read_avx2, f32_avx2, 16, int8_avx2, 64, nullptr, 0},
    {"avx512", read_avx512, f32_avx512, 32, int8_avx512, 128, nullptr, 0},
    {"avx512_vnni", read_avx512, f32_avx512, 32, int8_vnni, 128, nullptr, 0},
    {"avx512_bf16", read_avx512, f32_avx512, 32, int8_vnni, 128, bf16_avx512, 64},
};

bool has(std::string_view name) {
  __builtin_cpu_init();
  if (name == "scalar") return true;
  if (name == "avx2") return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool wide = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw");
  if (name == "avx512") return wide;
  const bool vnni = wide && __builtin_cpu_supports("avx512vnni");
  return name == "avx512_vnni" ? vnni : vnni && __builtin_cpu_supports("avx512bf16");
}

const InstructionSet& widest() {
  const char* wanted = std::getenv("PLIMSOLL_ISA");
  const InstructionSet* found = kSets;
  for (const InstructionSet& set : kSets) {
    if (has(set.name)) found = &set;
    if (wanted != nullptr && std::string_view(wanted) == set.name) break;
  }
  return *found;
}

double read_gbps(const InstructionSet& set, const char* buffer, int threads) {
  const std::size_t share = kBufferBytes / static_cast<std::size_t>(threads) / 256 * 256;
  const double seconds = shortest(
      threads, 9, [&](int thread) { set.read(buffer + share * static_cast<std::size_t>(thread), share); });
  return static_cast<double>(share) * threads / seconds / 1e9;
}

/// One meeting of two threads, in ns.
double barrier_ns() {
  constexpr int kMeetings = 1000;
  SpinBarrier barrier(2);
  const double seconds = shortest(2, 100, [&](int) {
    for (int meeting = 0; meeting < kMeetings; ++meeting) barrier.meet();
  });
  return seconds / kMeetings * 1e9;
}

std::string peak(void (*work)(), int per_step, int threads) {
  if (work == nullptr) return "null";
  const double seconds = shortest(threads, 25, [&](int) { work(); });
  return std::to_string(static_cast<double>(kPeakRounds) * kSums * per_step * threads / seconds / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  if (threads < 1 || threads > 64) {
    std::fprintf(stderr, "usage: limits [THREADS]   1 to 64\n");
    return 2;
  }
  void* memory = mmap(nullptr, kBufferBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    std::fprintf(stderr, "limits: no %zu bytes of memory to be had\n", kBufferBytes);
    return 1;
  }
  madvise(memory, kBufferBytes, MADV_HUGEPAGE);
  auto* buffer = static_cast<char*>(memory);
  for (std::size_t i = 0; i < kBufferBytes; i += 4096) buffer[i] = 1;
  const InstructionSet& set = widest();
  std::string read;
  for (int count = 1; count <= threads; ++count)
    read += (count > 1 ? "," : "") + std::to_string(read_gbps(set, buffer, count));
  const std::string barrier = std::thread::hardware_concurrency() < 2 ? "null" : std::to_string(barrier_ns());
  std::printf(
      "{\"isa\":\"%s\",\"threads\":%d,\"read_gbps\":[%s],\"barrier_ns\":%s,\"f32_gflops\":%s,\"int8_gops\":%"
      "s,\"bf16_gflops\":%s}\n",
      set.name, threads, read.c_str(), barrier.c_str(), peak(set.f32, set.f32_per_step, threads).c_str(),
      peak(set.int8, set.int8_per_step, threads).c_str(), peak(set.bf16, set.bf16_per_step, threads).c_str());
  munmap(memory, kBufferBytes);
  return 0;
}
