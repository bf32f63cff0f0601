// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <numeric>
#include <thread>

namespace plimsoll {
namespace {

TEST(ThreadPool, EveryChunkRunsOnceWhateverTheTeam) {
  for (const int threads : {1, 2, 3, 7}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 200; ++round) {
      std::vector<int> hits(static_cast<std::size_t>(round), 0);
      pool.run(round, [&](std::int64_t chunk, int thread) {
        EXPECT_LT(thread, threads);
        ++hits[static_cast<std::size_t>(chunk)];
      });
      EXPECT_EQ(std::accumulate(hits.begin(), hits.end(), 0), round);
      for (const int hit : hits) EXPECT_EQ(hit, 1);
    }
  }
}

// Threads come late to short loops here, most of them on no core at all.
TEST(ThreadPool, ALateThreadNeverTakesAChunkOfAnotherLoop) {
  ThreadPool pool(8);
  for (int round = 0; round < 20'000; ++round) {
    std::int64_t values[5] = {};
    pool.run(2 + round % 4, [&, round](std::int64_t chunk, int) { values[chunk] += round + 1; });
    for (int chunk = 0; chunk < 5; ++chunk) ASSERT_EQ(values[chunk], chunk < 2 + round % 4 ? round + 1 : 0);
  }
}

TEST(ThreadPool, ResultsAreVisibleToTheCaller) {
  ThreadPool pool(4);
  std::vector<std::int64_t> squares(10'000);
  pool.run(10'000, [&](std::int64_t i, int) { squares[static_cast<std::size_t>(i)] = i * i; });
  for (std::int64_t i = 0; i < 10'000; ++i) ASSERT_EQ(squares[static_cast<std::size_t>(i)], i * i);
}

// What a thread keeps of its own, such as scratch, needs no lock.
TEST(ThreadPool, NoTwoChunksRunAtOnceWithOneThreadNumber) {
  constexpr std::size_t kThreads = 5;
  ThreadPool pool(kThreads);
  std::array<std::int64_t, kThreads> own = {};
  for (int round = 0; round < 500; ++round)
    pool.run(97, [&](std::int64_t, int thread) { ++own[static_cast<std::size_t>(thread)]; });
  EXPECT_EQ(std::accumulate(own.begin(), own.end(), std::int64_t{0}), 500 * 97);
}

TEST(ThreadPool, AChunkMayRunATeamOfItsOwn) {
  ThreadPool outer(3);
  std::array<std::int64_t, 11> sums = {};
  for (int round = 0; round < 20; ++round)
    outer.run(11, [&](std::int64_t chunk, int) {
      ThreadPool inner(1 + static_cast<int>(chunk % 3));
      std::vector<std::int64_t> parts(static_cast<std::size_t>(chunk * 13 + 1));
      inner.run(std::ssize(parts), [&](std::int64_t i, int) { parts[static_cast<std::size_t>(i)] = i; });
      sums[static_cast<std::size_t>(chunk)] += std::accumulate(parts.begin(), parts.end(), std::int64_t{0});
    });
  for (std::int64_t chunk = 0; chunk < 11; ++chunk)
    EXPECT_EQ(sums[static_cast<std::size_t>(chunk)], 20 * (chunk * 13) * (chunk * 13 + 1) / 2);
}

// Each chunk that is left runs elsewhere, those of the stuck home range too.
TEST(ThreadPool, TheOthersGoOnWhileOneIsStuckInAChunk) {
  ThreadPool pool(2);
  std::atomic<int> others{0};
  pool.run(100, [&](std::int64_t chunk, int) {
    if (chunk != 0) {
      others.fetch_add(1);
      others.notify_one();
      return;
    }
    for (int done = others.load(); done < 99; done = others.load()) others.wait(done);
  });
  EXPECT_EQ(others.load(), 99);
}

TEST(ThreadPool, TeamsBeginAndEndAsleepOrAwake) {
  for (int round = 0; round < 300; ++round) {
    ThreadPool pool(1 + round % 9);
    std::atomic<int> chunks{0};
    for (int loop = 0; loop < round % 3; ++loop) {
      pool.run(round % 17, [&](std::int64_t, int) { chunks.fetch_add(1); });
      if (round % 5 == 0) std::this_thread::yield();
    }
    EXPECT_EQ(chunks.load(), round % 17 * (round % 3));
  }
}

TEST(ThreadPool, TeamsSideBySideDoNotMix) {
  std::vector<std::thread> callers;
  std::array<std::int64_t, 4> sums = {};
  for (std::size_t caller = 0; caller < sums.size(); ++caller)
    callers.emplace_back([&sums, caller] {
      ThreadPool pool(3);
      std::atomic<std::int64_t> sum{0};
      for (int round = 0; round < 2'000; ++round)
        pool.run(round % 7, [&](std::int64_t chunk, int) { sum.fetch_add(chunk + 1); });
      sums[caller] = sum.load();
    });
  for (auto& caller : callers) caller.join();
  std::int64_t expected = 0;
  for (int round = 0; round < 2'000; ++round) expected += std::int64_t{round % 7} * (round % 7 + 1) / 2;
  for (const std::int64_t sum : sums) EXPECT_EQ(sum, expected);
}

TEST(FunctionRef, CallsWhatItWasGiven) {
  const std::function<int(int)> twice = [](int x) { return 2 * x; };
  const std::array<int, 64> large = {1, 2, 3};
  const auto add = [large](int x) { return x + large[2]; };
  const auto call = [](FunctionRef<int(int)> function) { return function(5); };
  EXPECT_EQ(call(twice), 10);
  EXPECT_EQ(call(add), 8);
  EXPECT_EQ(call([](int x) { return -x; }), -5);
}

}  // namespace
}  // namespace plimsoll
