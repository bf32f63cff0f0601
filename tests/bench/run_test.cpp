// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

#include "bench/bench.h"
#include "tests/bench/timetable_server.h"

namespace plimsoll::bench {
namespace {

Options small_load(const TimetableServer& server, std::int64_t num_prompts) {
  Options options;
  options.base_urls = {server.url()};
  options.input_tokens = 8;
  options.output_tokens = 4;
  options.num_prompts = num_prompts;
  options.request_timeout = std::chrono::seconds(20);
  return options;
}

RunResult run_well(const Options& options) {
  auto result = run(options, nullptr);
  EXPECT_TRUE(result) << (result ? "" : result.error().describe());
  return result ? std::move(*result) : RunResult{};
}

void expect_ordered(const RequestRecord& r) {
  EXPECT_LE(r.scheduled_s, r.eligible_s);
  EXPECT_LE(r.eligible_s, r.sent_s);
  EXPECT_LE(r.sent_s, *r.headers_s);
  EXPECT_LE(*r.headers_s, *r.first_byte_s);
  EXPECT_LE(*r.first_byte_s, *r.first_token_s);
  EXPECT_LE(*r.first_token_s, *r.last_token_s);
  EXPECT_LE(*r.last_token_s, r.done_s);
  EXPECT_TRUE(std::is_sorted(r.chunks.begin(), r.chunks.end(),
                             [](const Chunk& a, const Chunk& b) { return a.at_s < b.at_s; }));
}

TEST(Run, MeasuresEveryTokenOfEveryRequest) {
  TimetableServer server([](int, const Json&) { return completion(4); });
  Options options = small_load(server, 12);
  options.max_concurrency = 3;
  options.ignore_eos = true;
  options.headers = {{"X-Token", "secret"}};
  std::vector<std::int64_t> seen;
  const auto result = run(options, [&](const Progress& p) { seen.push_back(p.completed + p.failed); });
  ASSERT_TRUE(result);
  EXPECT_EQ(result->options.model, "toy");  // of /v1/models
  EXPECT_EQ(result->summary.completed, 12);
  EXPECT_EQ(result->summary.failed, 0);
  EXPECT_EQ(result->summary.output_tokens, 48);
  EXPECT_EQ(result->summary.input_tokens, 60);  // the server's count
  EXPECT_EQ(result->summary.of(Metric::kItl).count(), 36);
  EXPECT_LE(result->summary.peak_concurrency, 3);
  EXPECT_LE(server.peak(), 3);
  for (const RequestRecord& record : result->records) expect_ordered(record);
  EXPECT_TRUE(std::is_sorted(seen.begin(), seen.end()));
  EXPECT_EQ(seen.back(), 12);

  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 12u);
  std::set<std::string> prompts;
  for (const Json& request : requests) prompts.insert(*request["prompt"].as_string());
  EXPECT_EQ(prompts.size(), 12u);
  const Json& first = requests.front();
  EXPECT_EQ(*first["model"].as_string(), "toy");
  EXPECT_EQ(first["max_tokens"].as_integer(), 4);
  EXPECT_EQ(first["stream"].as_bool(), true);
  EXPECT_EQ(first["ignore_eos"].as_bool(), true);
  EXPECT_EQ(first["stream_options"]["include_usage"].as_bool(), true);
  EXPECT_EQ(http::header(server.headers().front(), "x-token"), "secret");
  // What was given as a header is in no output.
  for (const std::string& text : {dump(to_json(*result, true)), to_report(*result), to_request_log(*result)})
    EXPECT_EQ(text.find("secret"), std::string::npos);
}

TEST(Run, ChatsWaitForARealToken) {
  TimetableServer server([](int, const Json&) {
    Script script;
    script.steps = {{0, role_event()},
                    {8, content_event("a")},
                    {9, content_event("b")},
                    {9, usage_event(3, 2)},
                    {9, "[DONE]"}};
    return script;
  });
  Options options = small_load(server, 3);
  options.backend = Backend::kOpenaiChat;
  options.model = "named";
  const RunResult result = run_well(options);
  EXPECT_EQ(result.summary.completed, 3);
  EXPECT_EQ(result.summary.output_tokens, 6);
  for (const RequestRecord& record : result.records) {
    EXPECT_EQ(record.chunks.size(), 2u);
    EXPECT_EQ(record.text, "ab");
    EXPECT_LE(*record.first_byte_s, *record.first_token_s);
  }
  const Json request = server.requests().front();
  EXPECT_EQ(*request["model"].as_string(), "named");
  EXPECT_EQ(*request.at_pointer("/messages/0/role").as_string(), "user");
  EXPECT_EQ(request["max_completion_tokens"].as_integer(), 4);
}

TEST(Run, CountsFailuresByKindAndKeepsThemOutOfTheFigures) {
  TimetableServer server([](int number, const Json&) {
    Script script = completion(11, 1, 1);
    if (number == 3) script = {.status = 500, .body = "injected", .steps = {}};
    if (number == 5) script.is_cut = true, script.steps.resize(4);
    if (number == 6) script.steps = {{1, role_event()}};
    if (number == 7)
      script.steps = {{1, text_event("a")}, {2, R"({"error":{"message":"boom"}})"}, {2, "[DONE]"}};
    if (number == 8) script.steps = {{1, "{broken"}};
    if (number == 9) script.is_dead = true;
    return script;
  });
  Options options = small_load(server, 12);
  options.max_concurrency = 1;
  options.request_timeout = std::chrono::milliseconds(1500);
  const RunResult result = run_well(options);
  EXPECT_EQ(result.summary.completed, 6);
  EXPECT_EQ(result.summary.failed, 6);
  EXPECT_EQ(result.summary.output_tokens, 66);
  EXPECT_EQ(result.summary.of(Metric::kTtft).count(), 6);
  std::map<std::string, std::int64_t> kinds;
  for (const ErrorCount& error : result.summary.errors)
    kinds[std::string(to_string(error.kind))] += error.count;
  const std::map<std::string, std::int64_t> expected = {
      {"http_status", 1}, {"early_close", 2}, {"error_event", 1}, {"bad_stream", 1}, {"timeout", 1}};
  EXPECT_EQ(kinds, expected);
  const Json own = to_json(result, true)["plimsoll"];
  EXPECT_EQ(*own.at_pointer("/errors/0/kind").as_string(), "http_status");
  EXPECT_EQ(own.at_pointer("/errors/0/status").as_integer(), 500);
  EXPECT_EQ(*own.at_pointer("/errors/0/first_body").as_string(), "injected");
}

TEST(Run, HoldsTwoHundredStreamsAndCountsTheirPeak) {
  TimetableServer server([](int, const Json&) { return completion(20, 60, 2); });
  const RunResult result = run_well(small_load(server, 200));
  EXPECT_EQ(result.summary.completed, 200);
  EXPECT_EQ(result.summary.output_tokens, 4000);
  EXPECT_GE(result.summary.peak_concurrency, server.peak());  // a request is under way before it is answered
  EXPECT_LE(result.summary.peak_concurrency, 200);
  for (const RequestRecord& record : result.records) EXPECT_EQ(record.chunks.size(), 20u);
}

TEST(Run, SendsOnAnAbsoluteScheduleAndSaysHowLate) {
  TimetableServer server([](int, const Json&) { return completion(1); });
  Options options = small_load(server, 40);
  options.request_rate = 400;
  options.burstiness = std::numeric_limits<double>::infinity();
  const RunResult result = run_well(options);
  for (const RequestRecord& record : result.records) {
    EXPECT_DOUBLE_EQ(record.scheduled_s, static_cast<double>(record.index) / 400);
    EXPECT_GE(record.sent_s, record.scheduled_s);
  }
  EXPECT_EQ(result.summary.send_lag_ms.count(), 40);
  EXPECT_TRUE(result.summary.achieved_rate);
}

TEST(Run, WarmUpsHavePromptsOfTheirOwnAndAreNotCounted) {
  TimetableServer server([](int, const Json&) { return completion(2); });
  Options options = small_load(server, 4);
  options.num_warmups = 3;
  const RunResult result = run_well(options);
  EXPECT_EQ(result.summary.completed, 4);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 7u);
  std::set<std::string> prompts;
  for (const Json& request : requests) prompts.insert(*request["prompt"].as_string());
  EXPECT_EQ(prompts.size(), 7u);
}

