// SPDX-License-Identifier: Apache-2.0
// Loads as they reach a server: sessions with their history, traces at their times, ramps.
#include <gtest/gtest.h>

#include <filesystem>
#include <limits>

#include "base/mapped_file.h"
#include "bench/bench.h"
#include "tests/bench/timetable_server.h"

namespace plimsoll::bench {
namespace {

RunResult run_well(const Options& options) {
  auto result = run(options, nullptr);
  EXPECT_TRUE(result) << (result ? "" : result.error().describe());
  return result ? std::move(*result) : RunResult{};
}

TEST(WorkloadRun, ATurnCarriesWhatWasSaidBeforeIt) {
  TimetableServer server([](int, const Json&) { return completion(2); });
  Options options;
  options.base_urls = {server.url()};
  options.input_tokens = 5;
  options.output_tokens = 2;
  options.num_prompts = 3;
  options.num_turns = workload::Distribution::whole(3, 3);
  options.turn_delay_s = *workload::Distribution::parse("0.02", {0, 1, false}, "--turn-delay");
  const RunResult result = run_well(options);
  const auto requests = server.requests();
  ASSERT_EQ(requests.size(), 3u);
  std::string said;
  for (std::size_t turn = 0; turn < 3; ++turn) {
    const RequestRecord& record = result.records[turn];
    said += record.prompt;
    EXPECT_EQ(*requests[turn]["prompt"].as_string(), said);
    said += record.text;
    if (turn > 0) {
      EXPECT_GE(record.sent_s, result.records[turn - 1].done_s + 0.02);
    }
  }
}

TEST(WorkloadRun, ATraceIsSentWholeAtItsOwnTimes) {
  TimetableServer server([](int, const Json&) { return completion(1); });
  Options options;
  options.base_urls = {server.url()};
  options.dataset = Dataset::kTrace;
  options.has_num_prompts = false;
  options.trace_speed = 10;
  options.num_warmups = 2;
  options.dataset_path = (std::filesystem::path(::testing::TempDir()) / "plimsoll_run_trace.csv").string();
  ASSERT_TRUE(write_file(options.dataset_path,
                         "arrived_at,num_prefill_tokens,num_decode_tokens\n7.5,3,1\n7,4,1\n8,5,1\n"));
  const RunResult result = run_well(options);
  ASSERT_EQ(result.records.size(), 3u);
  EXPECT_EQ(result.options.num_prompts, 3);
  EXPECT_EQ(server.requests().size(), 5u);
  for (std::size_t k = 0; k < 3; ++k) {
    EXPECT_NEAR(result.records[k].scheduled_s, static_cast<double>(k) * 0.05, 1e-9);
    EXPECT_FALSE(result.records[k].prompt.empty());
  }
  std::filesystem::remove(options.dataset_path);
}

TEST(WorkloadRun, ARampIsScheduledBeforehand) {
  TimetableServer server([](int, const Json&) { return completion(1); });
  Options options;
  options.base_urls = {server.url()};
  options.input_tokens = 6;
  options.num_prompts = 3;
  options.burstiness = std::numeric_limits<double>::infinity();
  options.ramp = workload::Ramp{workload::RampShape::kLinear, 100, 300};
  const RunResult result = run_well(options);
  ASSERT_EQ(result.records.size(), 3u);
  EXPECT_DOUBLE_EQ(result.records[0].scheduled_s, 0.01);
  EXPECT_DOUBLE_EQ(result.records[1].scheduled_s, 0.015);
}

}  // namespace
}  // namespace plimsoll::bench
