// SPDX-License-Identifier: Apache-2.0
// What is each figure of a reply? Timetables replayed into the reader at exact times, so that every value is
// exact too; among them public reports about load clients that had it wrong (data/cases/bench).
#include <gtest/gtest.h>

#include "artifact/artifact.h"
#include "base/mapped_file.h"
#include "bench/bench.h"
#include "bench/reply.h"
#include "bench/summary.h"
#include "tests/bench/timetable_server.h"
#include "tests/testing/golden.h"
#include "text/text.h"
#include "workload/workload.h"

namespace plimsoll::bench {
namespace {

/// What a client that is never late would record of `script`, sent at `at_s`.
RequestRecord replay(const Script& script, std::int64_t index, double at_s,
                     const text::Tokenizer* tokenizer = nullptr) {
  RequestRecord record;
  record.index = index;
  record.scheduled_s = record.eligible_s = record.sent_s = at_s;
  ReplyReader reader(record, ReplyFormat::kOpenai);
  double end_s = at_s;
  if (script.status != 200) {
    reader.head(script.status, "application/json", at_s);
    reader.body(script.body, at_s);
    reader.end(at_s);
  } else {
    if (!script.steps.empty()) reader.head(200, "text/event-stream", at_s);
    for (const Step& step : script.steps) {
      end_s = at_s + step.at_ms / 1e3;
      reader.body("data: " + step.data + "\n\n", end_s);
    }
    if (script.is_cut)
      reader.fail(ErrorKind::kEarlyClose, "the connection closed", end_s);
    else
      reader.end(end_s);
  }
  count_tokens(record, tokenizer);
  return record;
}

/// One after the other, a second apart.
Summary summary_of(const std::vector<Script>& scripts, const text::Tokenizer* tokenizer = nullptr,
                   std::vector<Goal> goals = {}) {
  std::vector<RequestRecord> records;
  for (const Script& script : scripts)
    records.push_back(replay(script, std::ssize(records), static_cast<double>(records.size()), tokenizer));
  RunFacts facts;
  facts.duration_s = static_cast<double>(records.size());
  facts.goals = std::move(goals);
  return summarize(records, facts);
}

/// The replies of a public case: [{"status", "events": [[ms, {...}]], "done"} or {"close_ms"}].
std::vector<Script> case_of(const std::string& number) {
  const std::string path = testing::data_path("cases/bench/" + number + ".json");
  const Json replies = *parse_json(*read_file(path, 1 << 20), path);
  std::vector<Script> scripts;
  for (const Json& reply : replies.items()) {
    Script script;
    script.status = static_cast<int>(reply["status"].as_integer().value_or(200));
    script.is_cut = reply.contains("close_ms");
    if (script.status != 200) script.body = R"({"error":{"message":"boom","type":"server_error"}})";
    for (const Json& event : reply["events"].items())
      script.steps.push_back({static_cast<int>(*event.items()[0].as_integer()), dump(event.items()[1])});
    if (script.status == 200 && !script.is_cut && reply["done"].as_bool().value_or(true))
      script.steps.push_back({script.steps.empty() ? 0 : script.steps.back().at_ms, "[DONE]"});
    scripts.push_back(std::move(script));
  }
  return scripts;
}

constexpr double kTolerance = 1e-6;  // ms; sums of doubles near 10 s

TEST(Cases, FailedRequestsAreOutOfTheFigures) {
  const Summary s = summary_of(case_of("47"));
  EXPECT_EQ(s.completed, 7);
  EXPECT_EQ(s.failed, 3);
  EXPECT_EQ(s.output_tokens, 77);
  for (const double p : {0.0, 50.0, 100.0}) {
    EXPECT_NEAR(*s.of(Metric::kTtft).at(p), 100, kTolerance);
    EXPECT_NEAR(*s.of(Metric::kItl).at(p), 20, kTolerance);
    EXPECT_NEAR(*s.of(Metric::kE2el).at(p), 300, kTolerance);
  }
  EXPECT_EQ(s.of(Metric::kTtft).count(), 7);
  ASSERT_EQ(s.errors.size(), 3u);
  EXPECT_EQ(s.errors[0].kind, ErrorKind::kHttpStatus);
  EXPECT_EQ(s.errors[0].status, 500);
  EXPECT_NE(s.errors[0].first_body.find("boom"), std::string::npos);
  EXPECT_EQ(s.errors[1].kind, ErrorKind::kEarlyClose);  // closed before any answer
  EXPECT_EQ(s.errors[1].status, 0);
  EXPECT_EQ(s.errors[2].kind, ErrorKind::kEarlyClose);  // a stream that ends without saying so
  EXPECT_EQ(s.errors[2].status, 200);
}

TEST(Cases, RepliesOfNoneAndOneTokenHaveOnlyTheFiguresTheyHave) {
  const Summary s = summary_of(case_of("48"));
  EXPECT_EQ(s.completed, 4);
  EXPECT_EQ(s.output_tokens, 14);
  EXPECT_EQ(s.of(Metric::kTtft).count(), 3);
  EXPECT_NEAR(*s.of(Metric::kTtft).mean(), 40, kTolerance);
  EXPECT_EQ(s.of(Metric::kTpot).count(), 2);
  EXPECT_NEAR(*s.of(Metric::kTpot).mean(), 55, kTolerance);
  EXPECT_EQ(s.token_gap_ms.count(), 11);
  EXPECT_NEAR(*s.token_gap_ms.mean(), 200.0 / 11, kTolerance);
}

TEST(Cases, ThinkingCountsFromItsFirstToken) {
  const Summary s = summary_of(case_of("49"));
  EXPECT_EQ(s.completed, 2);
  EXPECT_EQ(s.output_tokens, 20);
  EXPECT_NEAR(*s.of(Metric::kTtft).at(0), 50, kTolerance);
  EXPECT_NEAR(*s.of(Metric::kTtft).at(100), 50, kTolerance);
  EXPECT_NEAR(*s.ttft_answer_ms.at(0), 300, kTolerance);
  EXPECT_NEAR(*s.ttft_answer_ms.at(100), 300, kTolerance);
}

TEST(Cases, ArrivalsDoNotDrift) {
  const auto times = workload::arrival_times({200, 50, std::numeric_limits<double>::infinity(), 0, {}});
  EXPECT_NEAR(times.back(), 3.98, 1e-9);
  for (std::size_t k = 0; k < times.size(); ++k) EXPECT_NEAR(times[k], static_cast<double>(k) / 50, 1e-9);
  const Summary s = summary_of(case_of("50"));
  EXPECT_NEAR(*s.of(Metric::kTtft).mean(), 20, kTolerance);
}

TEST(Cases, TokensAreThoseOfTheUsageWhereThereIsOne) {
  auto scripts = case_of("52");
  const Summary counted = summary_of(scripts);
  EXPECT_EQ(counted.output_tokens, 10);
  EXPECT_EQ(counted.count_source, CountSource::kUsage);
  EXPECT_NEAR(*counted.of(Metric::kTpot).mean(), 10, kTolerance);

  const auto artifact =
      artifact::open(testing::data_path("cases/long_runs"), {.need = artifact::Need::kText});
  ASSERT_TRUE(artifact);
  const auto tokenizer = text::load_tokenizer(**artifact);
  ASSERT_TRUE(tokenizer);
  std::erase_if(scripts.front().steps,
                [](const Step& step) { return step.data.find("usage") != step.data.npos; });
  const Summary guessed = summary_of(scripts, tokenizer->get());
  EXPECT_EQ(guessed.output_tokens, 5);
  EXPECT_EQ(guessed.count_source, CountSource::kTokenizer);
  EXPECT_EQ(summary_of(scripts).count_source, CountSource::kChunks);
}

TEST(Definitions, TheRoleChunkIsNoToken) {
  Script early;
  early.steps = {{5, role_event()},
                 {50, content_event("a")},
                 {60, content_event("b")},
                 {60, usage_event(3, 2)},
                 {60, "[DONE]"}};
  Script late = early;
  late.steps[0].at_ms = 50;
  for (const Script& script : {early, late}) {
    const Summary s = summary_of({script});
    EXPECT_NEAR(*s.of(Metric::kTtft).mean(), 50, kTolerance);
    EXPECT_EQ(s.of(Metric::kItl).count(), 1);
    EXPECT_NEAR(*s.of(Metric::kTpot).mean(), 10, kTolerance);
  }
}

TEST(Definitions, ATotalBesideTheFinishReasonIsNoToken) {
  for (const bool is_chat : {false, true}) {
    Script script;
    for (int i = 0; i < 10; ++i)
      script.steps.push_back({50 + 10 * i, is_chat ? content_event("a ") : text_event("a ")});
    script.steps.push_back(
        {340,
         is_chat
             ? R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"completion_tokens":10}})"
             : R"({"choices":[{"index":0,"text":"","finish_reason":"stop"}],"usage":{"completion_tokens":10}})"});
    script.steps.push_back({340, "[DONE]"});
    const Summary s = summary_of({script});
    EXPECT_EQ(s.output_tokens, 10);
    EXPECT_NEAR(*s.of(Metric::kTpot).mean(), 10, kTolerance);
    EXPECT_NEAR(*s.of(Metric::kE2el).mean(), 140, kTolerance);
    EXPECT_EQ(s.of(Metric::kItl).count(), 9);
    EXPECT_EQ(s.stalls, 0);
  }
}

