// SPDX-License-Identifier: Apache-2.0
#include "bench/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "base/mapped_file.h"
#include "bench/bench.h"
#include "tests/testing/golden.h"

namespace plimsoll::bench {
namespace {

/// A result file of vLLM's client: the golden list of its keys with arrays for four requests, of which the
/// third failed midway and the fourth never began.
std::string vllm_result() {
  auto keys = read_file(testing::golden_path("http/vllm_result_keys_sample.json"));
  EXPECT_TRUE(keys);
  Json document = *parse_json(*keys, "keys");
  const auto set = [&](const char* key, const char* json) { document.set(key, *parse_json(json, key)); };
  document.set("backend", "openai");
  document.set("request_rate", "inf");
  set("input_lens", "[51,51,51,0]");
  set("output_lens", "[3,2,0,0]");
  set("ttfts", "[0.050,0.054,0.051,0.0]");
  set("itls", "[[0.01,0.012],[0.02],[],[]]");
  set("latencies", "[0.072,0.074,0.0,0.0]");
  set("errors", R"(["","","Internal Server Error","boom"])");
  return dump(document);
}

ResultFile read_well(const std::string& text, const std::string& path = "r.json") {
  auto file = read_result(text, path);
  EXPECT_TRUE(file) << (file ? "" : file.error().describe());
  return file ? std::move(*file) : ResultFile{};
}

TEST(ResultFile, VllmsFailuresAreNoFigures) {
  const ResultFile file = read_well(vllm_result());
  EXPECT_FALSE(file.is_ours);
  EXPECT_EQ(file.latencies[0].by_request, (Clusters{{50}, {54}}));
  ASSERT_EQ(file.latencies[1].by_request.size(), 2u);
  EXPECT_NEAR(file.latencies[1].by_request[0][0], 11, 1e-9);
  EXPECT_NEAR(file.latencies[1].by_request[1][0], 20, 1e-9);
  EXPECT_EQ(file.latencies[2].by_request, (Clusters{{10, 12}, {20}}));
  EXPECT_EQ(file.latencies[3].by_request.size(), 2u);
  EXPECT_NEAR(*file.latencies[0].stated[0], 54.843, 1e-3);  // as the file states it
  EXPECT_NEAR(*file.latencies[3].stated[2], 1044.018, 1e-3);
}

TEST(ResultFile, ReadsWhatVllmsClientWrote) {
  for (const char* name : {"vllm_result.json", "vllm_result_short.json"}) {
    const auto text = read_file(testing::data_path(std::string("bench/") + name));
    ASSERT_TRUE(text) << name;
    const ResultFile file = read_well(*text, name);
    EXPECT_FALSE(file.is_ours);
    EXPECT_TRUE(file.latencies[0].stated[0]);
    const bool is_detailed = file.document.contains("ttfts");
    // Of ten requests one failed, and stands as 0 in the arrays.
    EXPECT_EQ(file.latencies[0].by_request.size(), is_detailed ? 9u : 0u) << name;
    EXPECT_EQ(file.latencies[3].by_request.size(), 9u) << name;
    const auto figures = figures_of(file.latencies[0].by_request);
    if (is_detailed) {
      EXPECT_NEAR((*figures)[0], *file.latencies[0].stated[0], 1e-6);
      EXPECT_NEAR((*figures)[2], *file.latencies[0].stated[2], 1e-6);
    }
  }
}

RunResult our_run() {
  RunResult result;
  for (int i = 0; i < 3; ++i) {
    RequestRecord r;
    r.sent_s = r.scheduled_s = i;
    r.first_token_s = i + 0.05;
    r.chunks = {{i + 0.05, 1, 1, false}, {i + 0.06, 1, 1, false}};
    r.last_token_s = r.done_s = i + 0.06;
    r.output_tokens = 2;
    if (i == 2) r.error = ErrorKind::kTimeout;
    result.records.push_back(r);
  }
  RunFacts facts;
  facts.duration_s = 3;
  result.summary = summarize(result.records, facts);
  return result;
}

TEST(ResultFile, ReadsOurs) {
  for (const bool is_detailed : {true, false}) {
    const ResultFile file = read_well(dump(to_json(our_run(), is_detailed)));
    EXPECT_TRUE(file.is_ours);
    EXPECT_EQ(file.latencies[0].by_request.size(), is_detailed ? 2u : 0u);
    EXPECT_EQ(file.latencies[3].by_request.size(), 2u);  // "latencies" always stay, as in vLLM
    EXPECT_NEAR(*file.latencies[0].stated[0], 50, 1e-6);
  }
}

TEST(ResultFile, TakesTheLastOfAppendedResults) {
  const ResultFile file = read_well(dump(to_json(our_run(), true)) + "\n\n" + vllm_result() + "\n");
  EXPECT_FALSE(file.is_ours);
}

TEST(ResultFile, RefusesWhatIsNone) {
  for (const char* text : {"", "{}", "[]", "5", "{\"duration\":1}", "{\"duration\":\"x\",\"completed\":1}",
                           "{\"sweep\":[]}", "{\"search\":{}}", "{\"duration\":1,\"completed\""}) {
    const auto refused = read_result(text, "a.json");
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kMalformed);
  }
  // Arrays of any shape are read without harm.
  read_well(R"({"duration":1,"completed":1,"ttfts":[null,"x",[1],-1],"itls":5,"latencies":{},"errors":[1]})");
}

Clusters normal(std::size_t n, double mean, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> values(mean, 10);
  Clusters clusters;
  for (std::size_t i = 0; i < n; ++i) clusters.push_back({values(random)});
  return clusters;
}

TEST(Resample, FindsThePlainFigures) {
  const auto figures = figures_of({{1, 2}, {3}, {4}});
  ASSERT_TRUE(figures);
  EXPECT_EQ((*figures)[0], 2.5);
  EXPECT_EQ((*figures)[1], 2.5);
  EXPECT_NEAR((*figures)[2], 3.97, 1e-12);  // numpy.percentile([1,2,3,4], 99)
  EXPECT_FALSE(figures_of({}));
}

TEST(Resample, IntervalOfAMeanIsThatOfTheory) {
  const auto found = resample_difference(normal(400, 100, 1), normal(400, 103, 2), 7);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->num_resamples, 10'000);
  // 1.96 * 10 * sqrt(2 / 400) = 1.386 to both sides; the samples' own deviations are within 7 % of 10.
  const Interval mean = found->difference[0];
  EXPECT_NEAR((mean.high - mean.low) / 2, 1.386, 0.12);
  EXPECT_GT(mean.low, 0);
}

TEST(Resample, IsTheSameForTheSameSeed) {
  const auto a = normal(50, 100, 1);
  const auto b = normal(50, 100, 2);
  EXPECT_EQ(resample_difference(a, b, 3)->difference[2].low, resample_difference(a, b, 3)->difference[2].low);
  EXPECT_NE(resample_difference(a, b, 3)->difference[0].low, resample_difference(a, b, 4)->difference[0].low);
}

TEST(Resample, GapsOfARequestAreDrawnTogether) {
  // Ten requests of 100 equal gaps each hold ten independent values, not a thousand.
  Clusters a = normal(10, 100, 5);
  Clusters b = normal(10, 100, 6);
  const auto lone = resample_difference(a, b, 1);
  for (Clusters* clusters : {&a, &b})
    for (auto& values : *clusters) values.assign(100, values.front());
  const auto many = resample_difference(a, b, 1);
  EXPECT_NEAR(many->difference[0].low, lone->difference[0].low, 1e-6);
}

TEST(Resample, NeedsTwoRequestsAndBoundsItsWork) {
  EXPECT_FALSE(resample_difference({{1}}, {{1}, {2}}, 1));
  EXPECT_FALSE(resample_difference({}, {}, 1));
  Clusters large(4, std::vector<double>(25'000, 1.0));
  const auto found = resample_difference(large, large, 1);
  EXPECT_EQ(found->num_resamples, 500);
  EXPECT_EQ(found->difference[0].low, 0);
}

Json file_with_ttfts(const Clusters& values) {
  Json document = Json::object({{"duration", 1.0}, {"completed", 100}, {"failed", 0}, {"backend", "openai"}});
  Json ttfts = Json::array();
  for (const auto& value : values) ttfts.push_back(value[0] / 1e3);
  return document.set("ttfts", std::move(ttfts));
}

const Difference* row_of(const Compared& compared, const char* metric, const char* statistic) {
  for (const Difference& row : compared.differences)
    if (row.metric == metric && row.statistic == statistic) return &row;
  return nullptr;
}

TEST(Compare, TellsADifferenceFromNoise) {
  const ResultFile a = read_well(dump(file_with_ttfts(normal(200, 100, 1))), "a.json");
  const ResultFile same = read_well(dump(file_with_ttfts(normal(200, 100, 9))), "b.json");
  const ResultFile slow = read_well(dump(file_with_ttfts(normal(200, 120, 3))), "c.json");
  const Compared noise = compare(a, same, 0);
  ASSERT_TRUE(row_of(noise, "ttft", "mean"));
  EXPECT_EQ(row_of(noise, "ttft", "mean")->is_beyond_noise(), false);
  const Compared change = compare(a, slow, 0);
  EXPECT_EQ(row_of(change, "ttft", "mean")->is_beyond_noise(), true);
  EXPECT_NEAR(*row_of(change, "ttft", "mean")->percent(), 20, 3);
  EXPECT_FALSE(row_of(change, "duration", "")->is_beyond_noise());
  EXPECT_FALSE(row_of(change, "e2el", "mean"));
  const std::string text = to_text(change, a, slow);
  EXPECT_NE(text.find("worse"), text.npos) << text;
  EXPECT_NE(to_text(compare(slow, a, 0), slow, a).find("better"), std::string::npos);
  EXPECT_NE(to_text(noise, a, same).find("within noise"), std::string::npos);
}

TEST(Compare, SaysWhatCannotBeHeldAgainstEachOther) {
  const Json detailed = file_with_ttfts(normal(5, 100, 1));
  Json stated = Json::object({{"duration", 2.0},
                              {"completed", 9},
                              {"backend", "openai-chat"},
                              {"num_prompts", 9},
                              {"mean_ttft_ms", 90.0}});
  const ResultFile a = read_well(dump(detailed), "a.json");
  const ResultFile b = read_well(dump(stated), "b.json");
  const Compared compared = compare(a, b, 0);
  std::string all;
  for (const std::string& remark : compared.remarks) all += remark + "\n";
  for (const char* part : {"num_prompts differs: null and 9", "b.json has no figures per request",
                           "role chunk", "a.json has 5 requests"})
    EXPECT_NE(all.find(part), all.npos) << part << "\n" << all;
  const Difference* mean = row_of(compared, "ttft", "mean");
  ASSERT_TRUE(mean);
  EXPECT_FALSE(mean->a);  // a file's figure from its arrays is not held against one that is only stated
  EXPECT_EQ(mean->b, 90);
  EXPECT_FALSE(mean->interval);
  const Json json = to_json(compared, a, b);
  EXPECT_EQ(*json["schema"].as_string(), "plimsoll.bench_compare/1");
  EXPECT_EQ(json["resamples"].as_integer(), 0);
}

}  // namespace
}  // namespace plimsoll::bench
