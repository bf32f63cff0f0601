// SPDX-License-Identifier: Apache-2.0
#include "workload/trace.h"

#include <gtest/gtest.h>

#include "workload/trace_rows.h"

namespace plimsoll::workload {
namespace {

Result<Trace> read(std::string_view text, const TraceOptions& options = {}) {
  return read_trace(text, "trace", options);
}

TEST(Trace, AzureHasDatesOfEitherYear) {
  // Out of order, with a byte order mark, CRLF and a blank line; seven digits as 2023 has, a zone as 2024
  // has.
  const auto trace = read(
      "\xEF\xBB\xBFTIMESTAMP,ContextTokens,GeneratedTokens\r\n"
      "2023-11-16 18:15:47.1805900,4808,10\r\n\r\n"
      "2023-11-16 18:15:46.6805900,3180,8\r\n");
  ASSERT_TRUE(trace) << trace.error().describe();
  EXPECT_EQ(trace->format, TraceFormat::kAzure);
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->requests[0].at_s, 0);
  EXPECT_EQ(trace->requests[0].input_tokens, 3180);
  EXPECT_DOUBLE_EQ(trace->requests[1].at_s, 0.5);
  const auto later = read(
      "TIMESTAMP,ContextTokens,GeneratedTokens\n"
      "2024-05-10 00:00:00.009930+00:00,2162,5\n2024-05-10 02:00:01+02:00,2399,6");
  ASSERT_TRUE(later) << later.error().describe();
  EXPECT_DOUBLE_EQ(later->requests[1].at_s, 0.99007);
}

TEST(Trace, DatesCountInTheGregorianCalendar) {
  constexpr std::int64_t kSecond = 1'000'000'000;
  EXPECT_EQ(nanoseconds_of_date("2000-02-29 00:00:00"), 951'782'400 * kSecond);  // date -u -d ... +%s
  EXPECT_EQ(nanoseconds_of_date("2024-03-01T12:34:56.5Z"), 1'709'296'496 * kSecond + kSecond / 2);
  EXPECT_EQ(nanoseconds_of_date("2023-12-31 23:59:59-01:30"), (1'704'067'199 + 5400) * kSecond);
  for (const char* bad :
       {"", "2023-11-16", "2023-13-01 00:00:00", "2024-02-31 00:00:00", "2023-02-29 00:00:00",
        "2023-04-31 00:00:00", "2023-11-16 24:00:00", "16.11.2023 10:00:00", "2023-11-16 18:15:46.",
        "2023-11-16 18:15:46 x", "2023-11-16 18:15:46+99:00"})
    EXPECT_FALSE(nanoseconds_of_date(bad)) << bad;
}

TEST(Trace, BurstGptLeavesFailuresOutAndCountsThem) {
  const auto trace = read(
      "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
      "5,1,0.5,ChatGPT,472,18,490,Conversation log\n"
      "45,1,,ChatGPT,1087,0,1087,Conversation log\n"
      "118,2,2.5,GPT-4,417,276,693,\"API log, \"\"v2\"\"\"\n");
  ASSERT_TRUE(trace) << trace.error().describe();
  EXPECT_EQ(trace->format, TraceFormat::kBurstGpt);
  ASSERT_EQ(trace->requests.size(), 2u);
  EXPECT_EQ(trace->num_left_out, 1);
  EXPECT_DOUBLE_EQ(trace->requests[1].at_s, 113);
  EXPECT_EQ(trace->requests[1].output_tokens, 276);
  const auto one_model =
      read("Timestamp,Model,Request tokens,Response tokens\n1,a,2,3\n2,b,4,5\n", {"b", {}, {}});
  ASSERT_TRUE(one_model);
  ASSERT_EQ(one_model->requests.size(), 1u);
  EXPECT_EQ(one_model->requests[0].input_tokens, 4);
}

TEST(Trace, VidurMayHaveLengthsAlone) {
  const auto trace =
      read(",arrived_at,num_prefill_tokens,num_decode_tokens\n0,0.25,374,44\n1,1.5,396.0,109\n");
  ASSERT_TRUE(trace) << trace.error().describe();
  EXPECT_EQ(trace->format, TraceFormat::kVidur);
  EXPECT_TRUE(trace->has_times);
  EXPECT_DOUBLE_EQ(trace->requests[1].at_s, 1.25);
  const auto lengths = read("num_prefill_tokens,num_decode_tokens,pd_ratio\n6,3,2\n");
  ASSERT_TRUE(lengths) << lengths.error().describe();
  EXPECT_FALSE(lengths->has_times);
}

TEST(Trace, JsonLinesSayWhichBlocksAreAlike) {
  const auto trace = read(
      "{\"timestamp\": 3000, \"input_length\": 600, \"output_length\": 20, \"hash_ids\": [0, 7]}\n\n"
      "{\"timestamp\": 0, \"input_length\": 513, \"output_length\": 500, \"hash_ids\": [0, 1]}\r\n");
  ASSERT_TRUE(trace) << trace.error().describe();
  EXPECT_EQ(trace->format, TraceFormat::kMooncake);
  EXPECT_EQ(trace->block_tokens, 512);
  EXPECT_DOUBLE_EQ(trace->requests[1].at_s, 3);  // milliseconds
  EXPECT_EQ(trace->requests[1].first_block, 0);  // as the file has them
  EXPECT_EQ(trace->requests[0].first_block, 2);
  EXPECT_EQ(trace->block_ids, (std::vector<std::int64_t>{0, 7, 0, 1}));
  const auto bailian = read(
      "{\"chat_id\":1,\"parent_chat_id\":-1,\"timestamp\":61.5,\"input_length\":17,\"output_length\":1,"
      "\"hash_ids\":[1,2]}\n{\"chat_id\":2,\"timestamp\":62,\"input_length\":1,\"output_length\":1}");
  ASSERT_TRUE(bailian) << bailian.error().describe();
  EXPECT_EQ(bailian->format, TraceFormat::kBailian);
  EXPECT_EQ(bailian->block_tokens, 16);
  EXPECT_DOUBLE_EQ(bailian->requests[1].at_s, 0.5);  // seconds
  const auto told =
      read("{\"timestamp\":2,\"input_length\":9,\"output_length\":1,\"hash_ids\":[1,2,3]}", {"", 4, 1.0});
  ASSERT_TRUE(told) << told.error().describe();
  EXPECT_EQ(told->block_tokens, 4);
}

TEST(Trace, HostileRowsAreErrorsWithTheirLine) {
  const std::string azure = "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46,5,5\n";
  const std::string burst = "Timestamp,Model,Request tokens,Response tokens\n1,a,2,3\n";
  const std::string mooncake = "{\"timestamp\":0,\"input_length\":5,\"output_length\":5}\n";
  for (const std::string& text :
       {azure + "yesterday,5,5", azure + "2023-11-16 18:15:46,-5,5", azure + "2023-11-16 18:15:46,5",
        azure + "2023-11-16 18:15:46,5,5,5", azure + "2023-11-16 18:15:46,1e18,5",
        azure + "2023-11-16 18:15:46,2000000000,5", azure + "2023-11-16 18:15:46,\"5,5",
        azure + "2023-11-16 18:15:46,\"5\"5,5", azure + "2023-11-16 18:15:46,5\"5\",5", burst + "-1,a,2,3",
        burst + "1e30,a,2,3", burst + "nan,a,2,3", burst + "1,a,2.5,3", mooncake + "{\"timestamp\":0}",
        mooncake + "[1]", mooncake + "{",
        mooncake + "{\"timestamp\":0,\"input_length\":5,\"output_length\":1e18}",
        mooncake + "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[1,2]}",
        mooncake + "{\"timestamp\":0,\"input_length\":5,\"output_length\":1,\"hash_ids\":[\"a\"]}"}) {
    const auto refused = read(text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().code, ErrorCode::kMalformed) << text;
    const bool is_second = text.starts_with('{');
    EXPECT_NE(refused.error().where.find(is_second ? "trace: line 2" : "trace: line 3"), std::string::npos)
        << text << "\n"
        << refused.error().describe();
  }
  for (const char* text :
       {"", "\n\n", "[{\"conversations\":[]}]", "a,b\n1,2\n", "TIMESTAMP,ContextTokens,GeneratedTokens\n",
        "Timestamp,Model,Request tokens,Response tokens\n1,a,2,0\n"})
    EXPECT_EQ(read(text).error().code, ErrorCode::kMalformed) << text;
  EXPECT_EQ(read(mooncake, {"", 0, {}}).error().code, ErrorCode::kUsage);
  EXPECT_EQ(read(mooncake, {"", {}, 0.0}).error().code, ErrorCode::kUsage);
  EXPECT_FALSE(open_trace("/nowhere/trace.csv", {}));
}

TEST(Trace, QuotedFieldsMayHoldLineEnds) {
  const auto refused = read("Timestamp,Model,Request tokens,Response tokens\n1,\"a\n\nb\",2,3\nx,a,2,3\n");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().where, "trace: line 5");
}

}  // namespace
}  // namespace plimsoll::workload
