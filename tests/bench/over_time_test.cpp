// SPDX-License-Identifier: Apache-2.0
#include "bench/over_time.h"

#include <gtest/gtest.h>

namespace plimsoll::bench {
namespace {

/// `tokens` at the end of [from, to].
RequestRecord request(double from_s, double to_s, std::int64_t tokens = 10) {
  RequestRecord record;
  record.sent_s = from_s;
  record.done_s = to_s;
  record.first_token_s = record.last_token_s = to_s;
  record.chunks = {{to_s, tokens, 1, true}};
  record.prompt_tokens = 5;
  return record;
}

TEST(OverTime, TheSteadyWindowLeavesOutRampAndDrain) {
  // Two at once from 1 to 5 s: the second joins at 1, the last pair ends at 5, one is left until 9.
  const std::vector<RequestRecord> records = {request(0, 3), request(1, 4), request(3, 5), request(4, 9)};
  const auto window = steady_window(records, 2);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->from_s, 1);
  EXPECT_EQ(window->to_s, 5);
  EXPECT_DOUBLE_EQ(window->request_rate, (2.0 / 3 + 1 + 1 + 1.0 / 5) / 4);  // the parts inside
  EXPECT_DOUBLE_EQ(window->output_rate, 7.5);
}

TEST(OverTime, AGapBetweenTwoRequestsDoesNotEndTheWindow) {
  const std::vector<RequestRecord> records = {request(0, 10), request(0, 4), request(4.001, 8)};
  const auto window = steady_window(records, 2);
  ASSERT_TRUE(window);
  EXPECT_EQ(window->from_s, 0);
  EXPECT_EQ(window->to_s, 8);
}

TEST(OverTime, ThereIsNoWindowWhereTheConcurrencyWasNotReached) {
  EXPECT_FALSE(steady_window({request(0, 1), request(1, 2)}, 2));
  EXPECT_FALSE(steady_window({}, 1));
  EXPECT_FALSE(steady_window({request(0, 1)}, 0));
  EXPECT_FALSE(steady_window({request(1, 1)}, 1));
}

TEST(OverTime, FailedRequestsRunButHoldNoTokens) {
  auto records = std::vector{request(0, 2), request(1, 3)};
  records[1].error = ErrorKind::kTimeout;
  EXPECT_EQ(running_changes(records), (std::vector<Change>{{0, 1}, {1, 1}, {2, -1}, {3, -1}}));
  EXPECT_EQ(live_token_changes(records), (std::vector<Change>{{2, -15}, {2, 5}, {2, 10}}));
}

}  // namespace
}  // namespace plimsoll::bench
