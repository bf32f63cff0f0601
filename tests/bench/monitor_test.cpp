// SPDX-License-Identifier: Apache-2.0
#include "bench/monitor.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/top.h"
#include "tests/bench/timetable_server.h"

namespace plimsoll::bench {
namespace {

std::string page(int running, int generated) {
  return "vllm:num_requests_running{model_name=\"\x1b[2J\"} " + std::to_string(running) +
         "\nvllm:generation_tokens_total " + std::to_string(generated) +
         "\nvllm:time_to_first_token_seconds_bucket{le=\"0.1\"} " + std::to_string(generated) +
         "\nvllm:time_to_first_token_seconds_bucket{le=\"+Inf\"} " + std::to_string(generated) + "\n";
}

Script no_script(int, const Json&) {
  return completion(1);
}

TEST(ThinnedSeries, KeepsItsSpanAndHalvesItsPoints) {
  ThinnedSeries series(8);
  for (int i = 0; i < 1000; ++i) series.add(i, 10 * i);
  const auto& points = series.points();
  ASSERT_GE(points.size(), 5u);
  ASSERT_LE(points.size(), 8u);
  EXPECT_EQ(points.front().first, 0);
  const double gap = points[1].first - points[0].first;
  for (std::size_t i = 1; i < points.size(); ++i) EXPECT_EQ(points[i].first - points[i - 1].first, gap);
  EXPECT_GT(points.back().first + gap, 999);
}

TEST(Monitor, SeriesLieOnTheTimeAxisOfTheRun) {
  TimetableServer server(no_script);
  server.set_metrics(page(3, 50));
  MonitorOptions options;
  options.endpoints = {server.url()};
  options.server_pid = ::getpid();
  options.interval = std::chrono::milliseconds(1);
  const auto monitor = Monitor::start(options, std::chrono::steady_clock::now());
  ASSERT_TRUE(monitor);
  const MonitorSeries series = monitor->stop();
  const ServerSeries* running = nullptr;
  for (const ServerSeries& one : series.series)
    if (one.name == "running") running = &one;
  ASSERT_TRUE(running);
  EXPECT_EQ(running->unit, "requests");
  EXPECT_EQ(running->endpoint, server.url());
  ASSERT_GE(running->points.size(), 2u);  // the first and the last sample
  EXPECT_GE(running->points.front().first, 0);
  EXPECT_EQ(running->points.front().second, 3);
  ASSERT_TRUE(series.memory_mean_bytes);
  EXPECT_GT(*series.memory_peak_bytes, 1 << 20);
  EXPECT_EQ(server_metrics_json(series).size(), series.series.size());
  EXPECT_GT(*memory_used_json(series)["mean"].as_double(), 0);
}

TEST(Monitor, AServerWithoutThePageIsAskedOnce) {
  TimetableServer server(no_script);
  MonitorOptions options;
  options.endpoints = {server.url()};
  options.interval = std::chrono::milliseconds(1);
  const auto monitor = Monitor::start(options, std::chrono::steady_clock::now());
  while (server.num_metrics_asked() == 0) std::this_thread::yield();
  EXPECT_TRUE(monitor->stop().series.empty());
  EXPECT_EQ(server.num_metrics_asked(), 1);
  options.metrics = "off";
  EXPECT_FALSE(Monitor::start(options, std::chrono::steady_clock::now()));
  EXPECT_TRUE(memory_used_json({}).is_null());
}

TEST(Monitor, ARunBringsItsServersFigures) {
  TimetableServer server([](int, const Json&) { return completion(2); });
  server.set_metrics(page(1, 4));
  Options options;
  options.base_urls = {server.url()};
  options.input_tokens = 4;
  options.num_prompts = 2;
  options.headers = {{"X-Key", "hidden"}};
  const auto result = run(options, nullptr);
  ASSERT_TRUE(result);
  const Json own = to_json(*result, false)["plimsoll"];
  ASSERT_GE(own["server_metrics"].size(), 2u);
  EXPECT_EQ(*own.at_pointer("/server_metrics/0/endpoint").as_string(), server.url());
  EXPECT_GE(own.at_pointer("/server_metrics/0/points").size(), 2u);
  EXPECT_TRUE(own["memory_used_bytes"].is_null());
  EXPECT_EQ(dump(own).find("hidden"), std::string::npos);
}

TEST(Top, RatesAndPercentilesAreOfTheLastInterval) {
  TimetableServer server(no_script);
  server.set_metrics(page(3, 50));
  TopOptions options;
  options.urls = {server.url().substr(7), server.url() + "/metrics", "http://127.0.0.1:1"};
  options.headers = {{"Authorization", "Bearer hidden"}};
  ASSERT_TRUE(check_top(options));
  Top top(options);
  EXPECT_FALSE(top.refresh().front().generated_rate);
  server.set_metrics(page(4, 70));
  const auto rows = top.refresh();
  ASSERT_EQ(rows.size(), 3u);
  EXPECT_EQ(rows[0].state.of(ServerFigure::kRunning), 4);
  ASSERT_TRUE(rows[0].generated_rate);
  EXPECT_NEAR(*rows[0].generated_rate * *rows[0].interval_s, 20, 1e-6);
  EXPECT_DOUBLE_EQ(rows[0].ttft_p50->value, 0.05);
  EXPECT_EQ(rows[2].problem, "unreachable");
  EXPECT_TRUE(top.was_reached());
  const std::string text = to_text(rows);
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("unreachable"), std::string::npos);
  EXPECT_NE(text.find("~50.0"), std::string::npos);
  const Json document = to_json(rows);
  EXPECT_EQ(document["endpoints"].size(), 3u);
  EXPECT_EQ(document.at_pointer("/endpoints/2/reached").as_bool(), false);
  EXPECT_TRUE(document.at_pointer("/endpoints/2/running").is_null());
  EXPECT_DOUBLE_EQ(*document["basis"]["/endpoints/0/ttft_p50_ms"]["high"].as_double(), 100);
  EXPECT_EQ((dump(document) + text).find("hidden"), std::string::npos);
}

TEST(Top, AServerWithoutThePageIsReachedAndNamed) {
  TimetableServer server(no_script);
  TopOptions options;
  options.urls = {server.url()};
  Top top(options);
  const auto rows = top.refresh();
  EXPECT_EQ(rows.front().problem, "no /metrics (status 404)");
  EXPECT_EQ(rows.front().model, "toy");
  EXPECT_TRUE(top.was_reached());
  options.pids = {1, 2};
  EXPECT_FALSE(check_top(options));
}

}  // namespace
}  // namespace plimsoll::bench
