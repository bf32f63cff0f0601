// SPDX-License-Identifier: Apache-2.0
// The formats beside OpenAI's: what is a token, what ends a reply, where the counts come from.
#include <gtest/gtest.h>

#include "bench/reply.h"

namespace plimsoll::bench {
namespace {

struct Timed {
  double at_s;
  std::string bytes;
};

RequestRecord read(ReplyFormat format, std::string_view content_type, const std::vector<Timed>& pieces) {
  RequestRecord record;
  ReplyReader reader(record, format);
  reader.head(200, content_type, 0.001);
  for (const Timed& piece : pieces) reader.body(piece.bytes, piece.at_s);
  reader.end(9);
  count_tokens(record, nullptr);
  return record;
}

RequestRecord read_events(ReplyFormat format, std::vector<Timed> events) {
  for (Timed& event : events) event.bytes = "data: " + event.bytes + "\n\n";
  return read(format, "text/event-stream", events);
}

std::vector<std::int64_t> tokens_of(const RequestRecord& record) {
  std::vector<std::int64_t> tokens;
  for (const Chunk& chunk : record.chunks) tokens.push_back(chunk.tokens);
  return tokens;
}
using Counts = std::vector<std::int64_t>;

TEST(Responses, TextAndReasoningAreTokensAndTheLastEventCounts) {
  const auto record = read_events(
      ReplyFormat::kResponses,
      {{1, R"({"type":"response.created","response":{"id":"r","error":null},"sequence_number":0})"},
       {2, R"({"type":"response.output_item.added","item":{"type":"message"}})"},
       {3, R"({"type":"response.reasoning_text.delta","delta":"hm"})"},
       {4, R"({"type":"response.output_text.delta","delta":"a"})"},
       {5, R"({"type":"response.output_text.delta","delta":"bc"})"},
       {6, R"({"type":"response.output_text.done","text":"abc"})"},
       {7, R"({"type":"response.completed","response":{"usage":{"input_tokens":7,"output_tokens":4,)"
           R"("input_tokens_details":{"cached_tokens":3}}}})"}});
  EXPECT_TRUE(record.is_success()) << record.error_text;
  EXPECT_EQ(*record.first_token_s, 3);
  EXPECT_EQ(*record.first_answer_s, 4);
  EXPECT_EQ(*record.last_token_s, 5);
  EXPECT_EQ(record.text, "abc");
  EXPECT_EQ(record.output_tokens, 4);
  EXPECT_EQ(record.usage_prompt_tokens, 7);
  EXPECT_EQ(record.cached_prompt_tokens, 3);
}

TEST(Responses, FailuresAndCutStreamsAreNoReplies) {
  const std::string text = R"({"type":"response.output_text.delta","delta":"a"})";
  EXPECT_EQ(read_events(ReplyFormat::kResponses, {{1, text}}).error, ErrorKind::kEarlyClose);
  const auto failed =
      read_events(ReplyFormat::kResponses,
                  {{1, text}, {2, R"({"type":"response.failed","response":{"error":{"message":"oom"}}})"}});
  EXPECT_EQ(failed.error, ErrorKind::kErrorEvent);
  EXPECT_NE(failed.error_text.find("oom"), std::string::npos);
  EXPECT_EQ(read_events(ReplyFormat::kResponses, {{1, R"({"type":"error","message":"x"})"}}).error,
            ErrorKind::kErrorEvent);
  EXPECT_TRUE(read_events(ReplyFormat::kResponses, {{1, text}, {2, R"({"type":"response.incomplete"})"}})
                  .is_success());
}

TEST(Embeddings, OneDocumentWithoutTokens) {
  const std::string body =
      R"({"object":"list","data":[{"index":0,"embedding":[0.5,-1]}],"usage":{"prompt_tokens":6}})";
  const auto record =
      read(ReplyFormat::kEmbeddings, "application/json", {{1, body.substr(0, 20)}, {2, body.substr(20)}});
  EXPECT_TRUE(record.is_success()) << record.error_text;
  EXPECT_EQ(record.usage_prompt_tokens, 6);
  EXPECT_EQ(record.output_tokens, 0);
  EXPECT_FALSE(record.first_token_s);
  EXPECT_EQ(*record.first_byte_s, 1);
  EXPECT_EQ(read(ReplyFormat::kEmbeddings, "application/json", {{1, R"({"data":[]})"}}).error,
            ErrorKind::kEarlyClose);
  EXPECT_EQ(read(ReplyFormat::kEmbeddings, "application/json", {{1, body.substr(0, 40)}}).error,
            ErrorKind::kBadStream);
  EXPECT_EQ(read(ReplyFormat::kEmbeddings, "text/html", {{1, "<html>"}}).error, ErrorKind::kBadStream);
}

std::string sglang(std::string_view text, int tokens, std::string_view ids = "") {
  std::string event = R"({"text":")" + std::string(text) + R"(",)";
  if (!ids.empty()) event += R"("output_ids":)" + std::string(ids) + ",";
  return event + R"("meta_info":{"prompt_tokens":5,"cached_tokens":2,"finish_reason":null,)" +
         R"("completion_tokens":)" + std::to_string(tokens) + "}}";
}

TEST(Sglang, TextsMayHoldAllSoFar) {
  const auto record =
      read_events(ReplyFormat::kSglang,
                  {{1, sglang(" a", 1)}, {2, sglang(" a b", 2)}, {3, sglang(" a b cd", 6)}, {4, "[DONE]"}});
  EXPECT_TRUE(record.is_success()) << record.error_text;
  EXPECT_EQ(record.text, " a b cd");
  EXPECT_EQ(tokens_of(record), (Counts{1, 1, 4}));
  EXPECT_EQ(record.output_tokens, 6);
  EXPECT_EQ(record.usage_prompt_tokens, 5);
  EXPECT_EQ(record.cached_prompt_tokens, 2);
}

TEST(Sglang, OrOnlyWhatIsNew) {
  const auto plain =
      read_events(ReplyFormat::kSglang,
                  {{1, sglang(" a", 1)}, {2, sglang(" b", 2)}, {3, sglang(" c", 3)}, {4, "[DONE]"}});
  EXPECT_EQ(plain.text, " a b c");
  EXPECT_EQ(tokens_of(plain), (Counts{1, 1, 1}));
  // The same word twice: the number of ids says that it is new.
  const auto with_ids = read_events(ReplyFormat::kSglang, {{1, sglang(" a", 1, "[7]")},
                                                           {2, sglang(" a", 2, "[7]")},
                                                           {3, sglang(" a a", 4, "[7,7]")},
                                                           {4, "[DONE]"}});
  EXPECT_EQ(with_ids.text, " a a a a");
  const auto all = read_events(ReplyFormat::kSglang,
                               {{1, sglang(" a", 1, "[7]")}, {2, sglang(" a a", 2, "[7,7]")}, {3, "[DONE]"}});
  EXPECT_EQ(all.text, " a a");
}

TEST(Sglang, AStopStringIsTakenBackAndAnAbortIsAFailure) {
  const auto record = read_events(ReplyFormat::kSglang, {{1, sglang("a", 1, "[1]")},
                                                         {2, sglang("ab", 2, "[1,2]")},
                                                         {3, sglang("a", 2, "[1,2]")},
                                                         {4, "[DONE]"}});
  EXPECT_EQ(record.output_tokens, 2);
  EXPECT_EQ(tokens_of(record), (Counts{1, 1}));
  const auto aborted = read_events(
      ReplyFormat::kSglang,
      {{1, R"({"text":"","meta_info":{"finish_reason":{"type":"abort","message":"too long"}}})"}});
  EXPECT_EQ(aborted.error, ErrorKind::kErrorEvent);
}

TEST(Ollama, LinesMayBeCutAnywhere) {
  const std::string lines =
      R"({"model":"m","message":{"role":"assistant","content":"","thinking":"hm"},"done":false})"
      "\n"
      R"({"model":"m","message":{"role":"assistant","content":" a"},"done":false})"
      "\n"
      R"({"model":"m","message":{"role":"assistant","content":" b"},"done":false})"
      "\n"
      R"({"model":"m","message":{"role":"assistant","content":""},"done":true,"done_reason":"stop",)"
      R"("prompt_eval_count":11,"eval_count":3})"
      "\n";
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, lines.size()}) {
    std::vector<Timed> pieces;
    for (std::size_t at = 0; at < lines.size(); at += step) pieces.push_back({1, lines.substr(at, step)});
    const auto record = read(ReplyFormat::kOllama, "application/x-ndjson", pieces);
    EXPECT_TRUE(record.is_success()) << record.error_text;
    EXPECT_EQ(record.produced, "hm a b");
    EXPECT_EQ(record.text, " a b");
    EXPECT_EQ(tokens_of(record), (Counts{1, 1, 1}));
    EXPECT_EQ(record.usage_prompt_tokens, 11);
    EXPECT_EQ(record.count_source, CountSource::kUsage);
  }
}

