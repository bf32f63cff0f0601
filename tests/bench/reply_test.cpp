// SPDX-License-Identifier: Apache-2.0
#include "bench/reply.h"

#include <gtest/gtest.h>

#include "tests/bench/toy_tokenizer.h"

namespace plimsoll::bench {
namespace {

constexpr const char* kStream = "text/event-stream; charset=utf-8";

struct Timed {
  double at_s;
  std::string data;
};

RequestRecord read(const std::vector<Timed>& events, const text::Tokenizer* tokenizer = nullptr) {
  RequestRecord record;
  ReplyReader reader(record, ReplyFormat::kOpenai);
  reader.head(200, kStream, 0.001);
  for (const Timed& event : events) reader.body("data: " + event.data + "\n\n", event.at_s);
  reader.end(9);
  count_tokens(record, tokenizer);
  return record;
}

std::string text_event(std::string_view text) {
  return R"({"choices":[{"index":0,"text":")" + std::string(text) + R"(","finish_reason":null}]})";
}
std::string delta(std::string_view body) {
  return R"({"choices":[{"index":0,"delta":{)" + std::string(body) + R"(}}]})";
}
std::string usage(int n) {
  return R"({"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":)" + std::to_string(n) +
         R"(,"prompt_tokens_details":{"cached_tokens":4}}})";
}
std::vector<std::int64_t> tokens_of(const RequestRecord& record) {
  std::vector<std::int64_t> tokens;
  for (const Chunk& chunk : record.chunks) tokens.push_back(chunk.tokens);
  return tokens;
}
using Counts = std::vector<std::int64_t>;

TEST(Reply, TheRoleChunkAndTheFinishReasonAreNoTokens) {
  const auto record = read({{0.03, delta(R"("role":"assistant","content":"")")},
                            {0.05, delta(R"("content":"a")")},
                            {0.06, delta(R"("content":"b")")},
                            {0.07, R"({"choices":[{"delta":{},"finish_reason":"stop"}]})"},
                            {0.08, usage(2)},
                            {0.09, "[DONE]"}});
  EXPECT_TRUE(record.is_success()) << record.error_text;
  EXPECT_EQ(*record.headers_s, 0.001);
  EXPECT_EQ(*record.first_byte_s, 0.03);
  EXPECT_EQ(*record.first_token_s, 0.05);
  EXPECT_EQ(*record.last_token_s, 0.06);
  EXPECT_EQ(record.done_s, 9);
  EXPECT_EQ(record.text, "ab");
  EXPECT_EQ(record.output_tokens, 2);
  EXPECT_EQ(record.usage_prompt_tokens, 7);
  EXPECT_EQ(record.cached_prompt_tokens, 4);
  EXPECT_EQ(record.count_source, CountSource::kUsage);
}

TEST(Reply, ThinkingAndCallsAreTokensButNotTheAnswer) {
  const auto record =
      read({{1, delta(R"("reasoning_content":"hm")")},
            {2, delta(R"("reasoning":"so")")},
            {3, delta(R"("tool_calls":[{"index":0,"function":{"name":"f","arguments":""}}])")},
            {4, delta(R"("content":"x")")},
            {5, usage(4)},
            {6, "[DONE]"}});
  EXPECT_EQ(*record.first_token_s, 1);
  EXPECT_EQ(*record.first_answer_s, 4);
  EXPECT_EQ(record.text, "x");
  EXPECT_EQ(record.produced, "hmsofx");
  EXPECT_EQ(record.chunks.size(), 4u);
}

TEST(Reply, ManyTokensInOneChunkAreSharedOutByLength) {
  const auto record = read({{1, text_event(" the the the the")},
                            {2, text_event(" the the the the")},
                            {3, text_event(" the the")},
                            {4, usage(10)},
                            {5, "[DONE]"}});
  EXPECT_EQ(tokens_of(record), (Counts{4, 4, 2}));
  const ToyTokenizer toy({"", " long", " a"});
  const auto counted =
      read({{1, text_event(" long")}, {2, text_event(" a a a")}, {3, usage(4)}, {4, "[DONE]"}}, &toy);
  EXPECT_EQ(tokens_of(counted), (Counts{1, 3}));
  EXPECT_EQ(counted.count_source, CountSource::kUsage);
}

TEST(Reply, FewerTokensThanChunksLeaveTheFirstOne) {
  const auto record =
      read({{1, text_event("a")}, {2, text_event("b")}, {3, text_event("c")}, {4, usage(1)}, {5, "[DONE]"}});
  EXPECT_EQ(tokens_of(record), (Counts{1, 0, 0}));
}

TEST(Reply, TheServersOwnCountPerChunkWins) {
  const auto with_usage = [](std::string_view text, int n) {
    return R"({"choices":[{"text":")" + std::string(text) + R"("}],"usage":{"completion_tokens":)" +
           std::to_string(n) + "}}";
  };
  const auto record = read({{1, with_usage("aaaaaaaaaaaa", 1)},
                            {2, with_usage("b", 4)},
                            {3, with_usage("", 5)},
                            {4, usage(5)},
                            {5, "[DONE]"}});
  EXPECT_EQ(tokens_of(record), (Counts{1, 3, 1}));
  const auto ids = read({{1, R"({"choices":[{"text":"abc","token_ids":[5,6]}]})"}, {2, "[DONE]"}});
  EXPECT_EQ(ids.output_tokens, 2);
}

TEST(Reply, WithoutUsageTheTextIsTokenizedWithoutSpecialTokens) {
  const ToyTokenizer toy({"", "  "}, true);  // two blanks are one token; BOS is added when asked
  std::vector<Timed> events;
  for (int i = 0; i < 10; ++i) events.push_back({0.05 + 0.01 * i, text_event(" ")});
  events.push_back({1, "[DONE]"});
  const auto counted = read(events, &toy);
  EXPECT_EQ(counted.output_tokens, 5);
  EXPECT_EQ(counted.count_source, CountSource::kTokenizer);
  const auto chunks = read(events);
  EXPECT_EQ(chunks.output_tokens, 10);
  EXPECT_EQ(chunks.count_source, CountSource::kChunks);
  events.insert(events.end() - 1, {0.9, usage(10)});
  EXPECT_EQ(read(events, &toy).output_tokens, 10);
}

TEST(Reply, FailuresHaveTheirKindAndFirstBody) {
  EXPECT_EQ(read({{1, text_event("a")}}).error, ErrorKind::kEarlyClose);
  EXPECT_EQ(read({{1, delta(R"("role":"assistant","content":"")")}}).error, ErrorKind::kEarlyClose);
  const auto failed =
      read({{1, text_event("a")}, {2, R"({"error":{"message":"out of blocks"}})"}, {3, "[DONE]"}});
  EXPECT_EQ(failed.error, ErrorKind::kErrorEvent);
  EXPECT_NE(failed.error_text.find("out of blocks"), std::string::npos);
  EXPECT_EQ(read({{1, "{not json"}, {2, "[DONE]"}}).error, ErrorKind::kBadStream);
  EXPECT_EQ(read({{1, "[1]"}, {2, "[DONE]"}}).error, ErrorKind::kBadStream);

  RequestRecord refused;
  ReplyReader reader(refused, ReplyFormat::kOpenai);
  reader.head(500, "application/json", 1);
  reader.body(R"({"error":{"mess)", 1);
  reader.body(R"(age":"injected"}})", 1);
  reader.end(2);
  EXPECT_EQ(refused.error, ErrorKind::kHttpStatus);
  EXPECT_EQ(refused.status, 500);
  EXPECT_EQ(refused.error_text, R"({"error":{"message":"injected"}})");

  RequestRecord plain;
  ReplyReader no_stream(plain, ReplyFormat::kOpenai);
  no_stream.head(200, "application/json", 1);
  no_stream.body("{}", 1);
  no_stream.end(2);
  EXPECT_EQ(plain.error, ErrorKind::kBadStream);

  RequestRecord late;
  ReplyReader timed(late, ReplyFormat::kOpenai);
  timed.head(200, kStream, 1);
  timed.fail(ErrorKind::kTimeout, "no answer", 3);
  EXPECT_EQ(late.error, ErrorKind::kTimeout);
  EXPECT_EQ(late.done_s, 3);
}

TEST(Reply, ErrorBodiesAreBounded) {
  RequestRecord record;
  ReplyReader reader(record, ReplyFormat::kOpenai);
  reader.head(503, "text/html", 1);
  for (int i = 0; i < 100; ++i) reader.body(std::string(1000, 'x'), 1);
  reader.end(1);
  EXPECT_EQ(record.error_text.size(), 2048u);
}

}  // namespace
}  // namespace plimsoll::bench
