// SPDX-License-Identifier: Apache-2.0
// Whole answers, from a request's bytes to the answer's, over a scripted engine and without a socket.
#include "serve/routes.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "tests/serve/doubles.h"
#include "tests/testing/made_files.h"

namespace plimsoll::serve {
namespace {

using Answer = std::shared_ptr<KeptAnswer>;

class RoutesTest : public ::testing::Test {
 protected:
  void open(std::string script, RouteOptions options = {}, std::int64_t max_queue = 100,
            int max_num_seqs = 8) {
    engine_ = std::make_unique<ScriptedEngine>(std::move(script));
    engine_->artifact = artifact_;
    metrics_ = std::make_unique<Metrics>("org/model", engine_->memory());
    loop_ = std::make_unique<EngineLoop>(
        *engine_, *metrics_, EngineLoopOptions{.max_queue = max_queue, .max_num_seqs = max_num_seqs});
    options.version = "1.2.3";
    routes_ = std::make_unique<Routes>(context_, *loop_, *metrics_, std::move(options));
  }

  Answer send(const std::string& method, const std::string& path, const std::string& body = {},
              http::Headers headers = {}) {
    auto answer = std::make_shared<KeptAnswer>();
    routes_->handle(
        {.method = method, .path = path, .query = {}, .headers = std::move(headers), .body = body}, answer);
    return answer;
  }
  Answer call(const std::string& method, const std::string& path, const std::string& body = {},
              http::Headers headers = {}) {
    auto answer = send(method, path, body, std::move(headers));
    answer->wait();
    return answer;
  }
  Answer chat(const std::string& fields) {
    return call("POST", "/v1/chat/completions",
                R"({"messages":[{"role":"user","content":"hi"}],)" + fields + "}");
  }
  Answer completion(const std::string& fields) {
    return call("POST", "/v1/completions", R"({"prompt":"ab",)" + fields + "}");
  }
  double metric(const std::string& name) {
    const std::string text = metrics_->text();
    const auto at = text.find("\n" + name + "{");
    EXPECT_NE(at, std::string::npos) << name;
    return std::stod(text.substr(text.find("} ", at) + 2));
  }

