// SPDX-License-Identifier: Apache-2.0
#include "serve/request.h"

#include <gtest/gtest.h>

#include "tests/serve/doubles.h"

namespace plimsoll::serve {
namespace {

ApiResult<GenerationRequest> read(Endpoint endpoint, const std::string& text, Caller caller = Caller::kHttp) {
  static const ModelContext context = test_context();
  auto body = read_body(text);
  if (!body) return refuse(body.error());
  return read_request(endpoint, *body, context, caller);
}

ApiResult<GenerationRequest> completion(const std::string& fields) {
  return read(Endpoint::kCompletion, R"({"prompt":"ab")" + (fields.empty() ? "" : "," + fields) + "}");
}

ApiResult<GenerationRequest> chat(const std::string& fields) {
  return read(Endpoint::kChat,
              R"({"messages":[{"role":"user","content":"hi"}])" + (fields.empty() ? "" : "," + fields) + "}");
}

TEST(Request, DefaultsOfACompletion) {
  const auto request = completion("");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->model, "org/model");
  EXPECT_EQ(request->max_tokens, std::vector<std::int64_t>{16});
  EXPECT_EQ(request->prompts[0].ids, (std::vector<TokenId>{256, 'a', 'b'}));
  EXPECT_EQ(request->sampling.temperature, 1.0);
  EXPECT_EQ(request->sampling.stop_token_ids, std::vector<TokenId>{257});
  EXPECT_EQ(request->n, 1);
}

TEST(Request, AChatFillsTheContext) {
  const auto request = chat("");
  ASSERT_TRUE(request) << request.error().message;
  const auto length = static_cast<std::int64_t>(std::string("[user]hi[assistant]").size());
  EXPECT_EQ(request->prompts[0].text, "[user]hi[assistant]");
  EXPECT_EQ(request->max_tokens, std::vector<std::int64_t>{100 - length});
}

TEST(Request, PromptForms) {
  const auto ids = read(Endpoint::kCompletion, R"({"prompt":[1,2,3]})");
  ASSERT_TRUE(ids);
  EXPECT_EQ(ids->prompts[0].ids, (std::vector<TokenId>{1, 2, 3}));  // no BOS added
  const auto texts = read(Endpoint::kCompletion, R"({"prompt":["a","bc"],"n":2,"add_special_tokens":false})");
  ASSERT_TRUE(texts);
  EXPECT_EQ(texts->prompts[1].ids, (std::vector<TokenId>{'b', 'c'}));
  const auto lists = read(Endpoint::kCompletion, R"({"prompt":[[1],[2,3]]})");
  ASSERT_TRUE(lists);
  EXPECT_EQ(lists->prompts.size(), 2u);
  for (const char* bad : {R"([])", R"([[]])", R"("")", R"([1,"a"])", R"(["a",[1]])", R"([-1])", R"([300])",
                          R"(7)", R"([1.5])", R"([true])", R"(null)", R"({"a":1})"}) {
    const auto refused =
        read(Endpoint::kCompletion, R"({"add_special_tokens":false,"prompt":)" + std::string(bad) + "}");
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().status, 400) << bad;
    EXPECT_EQ(refused.error().param, "prompt") << bad;
  }
}

TEST(Request, MaxCompletionTokensWins) {
  EXPECT_EQ(chat(R"("max_tokens":50,"max_completion_tokens":3)")->max_tokens.front(), 3);
  EXPECT_EQ(chat(R"("max_tokens":50)")->max_tokens.front(), 50);
}

TEST(Request, ContextBoundary) {
  EXPECT_TRUE(completion(R"("max_tokens":97)"));  // 3 + 97 = 100
  const auto sum = completion(R"("max_tokens":98)");
  ASSERT_FALSE(sum);
  EXPECT_EQ(sum.error().code, "context_length_exceeded");
  EXPECT_NE(sum.error().message.find("maximum context length is 100 tokens"), std::string::npos);
  EXPECT_NE(sum.error().message.find("98"), std::string::npos);
  EXPECT_NE(sum.error().message.find("3 input tokens"), std::string::npos);
  const auto longer =
      read(Endpoint::kChat, R"({"messages":[{"role":"user","content":")" + std::string(200, 'x') + "\"}]}");
  ASSERT_FALSE(longer);
  EXPECT_EQ(longer.error().param, "messages");
  EXPECT_EQ(longer.error().code, "context_length_exceeded");
}

TEST(Request, UnknownModel) {
  const auto refused = chat(R"("model":"nope")");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().status, 404);
  EXPECT_EQ(refused.error().code, "model_not_found");
  EXPECT_EQ(refused.error().message, "The model `nope` does not exist");
  EXPECT_EQ(chat(R"("model":"alias")")->model, "alias");
}

struct Bad {
  const char* fields;
  const char* param;
};

