// SPDX-License-Identifier: Apache-2.0
#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <numeric>

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

}  // namespace
}  // namespace plimsoll