TEST(Definitions, ACountOfNoneBesideTextIsNoCount) {
  Script script;
  for (int i = 0; i < 3; ++i) script.steps.push_back({50 + 10 * i, text_event(" a")});
  script.steps.push_back({70, usage_event(3, 0)});
  script.steps.push_back({70, "[DONE]"});
  const Summary s = summary_of({script});
  EXPECT_EQ(s.output_tokens, 3);
  EXPECT_EQ(s.count_source, CountSource::kChunks);
  EXPECT_NEAR(*s.of(Metric::kTtft).mean(), 50, kTolerance);
}

TEST(Definitions, FourTokensInAChunkShareItsGap) {
  Script script;
  for (int i = 0; i < 5; ++i) script.steps.push_back({50 + 40 * i, text_event(" a b c d")});
  script.steps.push_back({210, usage_event(3, 20)});
  script.steps.push_back({210, "[DONE]"});
  const Summary s = summary_of({script});
  EXPECT_EQ(s.output_tokens, 20);
  EXPECT_EQ(s.of(Metric::kItl).count(), 4);  // vLLM's, per chunk
  EXPECT_NEAR(*s.of(Metric::kItl).mean(), 40, kTolerance);
  EXPECT_EQ(s.token_gap_ms.count(), 16);
  EXPECT_NEAR(*s.token_gap_ms.at(0), 10, kTolerance);
  EXPECT_NEAR(*s.token_gap_ms.at(100), 10, kTolerance);
  EXPECT_NEAR(*s.of(Metric::kTpot).mean(), 160.0 / 19, kTolerance);
  EXPECT_EQ(s.peak_output_tokens_per_window, 20);  // tokens, not chunks
}