TEST(Request, RefusedFieldsOfBothEndpoints) {
  for (const Bad& bad : std::initializer_list<Bad>{
           {R"("temperature":-1)", "temperature"},
           {R"("temperature":"hot")", "temperature"},
           {R"("temperature":2.01)", "temperature"},
           {R"("typical_p":0)", "typical_p"},
           {R"("typical_p":1.5)", "typical_p"},
           {R"("top_p":0)", "top_p"},
           {R"("top_p":1.1)", "top_p"},
           {R"("top_k":-2)", "top_k"},
           {R"("min_p":2)", "min_p"},
           {R"("repetition_penalty":0)", "repetition_penalty"},
           {R"("frequency_penalty":2.5)", "frequency_penalty"},
           {R"("presence_penalty":-3)", "presence_penalty"},
           {R"("max_tokens":-1)", "max_tokens"},
           {R"("max_tokens":0)", "max_tokens"},
           {R"("max_tokens":1.5)", "max_tokens"},
           {R"("max_tokens":true)", "max_tokens"},
           {R"("n":0)", "n"},
           {R"("n":1000)", "n"},
           {R"("stop":"")", "stop"},
           {R"("stop":[1])", "stop"},
           {R"("stop_token_ids":[300])", "stop_token_ids"},
           {R"("stop_token_ids":5)", "stop_token_ids"},
           {R"("logit_bias":{"5":101})", "logit_bias"},
           {R"("logit_bias":{"300":1})", "logit_bias"},
           {R"("logit_bias":{"x":1})", "logit_bias"},
           {R"("logit_bias":[])", "logit_bias"},
           {R"("min_tokens":9,"max_tokens":8)", "min_tokens"},
           {R"("stream":1)", "stream"},
           {R"("stream_options":{"include_usage":true})", "stream_options"},
           {R"("stream":true,"stream_options":{"include_usage":1})", "stream_options.include_usage"},
           {R"("stream":true,"prompt_logprobs":1)", "prompt_logprobs"},
           {R"("prompt_logprobs":21)", "prompt_logprobs"},
           {R"("cache_salt":"")", "cache_salt"},
           {R"("suffix":"b")", "suffix"},
           {R"("best_of":3)", "best_of"},
           {R"("use_beam_search":true)", "use_beam_search"},
           {R"("response_format":{"type":"json_object"})", "response_format"},
           {R"("response_format":{"type":"json_schema"})", "response_format"},
           {R"("response_format":"json")", "response_format"},
       }) {
    for (const auto& refused : {completion(bad.fields), chat(bad.fields)}) {
      ASSERT_FALSE(refused) << bad.fields;
      EXPECT_EQ(refused.error().status, 400) << bad.fields;
      EXPECT_EQ(refused.error().type, "invalid_request_error");
      EXPECT_EQ(refused.error().param, bad.param) << bad.fields;
    }
  }
}

