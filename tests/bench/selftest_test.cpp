// SPDX-License-Identifier: Apache-2.0
#include "bench/selftest.h"

#include <gtest/gtest.h>

namespace plimsoll::bench {
namespace {

TEST(Selftest, HoldsEveryRequestAgainstTheServersOwnLog) {
  SelftestCase given;
  given.streams = 4;
  given.requests = 8;
  given.ttft = std::chrono::milliseconds(5);
  given.itl = std::chrono::milliseconds(2);
  given.tokens = 6;
  const auto row = run_selftest(given);
  ASSERT_TRUE(row);
  EXPECT_EQ(row->completed, 8);
  EXPECT_EQ(row->tokens, 48);
  EXPECT_EQ(row->ttft_error_ms.count(), 8);
  EXPECT_EQ(row->itl_error_ms.count(), 40);
  EXPECT_EQ(row->server_late_ms.count(), 48);
  EXPECT_GE(*row->server_late_ms.at(0), 0);
  EXPECT_GT(row->cpu_us_per_token, 0);

  const Json document = selftest_json({*row});
  EXPECT_EQ(*document["schema"].as_string(), "plimsoll.bench_selftest/1");
  const Json& first = document["rows"].items().front();
  EXPECT_EQ(first["streams"].as_integer(), 4);
  for (const char* member : {"ttft_error_ms", "itl_error_ms", "client_lag_ms", "server_late_ms"})
    for (const char* figure : {"mean", "p99"})
      EXPECT_TRUE(first[member].contains(figure)) << member << figure;
  EXPECT_NE(selftest_text({*row}).find("\n      4      2"), std::string::npos);
}

TEST(Selftest, FailedRequestsAreShown) {
  SelftestRow row;
  row.given.requests = 8;
  row.completed = 6;
  EXPECT_NE(selftest_text({row}).find("  2 of 8 requests failed\n"), std::string::npos);
}

TEST(Selftest, ManyStreamsWaitLongerBetweenTokens) {
  EXPECT_EQ(selftest_case(256).itl.count(), 10);
  EXPECT_EQ(selftest_case(1000).itl.count(), 100);
  std::vector<std::int64_t> streams;
  for (const SelftestCase& given : selftest_cases()) streams.push_back(given.streams);
  EXPECT_EQ(streams, (std::vector<std::int64_t>{1, 64, 256, 1000}));
}

}  // namespace
}  // namespace plimsoll::bench
