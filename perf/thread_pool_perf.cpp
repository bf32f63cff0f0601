// SPDX-License-Identifier: Apache-2.0
// What does sharing work among a team cost? The time of a loop with nothing to do, beside the least that two
// spinning threads need to tell each other something and hear back; and a loop of loops like a decode step
// (150 loops of 20 to 200 chunks of 1 us), alone and beside a process that burns one core at the same nice:
// `plimsoll_thread_pool_perf [threads]`.
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "base/machine.h"
#include "base/thread_pool.h"

namespace plimsoll {
namespace {

using Clock = std::chrono::steady_clock;

double microseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// A count of instructions, not a time: a thread without a core makes no progress.
void burn(std::int64_t count) {
  std::uint64_t value = 3;
  for (std::int64_t i = 0; i < count; ++i) {
    value *= 0x9E3779B97F4A7C15ULL;
    asm volatile("" : "+r"(value));
  }
}

std::int64_t count_per_microsecond() {
  constexpr std::int64_t kCount = 200'000;
  double best = 1e9;
  for (int round = 0; round < 50; ++round) {
    const auto start = Clock::now();
    burn(kCount);
    best = std::min(best, microseconds_since(start));
  }
  return static_cast<std::int64_t>(kCount / best);
}

void print(const char* what, std::vector<double> values, const char* unit) {
  std::sort(values.begin(), values.end());
  const auto at = [&](std::size_t percent) { return values[(values.size() - 1) * percent / 100]; };
  std::printf("%-34s %8.2f %8.2f %8.2f %8.2f %s\n", what, at(0), at(50), at(90), at(100), unit);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + std::ssize(values) / 2, values.end());
  return values[values.size() / 2];
}

std::vector<double> round_trips() {
  constexpr int kTrips = 2'000;
  std::vector<double> nanoseconds;
  alignas(64) std::atomic<int> there{0};
  alignas(64) std::atomic<int> back{0};
  std::thread other([&] {
    for (int trip = 1; trip <= kTrips * 50; ++trip) {
      while (there.load(std::memory_order_acquire) < trip) continue;
      back.store(trip, std::memory_order_release);
    }
  });
  for (int round = 0; round < 50; ++round) {
    const auto start = Clock::now();
    for (int trip = round * kTrips + 1; trip <= (round + 1) * kTrips; ++trip) {
      there.store(trip, std::memory_order_release);
      while (back.load(std::memory_order_acquire) < trip) continue;
    }
    nanoseconds.push_back(microseconds_since(start) * 1e3 / kTrips);
  }
  other.join();
  return nanoseconds;
}

// Each chunk waits for the others to have begun, so that every thread has to come: a barrier.
std::vector<double> barriers(ThreadPool& pool) {
  constexpr int kLoops = 2'000;
  std::vector<double> nanoseconds;
  for (int round = 0; round < 50; ++round) {
    const auto start = Clock::now();
    for (int loop = 0; loop < kLoops; ++loop) {
      alignas(64) std::atomic<int> begun{0};
      pool.run(pool.threads(), [&](std::int64_t, int) {
        begun.fetch_add(1, std::memory_order_acq_rel);
        while (begun.load(std::memory_order_acquire) < pool.threads()) continue;
      });
    }
    nanoseconds.push_back(microseconds_since(start) * 1e3 / kLoops);
  }
  return nanoseconds;
}

std::vector<double> empty_loops(ThreadPool& pool) {
  constexpr int kLoops = 2'000;
  std::vector<double> nanoseconds;
  for (int round = 0; round < 50; ++round) {
    const auto start = Clock::now();
    for (int loop = 0; loop < kLoops; ++loop) pool.run(pool.threads(), [](std::int64_t, int) {});
    nanoseconds.push_back(microseconds_since(start) * 1e3 / kLoops);
  }
  return nanoseconds;
}

// A step's loops differ in length: 20 to 200 chunks, 110 on average.
std::vector<double> steps(ThreadPool& pool, std::int64_t per_microsecond, int count) {
  std::vector<double> milliseconds;
  for (int step = 0; step < count; ++step) {
    const auto start = Clock::now();
    for (std::int64_t loop = 0; loop < 150; ++loop)
      pool.run(20 + loop * 37 % 181, [&](std::int64_t, int) { burn(per_microsecond); });
    milliseconds.push_back(microseconds_since(start) * 1e-3);
  }
  return milliseconds;
}

/// A process that burns a core while it lives.
class Neighbour {
 public:
  Neighbour() : process_(::fork()) {
    if (process_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) asm volatile("");
  }
  Neighbour(const Neighbour&) = delete;
  Neighbour& operator=(const Neighbour&) = delete;
  ~Neighbour() {
    if (process_ > 0) ::kill(process_, SIGKILL);
    if (process_ > 0) ::waitpid(process_, nullptr, 0);
  }

 private:
  pid_t process_;
};

int run(int threads) {
  const Machine machine = read_machine();
  std::printf("%s, %s; %d threads, compiler %s\n", machine.cpu_model.c_str(), describe(machine.cores).c_str(),
              threads, __VERSION__);
  std::printf("%-34s %8s %8s %8s %8s\n", "", "least", "median", "p90", "most");
  const std::int64_t per_microsecond = count_per_microsecond();
  print("two threads, there and back", round_trips(), "ns");
  ThreadPool pool(threads);
  print("empty loop", empty_loops(pool), "ns");
  print("loop that needs every thread", barriers(pool), "ns");
  // In turn, so that what else the machine does falls on both.
  std::vector<double> alone, beside, ratios;
  for (int round = 0; round < 5; ++round) {
    const auto free_steps = steps(pool, per_microsecond, 30);
    const Neighbour neighbour;
    steps(pool, per_microsecond, 10);
    const auto crowded_steps = steps(pool, per_microsecond, 30);
    ratios.push_back(median(crowded_steps) / median(free_steps));
    alone.insert(alone.end(), free_steps.begin(), free_steps.end());
    beside.insert(beside.end(), crowded_steps.begin(), crowded_steps.end());
  }
  print("step of 16.5 ms of work, alone", alone, "ms");
  print("step beside a busy process", beside, "ms");
  print("ratio of the medians, 5 rounds", ratios, "x");
  return 0;
}

}  // namespace
}  // namespace plimsoll

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : plimsoll::read_machine().cores.usable;
  if (threads < 1) {
    std::fprintf(stderr, "plimsoll_thread_pool_perf [threads]\n");
    return 2;
  }
  return plimsoll::run(threads);
}
