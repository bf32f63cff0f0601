// SPDX-License-Identifier: Apache-2.0
#include "bench/limits.h"

#include <gtest/gtest.h>

namespace plimsoll::bench {
namespace {

std::size_t num_broken(std::string_view text) {
  const Json result = *parse_json(
      R"({"p99_ttft_ms":500.0,"p99.9_ttft_ms":700,"failed":2,"mean_itl_ms":null,"plimsoll":{"itl_ms":{"p99":12.5}}})",
      "result");
  const auto limit = parse_limit(text);
  EXPECT_TRUE(limit) << text;
  const auto broken = broken_limits(result, {*limit});
  EXPECT_TRUE(broken) << text;
  return broken ? broken->size() : 99;
}

TEST(Limits, CompareFiguresOfTheResult) {
  EXPECT_EQ(num_broken("p99_ttft_ms>500"), 0u);
  EXPECT_EQ(num_broken("p99_ttft_ms>=500"), 1u);
  EXPECT_EQ(num_broken("p99_ttft_ms<500"), 0u);
  EXPECT_EQ(num_broken("p99_ttft_ms <= 500"), 1u);
  EXPECT_EQ(num_broken("failed>0"), 1u);
  EXPECT_EQ(num_broken("p99.9_ttft_ms>600"), 1u);
  EXPECT_EQ(num_broken("plimsoll.itl_ms.p99>12"), 1u);
  EXPECT_EQ(num_broken("mean_itl_ms>1"), 1u);  // unknown is not kept
}

TEST(Limits, RefuseWhatIsNoLimitOrNoFigure) {
  for (const char* text : {"", "p99_ttft_ms", ">5", "a>", "a>b", "a=5", "a>5ms"})
    EXPECT_FALSE(parse_limit(text)) << text;
  const Json result = *parse_json(R"({"a":"text"})", "result");
  for (const char* text : {"a>1", "b>1", "a.b>1"}) {
    const auto refused = broken_limits(result, {*parse_limit(text)});
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  }
}

TEST(Limits, AFigureThatTheRunWillNotHaveIsRefusedBeforeIt) {
  const auto is_known = [](const Options& options, const char* text) {
    return check_limits(options, {*parse_limit(text)}).has_value();
  };
  Options options;
  for (const char* text : {"p99_ttft_ms>5", "failed>0", "plimsoll.e2el_ms.p99>5",
                           "plimsoll.endpoints.0.failed>0", "plimsoll.memory_used_bytes.peak>5"})
    EXPECT_TRUE(is_known(options, text)) << text;
  for (const char* text : {"p99_e2el_ms>5", "p98_ttft_ms>5", "plimsoll.itl_ms.p98>5", "date>5"})
    EXPECT_FALSE(is_known(options, text)) << text;
  options.metrics.metrics = {Metric::kClientQueueTime, Metric::kE2elIncludingClientQueue};
  EXPECT_FALSE(is_known(options, "mean_client_queue_time_ms>5"));
  options.max_concurrency = 4;
  EXPECT_TRUE(is_known(options, "mean_client_queue_time_ms>5"));
  EXPECT_FALSE(is_known(options, "mean_e2el_including_client_queue_ms>5"));
  options.request_rate = 2;
  EXPECT_TRUE(is_known(options, "mean_e2el_including_client_queue_ms>5"));
}

}  // namespace
}  // namespace plimsoll::bench
