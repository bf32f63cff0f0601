// SPDX-License-Identifier: Apache-2.0
#include "bench/progress.h"

#include <gtest/gtest.h>

namespace plimsoll::bench {
namespace {

Progress at(double elapsed_s, std::int64_t done, std::int64_t chunks) {
  Progress progress;
  progress.completed = done;
  progress.running = 4;
  progress.total = 40;
  progress.chunks = chunks;
  progress.elapsed_s = elapsed_s;
  return progress;
}

TEST(ProgressText, ShowsTheRateOfTheLastSeconds) {
  ProgressText progress;
  for (int i = 1; i <= 10; ++i) progress.note(at(i, i, i <= 5 ? 10 * i : 50 + 100 * (i - 5)));
  EXPECT_EQ(progress.text(), "10/40 requests, 4 running, 100.0 chunks/s, 10.00 s, 30 s left");
}

TEST(ProgressText, CountsFromTheStartAtFirst) {
  ProgressText progress;
  progress.note(at(2, 0, 30));
  EXPECT_EQ(progress.text(), "0/40 requests, 4 running, 15.0 chunks/s, 2.00 s");
}

TEST(ProgressText, LeavesOutWhatIsNotKnown) {
  ProgressText progress;
  Progress end;
  end.failed = end.total = 1;
  end.elapsed_s = 0.5;
  progress.note(end);
  EXPECT_EQ(progress.text(), "1/1 requests, 1 failed, 0.50 s");
  EXPECT_EQ(ProgressText().text(), "0/0 requests, 0.00 s");
}

}  // namespace
}  // namespace plimsoll::bench
