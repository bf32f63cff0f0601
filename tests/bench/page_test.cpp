// SPDX-License-Identifier: Apache-2.0
#include "bench/page.h"

#include <gtest/gtest.h>

#include "bench/page_charts.h"

namespace plimsoll::bench {
namespace {

RunResult run_of(int num_requests, double gap_s) {
  RunResult result;
  result.options.model = "org/<b>name";
  result.options.base_urls = {"http://host"};
  result.options.num_prompts = num_requests;
  for (int i = 0; i < num_requests; ++i) {
    RequestRecord r;
    r.index = i;
    r.scheduled_s = 0.5 * i;
    r.sent_s = r.scheduled_s + 0.1;
    r.first_token_s = r.sent_s + 0.05;
    r.prompt_tokens = 8;
    for (int t = 0; t < 5; ++t) r.chunks.push_back({*r.first_token_s + t * gap_s, 1, 1, false});
    r.last_token_s = r.done_s = r.chunks.back().at_s;
    r.output_tokens = 5;
    if (i == 1) {
      r.error = ErrorKind::kHttpStatus;
      r.status = 500;
      r.error_text = "<script>alert(1)</script>";
    }
    result.records.push_back(std::move(r));
  }
  RunFacts facts;
  facts.duration_s = 0.5 * num_requests;
  result.summary = summarize(result.records, facts);
  return result;
}

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != text.npos; at = text.find(part, at + 1)) ++n;
  return n;
}

TEST(Page, OfOneRunHasFiguresChartsAndErrors) {
  Page page;
  const RunResult result = run_of(6, 0.01);
  page.add(result, to_json(result, false), "run", 0);
  const std::string html = page.html("");
  EXPECT_EQ(occurrences(html, "<svg"), 7u);  // four distributions, the timeline, two over time
  EXPECT_EQ(html.find("Throughput against latency"), html.npos);
  EXPECT_EQ(html.find("<script"), html.npos);
  EXPECT_NE(html.find("&lt;script&gt;alert(1)"), html.npos);
  EXPECT_NE(html.find("org/&lt;b&gt;name"), html.npos);
  EXPECT_NE(html.find("<td>http_status</td><td>500</td><td>1</td>"), html.npos);
  EXPECT_NE(html.find("<td>50.00</td><td>50.00</td><td>50.00</td><td>10.00</td>"), html.npos);
}

TEST(Page, OfASweepDrawsThroughputAgainstLatency) {
  Page page;
  for (int load = 1; load <= 4; load *= 2) {
    const RunResult result = run_of(6 * load, 0.01 * load);
    page.add(result, to_json(result, false), "concurrency " + std::to_string(load), load);
  }
  const std::string html = page.html("Largest: 4");
  EXPECT_NE(html.find("Throughput against latency"), html.npos);
  EXPECT_EQ(occurrences(html, "<details"), 3u);
  EXPECT_EQ(occurrences(html, "<details open=\"open\">"), 1u);
  EXPECT_NE(html.find("<title>concurrency 2: "), html.npos);
  EXPECT_NE(html.find("<p>Largest: 4</p>"), html.npos);
}

TEST(Page, IsBoundedWhateverTheRun) {
  Page page;
  const RunResult result = run_of(20'000, 0.001);
  page.add(result, Json(), "run", 0);
  EXPECT_LT(page.html("").size(), 400'000u);
}

TEST(Page, ARunWithoutASuccessStillHasItsPage) {
  Page page;
  RunResult result = run_of(2, 0.01);
  result.records.erase(result.records.begin());
  result.summary = summarize(result.records, {});
  page.add(result, to_json(result, false), "run", 0);
  EXPECT_EQ(page.html("").find("nan"), std::string::npos);
  EXPECT_NE(page.html("").find("No data."), std::string::npos);
}

TEST(ServerCharts, HaveALineForEachEndpointAndTakeAnyJson) {
  const auto metrics = parse_json(
      R"([{"name":"running","unit":"requests","endpoint":"http://a","points":[[0,1],[1,3]]},
          {"name":"running","unit":"requests","endpoint":"http://b","points":[[0,2],[1,"x"],[2],7]},
          {"name":"kv","unit":"%","endpoint":"http://a","points":[[0,null],[1,50]]},
          {"unit":"%"}, 5])",
      "test");
  ASSERT_TRUE(metrics);
  const std::string charts = server_charts(*metrics);
  EXPECT_EQ(occurrences(charts, "<svg"), 2u);
  EXPECT_EQ(occurrences(charts, "<li>"), 2u);
  EXPECT_TRUE(server_charts(Json()).empty());
}

TEST(Distribution, FollowsThePercentiles) {
  const auto points = distribution_of(Samples(std::vector<double>{0, 10}));
  ASSERT_GT(points.size(), 200u);
  EXPECT_EQ(points.front().x, 0);
  EXPECT_EQ(points.back().x, 10);
  EXPECT_EQ(points.back().y, 100);
  for (const auto& point : points) EXPECT_NEAR(point.x, point.y / 10, 1e-9);
  EXPECT_TRUE(distribution_of(Samples()).empty());
}

}  // namespace
}  // namespace plimsoll::bench