TEST(Request, HarmlessAndNullFieldsAreIgnored) {
  EXPECT_TRUE(chat(R"("user":"u","metadata":{},"store":false,"service_tier":"auto","parallel_tool_calls":true,
                      "x_unknown":1,"temperature":null,"stop":null,"max_tokens":null,"response_format":{"type":"text"})"));
}

TEST(Request, Logprobs) {
  EXPECT_EQ(completion(R"("logprobs":5)")->sampling.logprobs, 5);
  EXPECT_EQ(completion(R"("logprobs":21)").error().param, "logprobs");
  EXPECT_EQ(chat(R"("logprobs":true,"top_logprobs":3)")->sampling.logprobs, 3);
  EXPECT_EQ(chat(R"("logprobs":true)")->sampling.logprobs, 0);
  const auto alone = chat(R"("top_logprobs":3)");
  ASSERT_FALSE(alone);
  EXPECT_NE(alone.error().message.find("logprobs must be set to true"), std::string::npos);
  const auto echoed = completion(R"("echo":true,"logprobs":2,"max_tokens":0)");
  ASSERT_TRUE(echoed) << echoed.error().message;
  EXPECT_TRUE(echoed->answer.drops_generated);
  EXPECT_EQ(echoed->sampling.prompt_logprobs, 2);
  EXPECT_EQ(echoed->max_tokens.front(), 1);
}

TEST(Request, IgnoreEosKeepsTheAskedStopIds) {
  const auto request = completion(R"("ignore_eos":true,"stop_token_ids":[7])");
  EXPECT_EQ(request->sampling.stop_token_ids, std::vector<TokenId>{7});
  EXPECT_EQ(completion(R"("stop_token_ids":[7])")->sampling.stop_token_ids, (std::vector<TokenId>{7, 257}));
}

// The ends that ignore_eos lets pass are still kept from being chosen before min_tokens.
TEST(Request, IgnoredEndsAreTold) {
  EXPECT_EQ(completion(R"("ignore_eos":true)")->sampling.ignored_stop_ids, std::vector<TokenId>{257});
  EXPECT_TRUE(completion("")->sampling.ignored_stop_ids.empty());
}

TEST(Request, SamplingValuesAndMessages) {
  const auto request = completion(
      R"("temperature":2,"top_k":-1,"min_p":1,"typical_p":0.5,"presence_penalty":-2,"seed":-7,"min_tokens":3)");
  ASSERT_TRUE(request) << request.error().message;
  EXPECT_EQ(request->sampling.temperature, 2.0);
  EXPECT_EQ(request->sampling.typical_p, 0.5);
  EXPECT_EQ(request->sampling.presence_penalty, -2.0);
  EXPECT_EQ(request->sampling.seed, static_cast<std::uint64_t>(-7));
  EXPECT_EQ(completion(R"("seed":-1)")->sampling.seed, std::nullopt);  // vLLM's word for none
  EXPECT_EQ(completion(R"("temperature":3)").error().message,
            "temperature must be at least 0 and at most 2, got 3");
  EXPECT_EQ(completion(R"("top_p":0)").error().message, "top_p must be greater than 0 and at most 1, got 0");
  EXPECT_EQ(completion(R"("top_k":-2)").error().message, "top_k must be between -1 and 2147483647, got -2");
}

// vLLM, get_max_tokens: the author's length is a default of chats; that of another folder a limit for all.
TEST(Request, TheAuthorsLength) {
  ModelContext context = test_context();
  context.defaults.max_new_tokens = 40;
  const auto limit = [&](Endpoint endpoint, const char* body) {
    const auto request = read_request(endpoint, *read_body(body), context);
    return request ? request->max_tokens.front() : -1;
  };
  constexpr const char* kChat = R"({"messages":[{"role":"user","content":"hi"}]})";
  constexpr const char* kLongChat = R"({"messages":[{"role":"user","content":"hi"}],"max_tokens":60})";
  EXPECT_EQ(limit(Endpoint::kChat, kChat), 40);
  EXPECT_EQ(limit(Endpoint::kChat, kLongChat), 60);
  EXPECT_EQ(limit(Endpoint::kCompletion, R"({"prompt":"ab"})"), 16);
  EXPECT_EQ(limit(Endpoint::kCompletion, R"({"prompt":"ab","max_tokens":60})"), 60);
  context.defaults.caps_max_tokens = true;
  EXPECT_EQ(limit(Endpoint::kChat, kChat), 40);
  EXPECT_EQ(limit(Endpoint::kChat, kLongChat), 40);
  EXPECT_EQ(limit(Endpoint::kCompletion, R"({"prompt":"ab","max_tokens":60})"), 40);
}

TEST(Request, OfflineLines) {
  const auto line =
      read(Endpoint::kCompletion,
           R"({"prompt_token_ids":[5],"return_logits":["steps","prompt"],"logprobs":5,"max_tokens":2})",
           Caller::kOffline);
  ASSERT_TRUE(line) << line.error().message;
  EXPECT_TRUE(line->sampling.return_step_logits && line->sampling.return_prompt_logits);
  EXPECT_EQ(line->sampling.logprobs, 5);
  const auto talk =
      read(Endpoint::kChat, R"({"messages":[{"role":"user","content":"x"}],"logprobs":4})", Caller::kOffline);
  EXPECT_EQ(talk->sampling.logprobs, 4);
  EXPECT_EQ(read(Endpoint::kCompletion, R"({"prompt":"a","return_logits":["all"]})", Caller::kOffline)
                .error()
                .param,
            "return_logits");
}

TEST(Request, BodiesThatAreNoObject) {
  for (const char* text : {"{", "", "[]", "1", "\"x\"", "{\"prompt\":NaN}", "\xff"}) {
    const auto refused = read(Endpoint::kCompletion, text);
    ASSERT_FALSE(refused) << text;
    EXPECT_EQ(refused.error().status, 400) << text;
  }
  const std::string deep = R"({"prompt":)" + std::string(5000, '[') + std::string(5000, ']') + "}";
  EXPECT_FALSE(read(Endpoint::kCompletion, deep));
}

TEST(Request, AModelWithoutTokenizerTakesIdsOnly) {
  ModelContext context = test_context();
  context.tokenizer = nullptr;
  context.chat_template = nullptr;
  const auto body = [](const char* text) { return *read_body(text); };
  EXPECT_TRUE(read_request(Endpoint::kCompletion, body(R"({"prompt":[1,2]})"), context));
  EXPECT_EQ(read_request(Endpoint::kCompletion, body(R"({"prompt":"a"})"), context).error().param, "prompt");
  EXPECT_EQ(read_request(Endpoint::kCompletion, body(R"({"prompt":[1],"stop":"x"})"), context).error().param,
            "stop");
  EXPECT_EQ(read_request(Endpoint::kChat, body(R"({"messages":[{"role":"user","content":"x"}]})"), context)
                .error()
                .param,
            "messages");
}

}  // namespace
}  // namespace plimsoll::serve