TEST(Run, AnEndpointThatIsNotThereIsANetworkError) {
  std::string gone;
  {
    TimetableServer server([](int, const Json&) { return completion(1); });
    gone = server.url();
  }
  Options options;
  options.base_urls = {gone};
  options.num_prompts = 3;
  const auto without_model = run(options, nullptr);
  ASSERT_FALSE(without_model);
  EXPECT_EQ(without_model.error().code, ErrorCode::kNetwork);
  options.model = "m";
  const auto with_model = run(options, nullptr);
  ASSERT_FALSE(with_model);
  EXPECT_EQ(with_model.error().code, ErrorCode::kNetwork);
  EXPECT_NE(with_model.error().message.find(gone), std::string::npos);
}

TEST(Run, AHeaderThatCannotBeSentEndsTheRunBeforeItStarts) {
  TimetableServer server([](int, const Json&) { return completion(4); });
  Options options = small_load(server, 3);
  options.model = "toy";
  options.headers = {{"Authorization", "Bearer secret\n"}};
  const auto refused = run(options, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_TRUE(server.requests().empty());
}

TEST(Run, RefusesOptionsThatMakeNoSense) {
  const auto refused = [](auto change) {
    Options options;
    change(options);
    const auto result = run(options, nullptr);
    return !result && result.error().code == ErrorCode::kUsage;
  };
  EXPECT_TRUE(refused([](Options& o) { o.num_prompts = 0; }));
  EXPECT_TRUE(
      refused([](Options& o) { o.num_prompts = 2'000'000'000; }));  // 2,000,000,000 prompts of 1,024 tokens
  EXPECT_TRUE(refused([](Options& o) {
    o.num_prompts = std::numeric_limits<std::int64_t>::max();
    o.num_warmups = 1;
  }));
  EXPECT_TRUE(refused([](Options& o) { o.max_concurrency = 0; }));
  EXPECT_TRUE(refused([](Options& o) { o.dataset_output_tokens = 0; }));
  EXPECT_TRUE(refused([](Options& o) { o.request_rate = 0; }));
  EXPECT_TRUE(refused([](Options& o) { o.burstiness = -1; }));
  EXPECT_TRUE(refused([](Options& o) { o.base_urls = {"localhost:8000"}; }));
  EXPECT_TRUE(refused([](Options& o) { o.endpoint = "v1/completions"; }));
}

}  // namespace
}  // namespace plimsoll::bench