TEST(Ollama, GenerateErrorsAndCuts) {
  const auto generated = read(ReplyFormat::kOllama, "application/x-ndjson",
                              {{1, "{\"response\":\"a\",\"done\":false}\n"},
                               {2, "{\"response\":\"\",\"done\":true,\"eval_count\":1}"}});
  EXPECT_TRUE(generated.is_success()) << generated.error_text;
  EXPECT_EQ(generated.text, "a");
  const auto called =
      read(ReplyFormat::kOllama, "application/x-ndjson",
           {{1, R"({"message":{"tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},"done":false})"
                "\n"},
            {2, "{\"done\":true}\n"}});
  EXPECT_EQ(called.produced, R"(f{"x":1})");
  EXPECT_EQ(read(ReplyFormat::kOllama, "application/x-ndjson", {{1, "{\"error\":\"no\"}\n"}}).error,
            ErrorKind::kErrorEvent);
  EXPECT_EQ(read(ReplyFormat::kOllama, "application/x-ndjson", {{1, "{\"response\":\"a\",\"done\":false}\n"}})
                .error,
            ErrorKind::kEarlyClose);
}

TEST(Tgi, SpecialTokensAreTokensButNoText) {
  const auto record = read_events(
      ReplyFormat::kTgi,
      {{1,
        R"({"index":1,"token":{"id":5,"text":" a","special":false},"generated_text":null,"details":null})"},
       {2,
        R"({"index":2,"token":{"id":6,"text":" b","special":false},"generated_text":null,"details":null})"},
       {3, R"({"index":3,"token":{"id":2,"text":"</s>","special":true},"generated_text":" a b",)"
           R"("details":{"finish_reason":"eos_token","generated_tokens":3,"input_length":8}})"}});
  EXPECT_TRUE(record.is_success()) << record.error_text;
  EXPECT_EQ(record.text, " a b");
  EXPECT_EQ(tokens_of(record), (Counts{1, 1, 1}));
  EXPECT_EQ(record.usage_prompt_tokens, 8);
  const auto failed = read_events(
      ReplyFormat::kTgi, {{1, R"({"error":"Request failed during generation","error_type":"generation"})"}});
  EXPECT_EQ(failed.error, ErrorKind::kErrorEvent);
  EXPECT_EQ(read_events(ReplyFormat::kTgi, {{1, R"({"token":{"text":"a","special":false}})"}}).error,
            ErrorKind::kEarlyClose);
}

