// SPDX-License-Identifier: Apache-2.0
#include "bench/backend.h"

#include <gtest/gtest.h>

#include "tests/bench/timetable_server.h"

namespace plimsoll::bench {
namespace {

constexpr Message kTurns[] = {{true, "one"}, {false, "two"}, {true, "three"}};

Json body(Backend backend, std::span<const Message> turns, std::string endpoint = "",
          bool ignore_eos = false) {
  Options options;
  options.backend = backend;
  options.model = "m";
  options.endpoint = std::move(endpoint);
  options.ignore_eos = ignore_eos;
  return *parse_json(request_body(options, turns, 9), "body");
}

TEST(Backend, EveryNameLeadsToItsRowAndBack) {
  EXPECT_EQ(backend_names().size(), 9u);
  for (const std::string& name : backend_names()) {
    const auto backend = backend_from(name);
    ASSERT_TRUE(backend) << name;
    EXPECT_EQ(to_string(*backend), name);
    EXPECT_TRUE(default_endpoint(*backend).starts_with('/'));
  }
  EXPECT_FALSE(backend_from("nobody"));
}

TEST(Backend, ConversationsAreMessagesOrJoined) {
  const Json chat = body(Backend::kOpenaiChat, kTurns);
  EXPECT_EQ(chat["messages"].size(), 3u);
  EXPECT_EQ(*chat.at_pointer("/messages/1/role").as_string(), "assistant");
  EXPECT_EQ(*chat.at_pointer("/messages/2/content").as_string(), "three");
  EXPECT_EQ(*body(Backend::kOpenai, kTurns)["prompt"].as_string(), "onetwothree");
  EXPECT_EQ(body(Backend::kOpenaiResponses, kTurns)["input"].size(), 3u);
  EXPECT_EQ(*body(Backend::kOpenaiResponses, {kTurns, 1})["input"].as_string(), "one");
  EXPECT_EQ(body(Backend::kOllama, kTurns)["messages"].size(), 3u);
  EXPECT_EQ(*body(Backend::kOllama, kTurns, "/api/generate")["prompt"].as_string(), "onetwothree");
}

TEST(Backend, TheLengthOfTheReplyIsAskedInEachProtocolsWords) {
  const std::span<const Message> turn(kTurns, 1);
  EXPECT_EQ(body(Backend::kOpenai, turn)["max_tokens"].as_integer(), 9);
  EXPECT_EQ(body(Backend::kOpenaiChat, turn)["max_completion_tokens"].as_integer(), 9);
  EXPECT_EQ(body(Backend::kOpenaiResponses, turn)["max_output_tokens"].as_integer(), 9);
  EXPECT_EQ(body(Backend::kSglang, turn).at_pointer("/sampling_params/max_new_tokens").as_integer(), 9);
  EXPECT_EQ(body(Backend::kOllama, turn).at_pointer("/options/num_predict").as_integer(), 9);
  EXPECT_EQ(body(Backend::kTgi, turn).at_pointer("/parameters/max_new_tokens").as_integer(), 9);
  EXPECT_EQ(body(Backend::kLlamaCpp, turn)["n_predict"].as_integer(), 9);
  EXPECT_FALSE(body(Backend::kOpenaiEmbeddings, turn).contains("stream"));
}

TEST(Backend, IgnoreEosIsSaidOrRefusedButNeverDropped) {
  const std::span<const Message> turn(kTurns, 1);
  for (const Backend backend : {Backend::kOpenai, Backend::kOpenaiChat, Backend::kVllm,
                                Backend::kOpenaiResponses, Backend::kLlamaCpp})
    EXPECT_EQ(body(backend, turn, "", true)["ignore_eos"].as_bool(), true) << to_string(backend);
  const Json sglang = body(Backend::kSglang, turn, "", true);
  EXPECT_EQ(sglang.at_pointer("/sampling_params/ignore_eos").as_bool(), true);
  EXPECT_EQ(sglang.at_pointer("/sampling_params/max_new_tokens").as_integer(), 9);
  Options options;
  options.ignore_eos = true;
  for (const Backend backend : {Backend::kOpenaiEmbeddings, Backend::kOllama, Backend::kTgi}) {
    options.backend = backend;
    const auto refused = check_backend(options);
    ASSERT_FALSE(refused) << to_string(backend);
    EXPECT_EQ(refused.error().where, "--ignore-eos");
  }
}

TEST(Backend, SamplingOptionsStandWhereTheProtocolHasThem) {
  Options options;
  options.served_model_name = "other";
  options.extra_body = *parse_json(
      R"({"temperature":0.5,"repetition_penalty":1.1,"options":{"seed":3},"keep_alive":"5m"})", "extra");
  const std::span<const Message> turn(kTurns, 1);
  const auto asked = [&](Backend backend) {
    options.backend = backend;
    return *parse_json(request_body(options, turn, 9), "body");
  };
  EXPECT_EQ(asked(Backend::kOpenai)["temperature"].as_double(), 0.5);
  EXPECT_EQ(*asked(Backend::kOpenai)["model"].as_string(), "other");
  EXPECT_EQ(asked(Backend::kSglang).at_pointer("/sampling_params/repetition_penalty").as_double(), 1.1);
  EXPECT_EQ(asked(Backend::kTgi).at_pointer("/parameters/temperature").as_double(), 0.5);
  EXPECT_EQ(asked(Backend::kLlamaCpp)["repeat_penalty"].as_double(), 1.1);
  const Json ollama = asked(Backend::kOllama);
  EXPECT_EQ(dump(ollama["options"]), R"({"num_predict":9,"temperature":0.5,"repeat_penalty":1.1,"seed":3})");
  EXPECT_EQ(*ollama["keep_alive"].as_string(), "5m");
  EXPECT_TRUE(check_backend(options));
  options.extra_body = *parse_json(R"({"min_p":0.1})", "extra");
  options.backend = Backend::kTgi;
  EXPECT_FALSE(check_backend(options));
}

/// Every protocol over a socket: two requests to a server that speaks it.
RunResult run_against(Backend backend, std::string_view type, const std::vector<Step>& steps) {
  TimetableServer server([&](int, const Json&) {
    Script script;
    script.steps = steps;
    script.content_type = std::string(type);
    return script;
  });
  Options options;
  options.backend = backend;
  options.base_urls = {server.url()};
  options.input_tokens = 8;
  options.output_tokens = 2;
  options.num_prompts = 2;
  options.request_timeout = std::chrono::seconds(20);
  auto result = run(options, nullptr);
  EXPECT_TRUE(result) << (result ? "" : result.error().describe());
  return result ? std::move(*result) : RunResult{};
}

TEST(Backend, RunsAgainstAServerOfItsProtocol) {
  struct Case {
    Backend backend;
    std::string_view type;
    std::vector<Step> steps;
    std::int64_t tokens;
  };
  const std::string sse = "text/event-stream";
  const std::vector<Case> cases = {
      {Backend::kSglang,
       sse,
       {{1, R"({"text":" a","meta_info":{"completion_tokens":1}})"},
        {2, R"({"text":" a b","meta_info":{"completion_tokens":2}})"},
        {2, "[DONE]"}},
       2},
      {Backend::kOllama,
       "application/x-ndjson",
       {{1, "{\"message\":{\"content\":\" a\"},\"done\":false}\n", true},
        {2, "{\"message\":{\"content\":\" b\"},\"done\":true,\"eval_count\":2}\n", true}},
       2},
      {Backend::kTgi,
       sse,
       {{1, R"({"token":{"text":" a","special":false},"generated_text":null})"},
        {2, R"({"token":{"text":" b","special":false},"generated_text":" a b"})"}},
       2},
      {Backend::kLlamaCpp,
       sse,
       {{1, R"({"content":" a","stop":false,"tokens_predicted":1})"},
        {2, R"({"content":" b","stop":true,"tokens_predicted":2})"}},
       2},
      {Backend::kOpenaiResponses,
       sse,
       {{1, R"({"type":"response.output_text.delta","delta":" a"})"},
        {2, R"({"type":"response.completed","response":{"usage":{"output_tokens":1}}})"}},
       1},
      {Backend::kOpenaiEmbeddings,
       "application/json",
       {{1, R"({"data":[{"embedding":[1,2]}],"usage":{"prompt_tokens":8}})", true}},
       0},
  };
  for (const Case& c : cases) {
    const RunResult result = run_against(c.backend, c.type, c.steps);
    EXPECT_EQ(result.summary.completed, 2) << to_string(c.backend);
    EXPECT_EQ(result.summary.output_tokens, 2 * c.tokens) << to_string(c.backend);
    // Vectors have vLLM's keys of a pooling task.
    const Json document = to_json(result, true);
    const bool is_vectors = c.backend == Backend::kOpenaiEmbeddings;
    EXPECT_EQ(document.contains("total_input_sequences"), is_vectors);
    EXPECT_EQ(document.contains("input_sequence_throughput"), is_vectors);
    EXPECT_EQ(document.contains("mean_e2el_ms"), is_vectors);
    EXPECT_NE(document.contains("ttfts"), is_vectors);
    EXPECT_NE(document.contains("mean_ttft_ms"), is_vectors);
  }
}

}  // namespace
}  // namespace plimsoll::bench