TEST(Definitions, OneRequestInTenMayFail) {
  std::vector<Script> scripts;
  for (int i = 0; i < 40; ++i) {
    Script script = completion(11, 50, 10);
    if (i % 10 == 9) {
      script.status = 500;
      script.body = R"({"error":{"message":"injected"}})";
    }
    scripts.push_back(std::move(script));
  }
  const Summary s = summary_of(scripts, nullptr, {{Metric::kTtft, 60}});
  EXPECT_EQ(s.completed, 36);
  EXPECT_EQ(s.failed, 4);
  EXPECT_EQ(s.output_tokens, 36 * 11);
  EXPECT_EQ(s.of(Metric::kE2el).count(), 36);
  EXPECT_NEAR(*s.of(Metric::kE2el).mean(), 150, kTolerance);
  EXPECT_EQ(s.good, 36);  // of 40 that were sent
  ASSERT_EQ(s.errors.size(), 1u);
  EXPECT_EQ(s.errors[0].count, 4);
  EXPECT_NE(s.errors[0].first_body.find("injected"), std::string::npos);
}

TEST(Definitions, AnEarlyCloseFailsAndAStallIsSeen) {
  Script cut = completion(5, 50, 10);
  cut.steps.resize(3);
  cut.is_cut = true;
  Script stalled = completion(10, 50, 10);
  for (std::size_t i = 5; i < stalled.steps.size(); ++i) stalled.steps[i].at_ms += 300;
  const Summary s = summary_of({cut, stalled});
  EXPECT_EQ(s.failed, 1);
  EXPECT_EQ(s.errors[0].kind, ErrorKind::kEarlyClose);
  EXPECT_EQ(s.of(Metric::kTtft).count(), 1);
  EXPECT_EQ(s.stalls, 1);
  EXPECT_NEAR(*s.longest_gap_ms, 310, kTolerance);
  EXPECT_NEAR(*s.of(Metric::kTpot).mean(), (9 * 10 + 300) / 9.0, kTolerance);
}

}  // namespace
}  // namespace plimsoll::bench