  ModelContext context_ = test_context();
  std::shared_ptr<const artifact::Artifact> artifact_;
  std::unique_ptr<ScriptedEngine> engine_;
  std::unique_ptr<Metrics> metrics_;
  std::unique_ptr<EngineLoop> loop_;
  std::unique_ptr<Routes> routes_;
};

TEST_F(RoutesTest, ChatAnswer) {
  open("Hello");
  const auto answer = chat(R"("max_tokens":50)");
  EXPECT_EQ(answer->response.status, 200);
  const Json body = answer->json();
  EXPECT_EQ(body["object"], Json("chat.completion"));
  EXPECT_TRUE(body["id"].as_string()->starts_with("chatcmpl-"));
  EXPECT_EQ(dump(body["choices"]),
            R"([{"index":0,"message":{"role":"assistant","content":"Hello","refusal":null},"logprobs":null,)"
            R"("finish_reason":"stop","stop_reason":null}])");
  EXPECT_EQ(
      dump(body["usage"]),
      R"({"prompt_tokens":19,"completion_tokens":6,"total_tokens":25,"prompt_tokens_details":{"cached_tokens":0}})");
}

TEST_F(RoutesTest, CompletionAnswer) {
  open("Hello");
  const Json body = completion(R"("max_tokens":3,"return_token_ids":true)")->json();
  EXPECT_EQ(body["object"], Json("text_completion"));
  EXPECT_EQ(dump(body["choices"]),
            R"([{"index":0,"text":"Hel","logprobs":null,"finish_reason":"length","stop_reason":null,)"
            R"("token_ids":[72,101,108],"prompt_token_ids":[256,97,98]}])");
}

TEST_F(RoutesTest, ChoicesAreNumberedByPromptAndK) {
  open("xy");
  const Json body = call("POST", "/v1/completions",
                         R"({"prompt":["a","bc"],"n":2,"max_tokens":1,"seed":7,"add_special_tokens":false})")
                        ->json();
  ASSERT_EQ(body["choices"].size(), 4u);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(body["choices"].items()[i]["index"], Json(i));
  EXPECT_EQ(body["usage"]["prompt_tokens"], Json(3));
  EXPECT_EQ(body["usage"]["completion_tokens"], Json(4));
  // The choices of one prompt have seeds of their own, or they would be equal.
  EXPECT_EQ(engine_->added[0].seed, 7u);
  EXPECT_EQ(engine_->added[1].seed, 8u);
  EXPECT_EQ(engine_->added[2].seed, 7u);
}

TEST_F(RoutesTest, ChatStream) {
  open("Hi");
  const auto answer = chat(R"("stream":true,"stream_options":{"include_usage":true})");
  const auto events = answer->events();
  ASSERT_EQ(events.size(), 5u);  // role, H, i, the end, usage
  EXPECT_EQ(http::header(answer->response.headers, "content-type").substr(0, 17), "text/event-stream");
  EXPECT_EQ(
      dump(events[0]["choices"]),
      R"([{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}])");
  EXPECT_EQ(dump(events[1]["choices"]),
            R"([{"index":0,"delta":{"content":"H"},"logprobs":null,"finish_reason":null}])");
  EXPECT_EQ(events[3].at_pointer("/choices/0/finish_reason"), Json("stop"));
  EXPECT_EQ(events[4]["choices"].size(), 0u);
  EXPECT_TRUE(events[4]["choices"].is_array());
  EXPECT_EQ(events[4]["usage"]["completion_tokens"], Json(3));
  for (const Json& event : events) {
    EXPECT_EQ(event["id"], events[0]["id"]);
    EXPECT_EQ(event["object"], Json("chat.completion.chunk"));
  }
}

TEST_F(RoutesTest, CompletionStreamWithoutUsage) {
  open("Hi");
  const auto events = completion(R"("stream":true,"max_tokens":2)")->events();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(dump(events[0]["choices"]), R"([{"index":0,"text":"H","logprobs":null,"finish_reason":null}])");
  EXPECT_EQ(dump(events[1]["choices"]),
            R"([{"index":0,"text":"i","logprobs":null,"finish_reason":"length","stop_reason":null}])");
}

TEST_F(RoutesTest, ContinuousUsage) {
  open("Hi");
  const auto events =
      chat(
          R"("stream":true,"max_tokens":2,"stream_options":{"include_usage":true,"continuous_usage_stats":true})")
          ->events();
  std::int64_t last = 0;
  for (const Json& event : events) {
    const auto now = event["usage"]["completion_tokens"].as_integer();
    ASSERT_TRUE(now);
    EXPECT_GE(*now, last);
    last = *now;
  }
  EXPECT_EQ(last, 2);
}

TEST_F(RoutesTest, AStopStringNeverLeaksInAStream) {
  open("ab<end>cd");
  const auto events = completion(R"("stream":true,"stop":["<end>"],"max_tokens":50)")->events();
  std::string text;
  for (const Json& event : events) text += *event.at_pointer("/choices/0/text").as_string();
  EXPECT_EQ(text, "ab");
  EXPECT_EQ(events.back().at_pointer("/choices/0/finish_reason"), Json("stop"));
  EXPECT_EQ(events.back().at_pointer("/choices/0/stop_reason"), Json("<end>"));
  EXPECT_EQ(events.size(), 7u);  // one event per token, also for those whose text is held back
}

TEST_F(RoutesTest, StopTokenIds) {
  open("abc");
  const Json body = completion(R"("stop_token_ids":[98],"max_tokens":50)")->json();
  EXPECT_EQ(body.at_pointer("/choices/0/text"), Json("a"));
  EXPECT_EQ(body.at_pointer("/choices/0/stop_reason"), Json(98));
}

TEST_F(RoutesTest, ChatLogprobs) {
  open("Hi");
  const Json body = chat(R"("logprobs":true,"top_logprobs":2,"max_tokens":2)")->json();
  const Json& content = body.at_pointer("/choices/0/logprobs/content");
  ASSERT_EQ(content.size(), 2u);
  EXPECT_EQ(
      dump(content.items()[0]),
      R"({"token":"H","logprob":-0.5,"bytes":[72],"top_logprobs":[{"token":"H","logprob":-0.5,"bytes":[72]},)"
      R"({"token":"A","logprob":-1.5,"bytes":[65]}]})");
}

TEST_F(RoutesTest, EchoWithLogprobsAndNothingGenerated) {
  open("xyz");
  const Json body = completion(R"("max_tokens":0,"echo":true,"logprobs":1)")->json();
  EXPECT_EQ(body.at_pointer("/choices/0/text"), Json("ab"));
  EXPECT_EQ(dump(body.at_pointer("/choices/0/logprobs/tokens")), R"(["<s>","\u0001","\u0002"])");
  EXPECT_EQ(dump(body.at_pointer("/choices/0/logprobs/token_logprobs")), "[null,-2.0,-2.0]");
  EXPECT_EQ(dump(body.at_pointer("/choices/0/logprobs/text_offset")), "[0,3,4]");
  EXPECT_EQ(body.at_pointer("/choices/0/logprobs/top_logprobs").size(), 3u);
  EXPECT_EQ(body["usage"]["completion_tokens"], Json(0));
  EXPECT_FALSE(body.at_pointer("/choices/0").contains("prompt_logprobs"));  // not asked for
}

TEST_F(RoutesTest, TokensAsIds) {
  open("Hi");
  const Json body = completion(R"("logprobs":1,"max_tokens":1,"return_tokens_as_token_ids":true)")->json();
  EXPECT_EQ(
      dump(body.at_pointer("/choices/0/logprobs")),
      R"({"tokens":["token_id:72"],"token_logprobs":[-0.5],"top_logprobs":[{"token_id:72":-0.5,"token_id:65":-1.5}],)"
      R"("text_offset":[0]})");
}

TEST_F(RoutesTest, PromptLogprobs) {
  open("Hi");
  const Json body = completion(R"("prompt_logprobs":1,"max_tokens":1)")->json();
  EXPECT_EQ(
      dump(body.at_pointer("/choices/0/prompt_logprobs/1")),
      R"({"1":{"logprob":-2.0,"rank":7,"decoded_token":"\u0001"},"66":{"logprob":-1.0,"rank":1,"decoded_token":"B"}})");
  EXPECT_TRUE(body.at_pointer("/choices/0/prompt_logprobs/0").is_null());
}

TEST_F(RoutesTest, AFaultMidwayEndsTheStreamWithAnError) {
  open("Hello", {.fail_after_tokens = 2});
  const auto events = chat(R"("stream":true,"user":"plimsoll-fault")")->events();
  ASSERT_EQ(events.size(), 4u);  // role, two tokens, the error
  EXPECT_TRUE(events.back()["error"].is_object());
  EXPECT_EQ(chat(R"("user":"plimsoll-fault")")->response.status, 500);
  EXPECT_EQ(chat(R"("user":"somebody")")->response.status, 200);
}

TEST_F(RoutesTest, ARefusalOfTheEngineEndsOneRequestOnly) {
  open("Hello");
  engine_->refuse_prompt_that_starts_with = 9;
  const auto refused = call("POST", "/v1/completions", R"({"prompt":[[1],[9]],"stream":true})");
  EXPECT_EQ(refused->response.status, 400);
  EXPECT_EQ(call("POST", "/v1/completions", R"({"prompt":[1]})")->response.status, 200);
  loop_->stop(std::chrono::seconds(10));
  EXPECT_EQ(loop_->num_unfinished(), 0);
}

TEST_F(RoutesTest, AFailedEngineIsTold) {
  open("Hello");
  engine_->throws_in_step = true;
  EXPECT_EQ(chat(R"("max_tokens":2)")->response.status, 503);
  EXPECT_EQ(call("GET", "/health")->response.status, 503);
  EXPECT_EQ(chat(R"("max_tokens":2)")->response.status, 503);
}

// Of the model's own weights, and of no other file that was ever mapped.
TEST_F(RoutesTest, WeightsThatAreCutEndTheEngine) {
  constexpr std::size_t kBytes = 1 << 16;
  const testing::MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("model.safetensors",
             testing::safetensors_file(R"({"w":{"dtype":"U8","shape":[65536],"data_offsets":[0,65536]}})",
                                       std::string(kBytes, 'x')));
  folder.put("other", std::string(kBytes, 'x'));
  const auto opened = artifact::open(folder.path().string());
  const auto other = MappedFile::open((folder.path() / "other").string());
  ASSERT_TRUE(opened && other);
  artifact_ = *opened;
  const auto weights = artifact_->data(artifact_->tensors().front());
  ASSERT_TRUE(weights);
  open("Hello");
  std::filesystem::resize_file(folder.path() / "other", 1);
  EXPECT_EQ(other->bytes().back(), std::byte{0});
  EXPECT_EQ(chat(R"("max_tokens":2)")->response.status, 200);
  std::filesystem::resize_file(folder.path() / "model.safetensors", 4096);
  EXPECT_EQ(weights->back(), std::byte{0});
  EXPECT_EQ(chat(R"("max_tokens":2)")->response.status, 503);
  EXPECT_EQ(call("GET", "/health")->response.status, 503);
}

TEST_F(RoutesTest, ADisconnectFreesTheRequest) {
  open(std::string(90, 'x'));
  engine_->close_gate();
  const auto answer = send("POST", "/v1/completions", R"({"prompt":"ab","stream":true,"max_tokens":90})");
  answer->disconnect();
  engine_->open_gate();
  loop_->stop(std::chrono::seconds(10));
  EXPECT_EQ(metric("vllm:num_requests_running"), 0);
  EXPECT_EQ(metric("plimsoll:kv_blocks_used"), 0);
  EXPECT_LE(answer->chunks.size(), 1u);
}

TEST_F(RoutesTest, AFullQueueRefuses) {
  open("Hello", {}, /*max_queue=*/1, /*max_num_seqs=*/1);
  engine_->close_gate();
  const auto first = send("POST", "/v1/completions", R"({"prompt":"a"})");
  const auto second = send("POST", "/v1/completions", R"({"prompt":"b"})");
  const auto third = call("POST", "/v1/completions", R"({"prompt":"c"})");
  EXPECT_EQ(third->response.status, 503);
  EXPECT_EQ(third->json()["error"]["code"], Json("queue_full"));
  EXPECT_EQ(http::header(third->response.headers, "retry-after"), "1");
  engine_->open_gate();
  first->wait();
  second->wait();
  EXPECT_EQ(first->response.status, 200);
  EXPECT_EQ(second->response.status, 200);
}

TEST_F(RoutesTest, DrainingRefusesNewRequestsAndEndsOldOnes) {
  open("Hello");
  engine_->close_gate();
  const auto old = send("POST", "/v1/completions", R"({"prompt":"a"})");
  routes_->begin_drain();
  loop_->begin_drain();
  EXPECT_EQ(completion(R"("n":1)")->response.status, 503);
  EXPECT_EQ(call("GET", "/ready")->response.status, 503);
  engine_->open_gate();
  old->wait();
  EXPECT_EQ(old->json().at_pointer("/choices/0/text"), Json("Hello"));
}

TEST_F(RoutesTest, MetricsCount) {
  open("Hello");
  completion(R"("max_tokens":3)");
  completion(R"("max_tokens":50)");
  loop_->stop(std::chrono::seconds(10));
  EXPECT_EQ(metric("vllm:prompt_tokens_total"), 6);
  EXPECT_EQ(metric("vllm:generation_tokens_total"), 9);
  EXPECT_EQ(metric("plimsoll:kv_blocks_total"), 100);
  const std::string text = metrics_->text();
  EXPECT_NE(text.find(R"(finished_reason="length",model_name="org/model"} 1)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(finished_reason="stop",model_name="org/model"} 1)"), std::string::npos) << text;
  EXPECT_NE(text.find("vllm:time_to_first_token_seconds_count{"), std::string::npos);
  EXPECT_NE(text.find("process_resident_memory_bytes "), std::string::npos);
}

TEST_F(RoutesTest, Models) {
  open("");
  const Json list = call("GET", "/v1/models")->json();
  EXPECT_EQ(list["object"], Json("list"));
  ASSERT_EQ(list["data"].size(), 2u);
  EXPECT_EQ(list.at_pointer("/data/0/id"), Json("org/model"));
  EXPECT_EQ(list.at_pointer("/data/0/max_model_len"), Json(100));
  EXPECT_EQ(call("GET", "/v1/models/org/model")->json()["id"], Json("org/model"));
  EXPECT_EQ(call("GET", "/v1/models/org%2Fmodel")->json()["id"], Json("org/model"));
  const auto absent = call("GET", "/v1/models/nope");
  EXPECT_EQ(absent->response.status, 404);
  for (const char* key : {"message", "type", "param", "code"})
    EXPECT_TRUE(absent->json()["error"].contains(key));
}

TEST_F(RoutesTest, PathsAndMethods) {
  open("");
  EXPECT_EQ(call("GET", "/health")->response.status, 200);
  EXPECT_EQ(call("POST", "/ping")->response.status, 200);
  EXPECT_EQ(call("GET", "/ready")->response.status, 200);
  EXPECT_EQ(call("GET", "/version")->json()["version"], Json("1.2.3"));
  EXPECT_EQ(call("GET", "/load")->json()["server_load"], Json(0));
  EXPECT_EQ(call("GET", "/v1/nope")->response.status, 404);
  const auto wrong = call("GET", "/v1/chat/completions");
  EXPECT_EQ(wrong->response.status, 405);
  EXPECT_EQ(http::header(wrong->response.headers, "allow"), "POST");
  EXPECT_EQ(call("POST", "/v1/chat/completions", "{")->response.status, 400);
}

TEST_F(RoutesTest, ApiKey) {
  open("Hi", {.api_keys = {"secret", "other"}});
  const auto with = [&](const std::string& value) {
    return call("GET", "/v1/models", "", {{"Authorization", value}})->response.status;
  };
  EXPECT_EQ(with("Bearer secret"), 200);
  EXPECT_EQ(with("Bearer other"), 200);
  EXPECT_EQ(with("Bearer secret2"), 401);
  EXPECT_EQ(with("Bearer secre"), 401);
  EXPECT_EQ(with("Bearer "), 401);
  EXPECT_EQ(with("secret"), 401);
  const auto none = call("POST", "/v1/chat/completions", "{}");
  EXPECT_EQ(none->response.status, 401);
  EXPECT_EQ(none->json()["error"]["code"], Json("invalid_api_key"));
  EXPECT_EQ(call("GET", "/health")->response.status, 200);
  EXPECT_EQ(call("GET", "/metrics")->response.status, 200);
}

TEST_F(RoutesTest, RequestIds) {
  open("Hi", {.request_id_headers = true});
  const auto given = call("POST", "/v1/completions", R"({"prompt":"a"})", {{"X-Request-Id", "abc"}});
  EXPECT_EQ(given->json()["id"], Json("cmpl-abc"));
  EXPECT_EQ(http::header(given->response.headers, "x-request-id"), "abc");
  const auto bad = call("POST", "/v1/completions", R"({"prompt":"a"})", {{"X-Request-Id", "a b"}});
  EXPECT_EQ(bad->json()["id"].as_string()->size(), std::string("cmpl-").size() + 32);
}

TEST_F(RoutesTest, TokenizeAndBack) {
  open("");
  const Json plain = call("POST", "/tokenize", R"({"prompt":"hi","add_special_tokens":false})")->json();
  EXPECT_EQ(dump(plain), R"({"count":2,"max_model_len":100,"tokens":[104,105],"token_strs":["h","i"]})");
  EXPECT_EQ(call("POST", "/tokenize", R"({"prompt":"hi"})")->json()["count"], Json(3));
  EXPECT_EQ(call("POST", "/tokenize", R"({"messages":[{"role":"user","content":"hi"}]})")->json()["count"],
            Json(19));
  EXPECT_EQ(call("POST", "/detokenize", R"({"tokens":[104,105]})")->json()["prompt"], Json("hi"));
  for (const char* bad : {R"({"tokens":[-1]})", R"({"tokens":[258]})", R"({"tokens":"x"})", "{}"})
    EXPECT_EQ(call("POST", "/detokenize", bad)->response.status, 400) << bad;
  EXPECT_EQ(call("POST", "/tokenize", "{}")->response.status, 400);
}

TEST_F(RoutesTest, ALargeBodyIsReadBesideTheServersThread) {
  open("Hi");
  context_.max_model_len = 1'000'000;
  const auto answer =
      call("POST", "/v1/completions", R"({"max_tokens":1,"prompt":")" + std::string(200'000, 'a') + "\"}");
  EXPECT_EQ(answer->response.status, 200);
  EXPECT_EQ(answer->json()["usage"]["prompt_tokens"], Json(200'001));
}

}  // namespace
}  // namespace plimsoll::serve