TEST(LlamaCpp, CountsGrowWithTheEvents) {
  const auto record = read_events(
      ReplyFormat::kLlamaCpp,
      {{1,
        R"({"index":0,"content":" a","tokens":[],"stop":false,"tokens_predicted":1,"tokens_evaluated":9})"},
       {2,
        R"({"index":0,"content":" bc","tokens":[],"stop":false,"tokens_predicted":3,"tokens_evaluated":9})"},
       {3, R"({"index":0,"content":"","stop":true,"tokens_predicted":3,"tokens_evaluated":9,)"
           R"("timings":{"cache_n":4}})"}});
  EXPECT_TRUE(record.is_success()) << record.error_text;
  EXPECT_EQ(tokens_of(record), (Counts{1, 2}));
  EXPECT_EQ(record.text, " a bc");
  EXPECT_EQ(record.usage_prompt_tokens, 9);
  EXPECT_EQ(record.cached_prompt_tokens, 4);
  EXPECT_EQ(read_events(ReplyFormat::kLlamaCpp, {{1, R"({"error":{"code":500,"message":"x"}})"}}).error,
            ErrorKind::kErrorEvent);
}

TEST(Reply, OnlyTheChoiceThatWasAskedForCounts) {
  const auto record = read_events(ReplyFormat::kOpenai, {{1, R"({"choices":[{"index":1,"text":"x"}]})"},
                                                         {2, R"({"choices":[{"index":0,"text":"a"}]})"},
                                                         {3, "[DONE]"}});
  EXPECT_EQ(record.text, "a");
  EXPECT_EQ(*record.first_token_s, 2);
}

}  // namespace
}  // namespace plimsoll::bench
