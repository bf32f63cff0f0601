// SPDX-License-Identifier: Apache-2.0
#include "bench/metrics_text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace plimsoll::bench {
namespace {

TEST(MetricsText, SamplesHaveNamesLabelsAndNumbers) {
  std::vector<std::string> seen;
  for_each_sample(
      "# HELP a b\n# TYPE a counter\n\na 1\n  b{x=\"1\",y=\"}\\\"\"} 2.5 1700000000\n"
      "c{le=\"+Inf\"} 3 # {id=\"z\"} 1\nd NaN\ne\nf{open 1\n{} 4\ng +Inf\nh 1x",
      [&](const MetricSample& sample) {
        seen.push_back(std::string(sample.name) + "|" + std::string(sample.labels) + "|" +
                       std::to_string(sample.value));
      });
  const std::vector<std::string> expected = {"a||1.000000", "b|x=\"1\",y=\"}\\\"\"|2.500000",
                                             "c|le=\"+Inf\"|3.000000", "g||inf"};
  EXPECT_EQ(seen, expected);
  EXPECT_EQ(label("x=\"1\",y=\"a\\\"b\\n\"", "y"), "a\"b\n");
  EXPECT_FALSE(label("x=\"1\"", "y"));
  EXPECT_FALSE(label("x=1", "x"));
}

TEST(MetricsText, VllmSumsItsEnginesAndPrefersTheNewerName) {
  const ServerState state = read_metrics(
      "vllm:num_requests_running{engine=\"0\",model_name=\"org/m\"} 3.0\n"
      "vllm:num_requests_running{engine=\"1\",model_name=\"org/m\"} 4.0\n"
      "vllm:num_requests_waiting{engine=\"0\"} 1\n"
      "vllm:gpu_cache_usage_perc{engine=\"0\"} 0.9\n"
      "vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\n"
      "vllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n"
      "vllm:prompt_tokens_total 100\nvllm:generation_tokens_total 50\nvllm:num_preemptions_total 2\n"
      "vllm:prefix_cache_queries_total 80\nvllm:prefix_cache_hits_total 20\n"
      "vllm:gpu_prefix_cache_hits_total 20\n");
  EXPECT_EQ(state.engine, EngineKind::kVllm);
  EXPECT_EQ(state.model, "org/m");
  EXPECT_EQ(state.of(ServerFigure::kRunning), 7);
  EXPECT_EQ(state.of(ServerFigure::kWaiting), 1);
  EXPECT_EQ(state.of(ServerFigure::kKvUsage), 0.5);
  EXPECT_EQ(state.of(ServerFigure::kPromptTokens), 100);
  EXPECT_EQ(state.of(ServerFigure::kGeneratedTokens), 50);
  EXPECT_EQ(state.of(ServerFigure::kPreemptions), 2);
  EXPECT_EQ(state.of(ServerFigure::kPrefixHits), 20);
  EXPECT_EQ(state.of(ServerFigure::kPrefixQueries), 80);
  EXPECT_EQ(read_metrics("vllm:num_requests_running 1\nplimsoll:kv_blocks_total 9\n").engine,
            EngineKind::kPlimsoll);
}

TEST(MetricsText, EveryEngineHasItsOwnNames) {
  const ServerState sglang = read_metrics(
      "sglang:num_running_reqs{model_name=\"m\",priority=\"\"} 5\n"
      "sglang:num_running_reqs{model_name=\"m\",priority=\"1\"} 5\n"
      "sglang:num_queue_reqs 2\nsglang:token_usage 0.28\nsglang:prompt_tokens_total 400\n"
      "sglang:cached_tokens_total{cache_source=\"device\"} 60\n"
      "sglang:cached_tokens_total{cache_source=\"host\"} 40\n");
  EXPECT_EQ(sglang.engine, EngineKind::kSglang);
  EXPECT_EQ(sglang.of(ServerFigure::kRunning), 5);
  EXPECT_EQ(sglang.of(ServerFigure::kPrefixHits), 100);
  EXPECT_EQ(sglang.of(ServerFigure::kPrefixQueries), 400);
  const ServerState llama = read_metrics(
      "llamacpp:requests_processing 4\nllamacpp:requests_deferred 46\nllamacpp:tokens_predicted_total "
      "17029\n");
  EXPECT_EQ(llama.engine, EngineKind::kLlamaCpp);
  EXPECT_EQ(llama.of(ServerFigure::kWaiting), 46);
  EXPECT_FALSE(llama.of(ServerFigure::kKvUsage));
  const ServerState tgi = read_metrics(
      "tgi_batch_current_size 4\ntgi_queue_size 7\ntgi_request_generated_tokens_sum 8123\n"
      "tgi_request_generated_tokens_count 44\n");
  EXPECT_EQ(tgi.engine, EngineKind::kTgi);
  EXPECT_EQ(tgi.of(ServerFigure::kGeneratedTokens), 8123);
  EXPECT_EQ(read_metrics("process_cpu_seconds_total 3\n<html>").engine, EngineKind::kUnknown);
}

Buckets buckets(std::vector<Buckets::Bucket> list) {
  return {std::move(list)};
}
constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(MetricsText, BucketsAddUpOverLabelSets) {
  const ServerState state = read_metrics(
      "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"0.1\"} 1\n"
      "vllm:time_to_first_token_seconds_bucket{engine=\"0\",le=\"+Inf\"} 2\n"
      "vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"0.1\"} 3\n"
      "vllm:time_to_first_token_seconds_bucket{engine=\"1\",le=\"+Inf\"} 3\n"
      "vllm:time_per_output_token_seconds_bucket{le=\"0.5\"} 9\n"
      "vllm:inter_token_latency_seconds_bucket{le=\"0.5\"} 7\n");
  ASSERT_EQ(state.ttft.buckets.size(), 2u);
  EXPECT_EQ(state.ttft.buckets[0].count, 4);
  EXPECT_EQ(state.ttft.buckets[1].count, 5);
  EXPECT_TRUE(std::isinf(state.ttft.buckets[1].upper));
  ASSERT_EQ(state.itl.buckets.size(), 1u);
  EXPECT_EQ(state.itl.buckets[0].count, 7);
  std::string many;
  for (int i = 0; i < 5000; ++i)
    many += "vllm:time_to_first_token_seconds_bucket{le=\"" + std::to_string(i) + "\"} 1\n";
  EXPECT_EQ(read_metrics(many).ttft.buckets.size(), 512u);
}

TEST(MetricsText, PercentilesAreLinearInsideTheBucketOfWhatCameBetween) {
  const Buckets before = buckets({{0.1, 10}, {0.2, 10}, {kInfinity, 10}});
  const Buckets now = buckets({{0.1, 10}, {0.2, 14}, {kInfinity, 18}});
  const auto p25 = quantile_between(before, now, 25);
  ASSERT_TRUE(p25);
  EXPECT_DOUBLE_EQ(p25->value, 0.15);  // the second of four between 0.1 and 0.2
  EXPECT_DOUBLE_EQ(p25->low, 0.1);
  EXPECT_DOUBLE_EQ(p25->high, 0.2);
  const auto p99 = quantile_between(before, now, 99);
  ASSERT_TRUE(p99);
  EXPECT_DOUBLE_EQ(p99->value, 0.2);
  EXPECT_TRUE(std::isinf(p99->high));
  EXPECT_DOUBLE_EQ(quantile_between({}, now, 50)->value, 0.09);
  EXPECT_FALSE(quantile_between(now, now, 50));
  EXPECT_FALSE(quantile_between(now, before, 50));
  EXPECT_FALSE(quantile_between({}, {}, 50));
}

}  // namespace
}  // namespace plimsoll::bench
