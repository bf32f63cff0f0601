// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "base/mapped_file.h"
#include "bench/bench.h"
#include "bench/flags.h"
#include "tests/testing/golden.h"

namespace plimsoll::bench {
namespace {

RunResult sample() {
  RunResult result;
  result.date = "20260102-030405";
  result.options.model = "org/name";
  for (int i = 0; i < 4; ++i) {
    RequestRecord r;
    r.index = i;
    r.sent_s = r.eligible_s = r.scheduled_s = i;
    r.prompt_tokens = 51;
    r.status = 200;
    r.headers_s = i + 0.01;
    r.first_token_s = r.first_answer_s = i + 0.05;
    r.last_token_s = i + 0.07;
    r.done_s = i + 0.08;
    r.chunks = {{i + 0.05, 1, 1, false}, {i + 0.06, 1, 1, false}, {i + 0.07, 1, 1, false}};
    r.output_tokens = 3;
    r.count_source = CountSource::kUsage;
    result.records.push_back(r);
  }
  return result;
}

RunResult with_summary(RunResult result) {
  RunFacts facts;
  facts.duration_s = 4;
  facts.requested_rate = result.options.request_rate;
  facts.goals = result.options.goodput;
  result.summary = summarize(result.records, facts);
  return result;
}

/// Everything before the figure: the label with its padding; rules whole.
std::vector<std::string> labels(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  bool is_inside = false;
  for (std::string line; std::getline(lines, line);) {
    is_inside = is_inside || line.find("Serving Benchmark Result") != line.npos;
    if (!is_inside) continue;
    const bool is_rule = line.starts_with("--") || line.starts_with("==");
    found.push_back(is_rule ? line : line.substr(0, 41));
    if (!is_rule) {
      EXPECT_EQ(line.size(), 51u) << line;
    }
    if (line == std::string(50, '=')) break;
  }
  return found;
}

TEST(Report, IsLineForLineThatOfTheVllmClient) {
  const auto golden = read_file(testing::golden_path("http/vllm_report_sample.txt"));
  ASSERT_TRUE(golden);
  RunResult result = sample();
  result.options.max_concurrency = 1;
  TextFlags flags;
  flags.metrics = "ttft,tpot,itl,e2el";
  flags.percentiles = "50,90,99";
  flags.goodput = {"ttft:500"};
  ASSERT_TRUE(apply(flags, result.options));
  const auto expected = labels(*golden);
  ASSERT_GT(expected.size(), 30u);
  EXPECT_EQ(labels(to_report(with_summary(result))), expected);
}

TEST(Report, PercentilesComeInTheOrderAsked) {
  RunResult result = sample();
  TextFlags flags;
  flags.percentiles = "99,90,99.9";
  ASSERT_TRUE(apply(flags, result.options));
  const std::string text = to_report(with_summary(result));
  const auto at = [&](const char* label) { return text.find(label); };
  EXPECT_LT(at("P99 TTFT (ms):"), at("P90 TTFT (ms):"));
  EXPECT_LT(at("P90 TTFT (ms):"), at("P99.9 TTFT (ms):"));
  EXPECT_EQ(at("End-to-end"), text.npos);
  EXPECT_NE(at("Mean TTFT (ms):                          50.00     \n"), text.npos) << text;
  EXPECT_EQ(at("Request goodput"), text.npos);
}

TEST(Report, SaysBelowTheBlockWhatMakesItDoubtful) {
  RunResult result = sample();
  result.records[3].error = ErrorKind::kHttpStatus;
  result.records[3].status = 503;
  result.records[3].error_text = "queue full\nsecond line";
  for (RequestRecord& record : result.records) record.count_source = CountSource::kChunks;
  const std::string text = to_report(with_summary(result));
  EXPECT_NE(text.find("1 failed: http_status (HTTP 503): queue full\n"), text.npos) << text;
  EXPECT_NE(text.find("tokens are counted as chunks"), text.npos);
}

TEST(ResultJson, HasVllmsKeysAndOurs) {
  RunResult result = sample();
  result.records[3].error = ErrorKind::kConnect;
  result = with_summary(std::move(result));
  const Json json = to_json(result, true);
  for (const char* key : {"date",
                          "endpoint_type",
                          "backend",
                          "label",
                          "model_id",
                          "tokenizer_id",
                          "num_prompts",
                          "request_rate",
                          "burstiness",
                          "max_concurrency",
                          "duration",
                          "completed",
                          "failed",
                          "total_input_tokens",
                          "total_output_tokens",
                          "request_throughput",
                          "request_goodput",
                          "output_throughput",
                          "total_token_throughput",
                          "input_lens",
                          "output_lens",
                          "ttfts",
                          "itls",
                          "latencies",
                          "start_times",
                          "queue_times",
                          "generated_texts",
                          "errors",
                          "max_output_tokens_per_s",
                          "max_concurrent_requests",
                          "rtfx",
                          "mean_ttft_ms",
                          "median_ttft_ms",
                          "std_ttft_ms",
                          "p99_ttft_ms",
                          "mean_tpot_ms",
                          "p99_itl_ms",
                          "plimsoll"})
    EXPECT_TRUE(json.contains(key)) << key;
  EXPECT_EQ(*json["request_rate"].as_string(), "inf");
  EXPECT_TRUE(json["ttfts"].items()[3].is_null());  // a failure has no latency, not one of 0
  EXPECT_TRUE(json["latencies"].items()[3].is_null());
  EXPECT_EQ(json["errors"].size(), 4u);
  EXPECT_NEAR(*json["ttfts"].items()[0].as_double(), 0.05, 1e-12);
  EXPECT_EQ(json["itls"].items()[0].size(), 2u);
  const Json& own = json["plimsoll"];
  for (const char* key : {"errors",
                          "max_concurrent_requests_exact",
                          "token_count_source",
                          "output_tokens_exact",
                          "ttft_ms",
                          "ttft_answer_ms",
                          "itl_ms",
                          "tpot_ms",
                          "e2el_ms",
                          "chunk_gap_ms",
                          "stalls",
                          "requested_rate",
                          "achieved_rate",
                          "interarrival_cv2",
                          "send_lag_ms",
                          "client_limited",
                          "live_tokens",
                          "cached_prompt_tokens",
                          "endpoints",
                          "server_metrics"})
    EXPECT_TRUE(own.contains(key)) << key;
  EXPECT_EQ(own.at_pointer("/ttft_ms/count").as_integer(), 3);
  EXPECT_EQ(*own["token_count_source"].as_string(), "usage");
  const Json brief = to_json(result, false);
  for (const char* key :
       {"input_lens", "output_lens", "start_times", "ttfts", "itls", "generated_texts", "errors"})
    EXPECT_FALSE(brief.contains(key)) << key;
  EXPECT_TRUE(brief.contains("latencies"));
  const auto again = parse_json(dump(json), "result");
  ASSERT_TRUE(again);
  EXPECT_EQ(dump(*again), dump(json));
}

TEST(ResultJson, UndefinedFiguresAreNull) {
  RunResult result = sample();
  for (RequestRecord& record : result.records) record.error = ErrorKind::kTimeout;
  const Json json = to_json(with_summary(result), true);
  EXPECT_TRUE(json["mean_ttft_ms"].is_null());
  EXPECT_TRUE(json.at_pointer("/plimsoll/itl_ms/mean").is_null());
  const std::string text = to_report(with_summary(result));
  EXPECT_NE(text.find("Mean TTFT (ms):                          -         \n"), text.npos);
  EXPECT_EQ(text.find("nan"), text.npos);
}

TEST(RequestLog, HasOneLineForEachRequest) {
  RunResult result = with_summary(sample());
  result.records[0].first_token_s = result.records[0].chunks[0].at_s =
      1.0 / 30;  // more places than are written
  std::istringstream lines(to_request_log(result));
  int number = 0;
  for (std::string line; std::getline(lines, line); ++number) {
    const auto row = parse_json(line, "log");
    ASSERT_TRUE(row);
    EXPECT_EQ((*row)["index"].as_integer(), number);
    EXPECT_EQ((*row)["chunks"].size(), 3u);
    EXPECT_EQ((*row)["chunks"].items()[0].items()[1].as_integer(), 1);
    EXPECT_TRUE((*row)["error"].is_null());
    // A stamp is written to as many places as the chunk it was taken from.
    for (const auto& [stamp, chunk] : {std::pair("first_token_s", 0u), std::pair("last_token_s", 2u)})
      EXPECT_EQ((*row)[stamp].as_double(), (*row)["chunks"].items()[chunk].items()[0].as_double());
  }
  EXPECT_EQ(number, 4);
}

TEST(FileName, IsVllms) {
  RunResult result = sample();
  EXPECT_EQ(default_file_name(result), "openai-infqps-name-20260102-030405.json");
  result.options.request_rate = 2.5;
  result.options.max_concurrency = 8;
  EXPECT_EQ(default_file_name(result), "openai-2.5qps-concurrency8-name-20260102-030405.json");
}

TEST(Report, ARampIsNamedAsVllmDoesAndItsRateShown) {
  RunResult result = sample();
  result.options.ramp = workload::Ramp{workload::RampShape::kLinear, 1, 10};
  result = with_summary(std::move(result));
  EXPECT_EQ(default_file_name(result), "openai-ramp-up-linear-1qps-10qps-name-20260102-030405.json");
  const Json document = to_json(result, false);
  EXPECT_EQ(*document["ramp_up_strategy"].as_string(), "linear");
  EXPECT_EQ(document["ramp_up_start_rps"].as_double(), 1);
  EXPECT_EQ(document["ramp_up_end_rps"].as_double(), 10);
  EXPECT_NE(to_report(result).find("Request rate sent (RPS):                 1.00"), std::string::npos);
}

TEST(FileName, BeginsWithTheLabelAndTheResultKeepsMetadata) {
  RunResult result = with_summary(sample());
  result.options.label = "mine";
  result.options.metadata = {{"tp", "2"}, {"completed", "99"}};
  EXPECT_EQ(default_file_name(result), "mine-infqps-name-20260102-030405.json");
  const Json json = to_json(result, false);
  EXPECT_EQ(*json["label"].as_string(), "mine");
  EXPECT_EQ(*json["tp"].as_string(), "2");
  EXPECT_EQ(json["completed"].as_integer(), 4);  // the run's own figure wins
}

TEST(Flags, ReadTheirLittleLanguages) {
  Options options;
  TextFlags flags;
  flags.backend = "vllm";
  flags.dataset = "sharegpt";
  flags.request_rate = "2.5";
  flags.burstiness = "inf";
  flags.goodput = {"ttft:500", "e2el:3000.5"};
  flags.headers = {"A=b=c", "X: y:z"};
  ASSERT_TRUE(apply(flags, options));
  EXPECT_EQ(options.backend, Backend::kVllm);
  EXPECT_EQ(options.dataset, Dataset::kShareGpt);
  EXPECT_EQ(options.request_rate, 2.5);
  EXPECT_TRUE(std::isinf(options.burstiness));
  ASSERT_EQ(options.goodput.size(), 2u);
  EXPECT_EQ(options.goodput[1].metric, Metric::kE2el);
  EXPECT_EQ(options.headers, (http::Headers{{"A", "b=c"}, {"X", "y:z"}}));
}

TEST(Flags, RefuseWithTheFlagsNameAndNoSecret) {
  const auto where = [](auto change) {
    TextFlags flags;
    Options options;
    change(flags);
    const auto refused = apply(flags, options);
    EXPECT_FALSE(refused);
    EXPECT_EQ(refused.error().describe().find("secret"), std::string::npos);
    return refused ? std::string() : refused.error().where;
  };
  EXPECT_EQ(where([](TextFlags& f) { f.request_rate = "fast"; }), "--request-rate");
  EXPECT_EQ(where([](TextFlags& f) { f.burstiness = "nan"; }), "--burstiness");
  EXPECT_EQ(where([](TextFlags& f) { f.metrics = "ttft,speed"; }), "--percentile-metrics");
  EXPECT_EQ(where([](TextFlags& f) { f.percentiles = "101"; }), "--metric-percentiles");
  EXPECT_EQ(where([](TextFlags& f) { f.goodput = {"client_queue_time:5"}; }), "--goodput");
  EXPECT_EQ(where([](TextFlags& f) { f.headers = {"secret"}; }), "--header");
}

}  // namespace
}  // namespace plimsoll::bench
