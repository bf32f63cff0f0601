// SPDX-License-Identifier: Apache-2.0
// /v1/embeddings from a request's bytes to the answer's, over a scripted engine and without a socket.
#include "serve/embeddings.h"

#include <gtest/gtest.h>

#include "serve/routes.h"
#include "tests/serve/doubles.h"

namespace plimsoll::serve {
namespace {

class EmbeddingsTest : public ::testing::Test {
 protected:
  EmbeddingsTest() {
    context_.embedding = EmbeddingFacts{.dimensions = 3};
    routes_ = std::make_unique<Routes>(context_, loop_, metrics_, RouteOptions{});
  }

  std::shared_ptr<KeptAnswer> call(const std::string& body, const std::string& path = "/v1/embeddings") {
    auto answer = std::make_shared<KeptAnswer>();
    routes_->handle({.method = "POST", .path = path, .query = {}, .headers = {}, .body = body}, answer);
    answer->wait();
    return answer;
  }
  Json ask(const std::string& fields) { return call("{" + fields + "}")->json(); }
  // Status and the field that the error names.
  void expect_refused(const std::string& fields, const std::string& param, const std::string& part) {
    const auto answer = call("{" + fields + "}");
    EXPECT_EQ(answer->response.status, 400) << fields;
    const Json error = answer->json()["error"];
    EXPECT_EQ(error["param"], Json(param)) << fields;
    EXPECT_NE(error["message"].as_string()->find(part), std::string::npos) << dump(error);
  }
  std::vector<std::vector<TokenId>> inputs(const std::string& fields) {
    const auto body = parse_json("{" + fields + "}", "body");
    const auto request = read_embedding_request(*body, context_);
    EXPECT_TRUE(request) << (request ? "" : request.error().message);
    return request ? request->inputs : std::vector<std::vector<TokenId>>();
  }

  ModelContext context_ = test_context();
  ScriptedEngine engine_{"unused"};
  Metrics metrics_{"org/model", engine_.memory()};
  EngineLoop loop_{engine_, metrics_, EngineLoopOptions{.max_queue = 100, .max_num_seqs = 8}};
  std::unique_ptr<Routes> routes_;
};

TEST_F(EmbeddingsTest, AnswerOfOneText) {
  const Json body = ask(R"("input":"ab","model":"alias")");
  EXPECT_TRUE(body["id"].as_string()->starts_with("embd-"));
  EXPECT_EQ(body["object"], Json("list"));
  EXPECT_EQ(body["model"], Json("alias"));
  EXPECT_EQ(dump(body["data"]), R"([{"index":0,"object":"embedding","embedding":[3.0,0.5,-1.0]}])");
  EXPECT_EQ(dump(body["usage"]),
            R"({"prompt_tokens":3,"total_tokens":3,"completion_tokens":0,"prompt_tokens_details":null})");
  const std::string page = metrics_.text();
  EXPECT_NE(page.find("vllm:prompt_tokens_total{"), std::string::npos);
}

TEST_F(EmbeddingsTest, ListsOfTextsAndOfIds) {
  const Json texts = ask(R"("input":["a","abc",""])");
  ASSERT_EQ(texts["data"].size(), 3u);
  EXPECT_EQ(dump(texts["data"].items()[1]), R"({"index":1,"object":"embedding","embedding":[4.0,0.5,-1.0]})");
  EXPECT_EQ(texts["usage"]["prompt_tokens"], Json(2 + 4 + 1));
  EXPECT_EQ(ask(R"("input":[65,66])")["usage"]["prompt_tokens"], Json(2));  // ids get no special tokens
  const Json lists = ask(R"("input":[[65],[66,67]])");
  EXPECT_EQ(lists["data"].size(), 2u);
  EXPECT_EQ(lists["usage"]["total_tokens"], Json(3));
}

TEST_F(EmbeddingsTest, Base64IsOfLittleEndianFloats) {
  const Json body = ask(R"("input":"ab","encoding_format":"base64")");
  EXPECT_EQ(body.at_pointer("/data/0/embedding"), Json("AABAQAAAAD8AAIC/"));
  EXPECT_EQ(to_base64(std::vector<float>{1.0F}), "AACAPw==");
  EXPECT_EQ(to_base64(std::vector<float>{1.0F, 2.0F}), "AACAPwAAAEA=");
  EXPECT_EQ(to_base64({}), "");
}

TEST_F(EmbeddingsTest, FewerDimensionsOnlyWhereTheModelSaysSo) {
  expect_refused(R"("input":"a","dimensions":2)", "dimensions", "not trained for shorter");
  context_.embedding->has_shorter_ones = true;
  EXPECT_EQ(ask(R"("input":"a","dimensions":2)").at_pointer("/data/0/embedding").size(), 2u);
  expect_refused(R"("input":"a","dimensions":0)", "dimensions", "from 1 to 3");
  expect_refused(R"("input":"a","dimensions":4)", "dimensions", "from 1 to 3");
  context_.embedding->shorter_dimensions = {1, 3};
  expect_refused(R"("input":"a","dimensions":2)", "dimensions", "one of 1, 3");
}

TEST_F(EmbeddingsTest, WhatIsTooLongIsRefusedOrCut) {
  const std::string text(120, 'x');
  expect_refused(R"("input":")" + text + "\"", "input", "maximum context length is 100 tokens");
  const auto code = ask(R"("input":")" + text + "\"")["error"]["code"];
  EXPECT_EQ(code, Json("context_length_exceeded"));
  EXPECT_EQ(inputs(R"("truncate_prompt_tokens":-1,"input":")" + text + "\"").front().size(), 100u);
  // Special tokens stay, unless a side is asked for.
  EXPECT_EQ(inputs(R"("truncate_prompt_tokens":3,"input":"abcdef")").front(),
            (std::vector<TokenId>{256, 'a', 'b'}));
  EXPECT_EQ(inputs(R"("truncate_prompt_tokens":3,"truncation_side":"left","input":"abcdef")").front(),
            (std::vector<TokenId>{'d', 'e', 'f'}));
  EXPECT_EQ(inputs(R"("truncate_prompt_tokens":2,"input":[5,6,7])").front(), (std::vector<TokenId>{5, 6}));
  context_.embedding->truncates_left = true;
  EXPECT_EQ(inputs(R"("truncate_prompt_tokens":3,"input":"abcdef")").front(),
            (std::vector<TokenId>{256, 'e', 'f'}));
  expect_refused(R"("truncate_prompt_tokens":101,"input":"a")", "truncate_prompt_tokens", "at most");
  expect_refused(R"("truncate_prompt_tokens":0,"input":"a")", "truncate_prompt_tokens", "no room");
  expect_refused(R"("truncate_prompt_tokens":-2,"input":"a")", "truncate_prompt_tokens", "-1");
}

TEST_F(EmbeddingsTest, WhatIsWrongIsNamed) {
  expect_refused("", "input", "required");
  expect_refused(R"("input":[])", "input", "not empty");
  expect_refused(R"("input":[[]])", "input", "no token");
  expect_refused(R"("input":{"a":1})", "input", "must be a string");
  expect_refused(R"("input":["a",[1]])", "input", "strings only");
  expect_refused(R"("input":[300])", "input", "from 0 to 299");
  expect_refused(R"("input":"a","encoding_format":"bytes")", "encoding_format", "float or base64");
  expect_refused(R"("input":"a","embed_dtype":"float16")", "embed_dtype", "float32");
  expect_refused(R"("messages":[])", "messages", "give the text as input");
  EXPECT_EQ(call(R"({"input":"a","model":"other"})")->response.status, 404);
  EXPECT_EQ(call("[")->response.status, 400);
}

TEST_F(EmbeddingsTest, APathOfTheOtherKindOfModelIsNotFound) {
  for (const char* path : {"/v1/chat/completions", "/v1/completions"}) {
    const auto answer = call(R"({"prompt":"a","messages":[]})", path);
    EXPECT_EQ(answer->response.status, 404);
    EXPECT_NE(answer->response.body.find("generates no text"), std::string::npos);
  }
  context_.embedding.reset();
  const auto answer = call(R"({"input":"a"})");
  EXPECT_EQ(answer->response.status, 404);
  EXPECT_NE(answer->response.body.find("gives no embeddings"), std::string::npos);
}

TEST_F(EmbeddingsTest, AFaultOfTheEngineIsAnError) {
  engine_.refuse_prompt_that_starts_with = 9;
  EXPECT_NE(call(R"({"input":[[1],[9]]})")->response.status, 200);
}

}  // namespace
}  // namespace plimsoll::serve
