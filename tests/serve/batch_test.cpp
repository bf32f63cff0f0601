// SPDX-License-Identifier: Apache-2.0
#include "serve/batch.h"

#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <sstream>

#include "base/mapped_file.h"
#include "tests/serve/doubles.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::serve {
namespace {

std::string request(const std::string& id, const std::string& fields,
                    const std::string& path = "completions") {
  return R"({"custom_id":")" + id + R"(","method":"POST","url":"/v1/)" + path + R"(","body":{)" + fields +
         "}}\n";
}

/// What one run over `requests` wrote, by custom_id ("": none).
std::multimap<std::string, Json> by_id(const std::string& lines) {
  std::multimap<std::string, Json> result;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const auto parsed = parse_json(line, "line");
    EXPECT_TRUE(parsed) << line;
    if (!parsed) continue;
    const std::string* id = (*parsed)["custom_id"].as_string();
    result.emplace(id ? *id : "", *parsed);
  }
  return result;
}

Result<Batch> open_batch(const std::string& requests, const std::string& output) {
  std::istringstream in(requests);
  return Batch::open(in, output);
}

struct Finished {
  BatchCounts counts;
  std::multimap<std::string, Json> answers;  // by custom_id
};

Finished run_all(const std::string& requests) {
  auto batch = open_batch(requests, "");
  EXPECT_TRUE(batch);
  LoadedModel model = scripted_model("Hello");
  std::ostringstream out;
  EXPECT_TRUE(batch->run(model, out, {}));
  return {batch->counts(), by_id(out.str())};
}

TEST(Batch, AnswersHaveTheFormOfTheApi) {
  const std::string requests =
      request("a", R"("prompt":"x","max_tokens":4)") +
      request("b", R"("messages":[{"role":"user","content":"hi"}],"max_tokens":9)", "chat/completions") +
      "\n" + request("c", R"("prompt":["x","y"],"n":2,"max_tokens":1)");
  const auto [counts, answers] = run_all(requests);
  EXPECT_EQ(counts.requests, 3);
  EXPECT_EQ(counts.answered, 3);
  EXPECT_EQ(counts.failed, 0);
  EXPECT_EQ(counts.completion_tokens, 4 + 6 + 4);
  const Json& a = answers.find("a")->second;
  EXPECT_EQ(a["error"], Json());
  EXPECT_EQ(a.at_pointer("/response/status_code"), Json(200));
  EXPECT_EQ(a.at_pointer("/response/body/object"), Json("text_completion"));
  EXPECT_EQ(a.at_pointer("/response/body/choices/0/text"), Json("Hell"));
  EXPECT_EQ("batch_req_" + *a.at_pointer("/response/request_id").as_string(), *a["id"].as_string());
  EXPECT_EQ(answers.find("b")->second.at_pointer("/response/body/choices/0/message/content"), Json("Hello"));
  EXPECT_EQ(answers.find("c")->second.at_pointer("/response/body/choices").size(), 4u);
}

TEST(Batch, ALineThatCannotBeDoneIsToldOfAndTheWorkGoesOn) {
  const std::string requests =
      "{\n" + request("refused", R"("prompt":"x","temperature":-1)") +
      R"({"custom_id":"get","method":"GET","url":"/v1/models"})"
      "\n"
      R"({"method":"POST","url":"/v1/completions","body":{}})"
      "\n"
      R"({"custom_id":"bare","method":"POST","url":"/v1/completions"})"
      "\n" +
      request("nowhere", R"("prompt":"x")", "nowhere") + request("stream", R"("prompt":"x","stream":true)") +
      request("other", R"("prompt":"x","model":"gpt-9")") + request("good", R"("prompt":"x","max_tokens":1)");
  const Finished run = run_all(requests);
  const auto& answers = run.answers;
  EXPECT_EQ(run.counts.answered, 9);
  EXPECT_EQ(run.counts.failed, 8);
  const auto code = [&](const char* id) { return answers.find(id)->second.at_pointer("/error/code"); };
  const auto status = [&](const char* id) {
    return answers.find(id)->second.at_pointer("/response/status_code");
  };
  EXPECT_EQ(answers.count(""), 2u);
  EXPECT_EQ(answers.find("")->second["response"], Json());
  EXPECT_EQ(code("get"), Json("invalid_method"));
  EXPECT_EQ(code("bare"), Json("missing_required_parameter"));
  EXPECT_EQ(code("stream"), Json("invalid_request"));
  EXPECT_EQ(code("other"), Json("model_not_found"));
  EXPECT_EQ(status("other"), Json(404));
  EXPECT_EQ(status("nowhere"), Json(404));
  EXPECT_EQ(status("refused"), Json(400));
  EXPECT_EQ(answers.find("refused")->second.at_pointer("/response/body/error/param"), Json("temperature"));
  EXPECT_EQ(answers.find("refused")->second.at_pointer("/error/line"), Json(2));
  EXPECT_EQ(code("good"), Json());
}

TEST(Batch, AByteOrderMarkBeforeTheFirstRequestIsNoPartOfIt) {
  const Finished run = run_all("\xEF\xBB\xBF" + request("a", R"("prompt":"x","max_tokens":1)"));
  EXPECT_EQ(run.counts.failed, 0);
  EXPECT_EQ(run.answers.count("a"), 1u);
}

TEST(Batch, ANameThatTheModelHasNotIsToldTheOneItHas) {
  const Finished run = run_all(request("a", R"("prompt":"x","model":"gpt-9")"));
  const std::string* message = run.answers.find("a")->second.at_pointer("/error/message").as_string();
  ASSERT_TRUE(message);
  EXPECT_NE(message->find("The model `gpt-9` does not exist; here it is called `"), std::string::npos);
  EXPECT_NE(message->find("--served-model-name"), std::string::npos);
}

TEST(Batch, TwoRequestsOfOneCustomIdAreRefusedBeforeAnythingIsDone) {
  const auto batch = open_batch(request("a", "") + request("b", "") + request("a", ""), "");
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, ErrorCode::kMalformed);
  EXPECT_EQ(batch.error().where, "lines 1 and 3");
}

// Without a newline at its end, what is no beginning of an answer stays.
TEST(Batch, AFileThatEndsInSomethingElseIsLeftAsItIs) {
  const testing::MadeFolder folder;
  const std::string path = (folder.path() / "thesis.txt").string();
  for (const char* text : {"my thesis", "{\"id\":1}", "{\"id\":\"batch_reg"}) {
    std::ofstream(path, std::ios::binary) << text;
    const auto batch = open_batch(request("a", R"("prompt":[5],"max_tokens":1)"), path);
    ASSERT_FALSE(batch) << text;
    EXPECT_EQ(batch.error().code, ErrorCode::kMalformed);
    EXPECT_EQ(*read_file(path), text);
  }
  for (const char* text : {"{", "{\"id\":\"batch_req_77\",\"custom"}) {
    std::ofstream(path, std::ios::binary) << text;
    EXPECT_TRUE(open_batch(request("a", R"("prompt":[5],"max_tokens":1)"), path)) << text;
    EXPECT_EQ(*read_file(path), "");
  }
}

TEST(Batch, AFileThatHoldsSomethingElseIsNotAddedTo) {
  const testing::MadeFolder folder;
  folder.put("requests.jsonl", request("a", ""));
  const auto beside = open_batch(request("a", ""), (folder.path() / "requests.jsonl").string());
  ASSERT_FALSE(beside) << "a request is no answer";
  EXPECT_NE(beside.error().where.find("line 1"), std::string::npos);
  folder.put("answers.jsonl", "{\"custom_id\":\"a\",\"response\":{},\"error\":null}\nnotes\n");
  const auto batch = open_batch(request("a", ""), (folder.path() / "answers.jsonl").string());
  ASSERT_FALSE(batch);
  EXPECT_EQ(batch.error().code, ErrorCode::kMalformed);
  EXPECT_NE(batch.error().where.find("line 2"), std::string::npos);
}

TEST(Batch, AnEngineThatFailsLeavesTheRestOpen) {
  auto batch = open_batch(request("a", R"("prompt":"x")"), "");
  ASSERT_TRUE(batch);
  auto engine = std::make_unique<ScriptedEngine>("Hello");
  engine->throws_in_step = true;
  LoadedModel model = scripted_model("");
  model.engine = std::move(engine);
  std::ostringstream out;
  const Status done = batch->run(model, out, {});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code, ErrorCode::kInternal);
  EXPECT_EQ(out.str(), "");
}

/// The choices of every answer, by custom_id.
std::map<std::string, std::string> choices(const std::string& path) {
  std::map<std::string, std::string> result;
  for (const auto& [id, answer] : by_id(read_file(path).value_or("")))
    EXPECT_TRUE(
        result.emplace(id, dump(answer.at_pointer("/response/body/choices")) + dump(answer["error"])).second);
  return result;
}

// The file of answers is cut after every count of bytes that a kill may leave, line ends and others.
TEST(Batch, CutAnywhereAndStartedAgainItHasTheSameAnswers) {
  LoadOptions load;
  load.model = testing::golden_path("models/llama_f32");
  load.engine.max_model_len = 128;
  load.engine.kv_cache_bytes = Bytes(1 << 20);
  load.engine.threads = 1;
  auto model = load_model(load);
  ASSERT_TRUE(model) << model.error().describe();
  std::string requests = "no request\n";
  for (int i = 0; i < 6; ++i)
    requests +=
        request("r" + std::to_string(i), R"("prompt":[)" + std::to_string(3 + i) +
                                             R"(,5,7],"max_tokens":8,"seed":1,"return_token_ids":true)");
  const testing::MadeFolder folder;
  const std::string path = (folder.path() / "answers.jsonl").string();
  const auto answer = [&] {
    auto batch = open_batch(requests, path);
    EXPECT_TRUE(batch);
    std::ofstream out(path, std::ios::app | std::ios::binary);
    EXPECT_TRUE(batch->run(*model, out, {.max_num_seqs = 2}));
    EXPECT_EQ(batch->counts().answered, 7);
    EXPECT_EQ(batch->counts().failed, 1);
    return batch->counts().answered_before;
  };
  EXPECT_EQ(answer(), 0);
  const auto whole = choices(path);
  EXPECT_EQ(whole.size(), 7u);
  EXPECT_EQ(answer(), 7);
  EXPECT_EQ(choices(path), whole);
  const std::string all = read_file(path).value();
  for (std::size_t bytes = 0; bytes <= all.size(); bytes += all.size() / 9) {
    ASSERT_TRUE(write_file(path, all.substr(0, bytes)));
    const auto kept = std::ranges::count(all.substr(0, bytes), '\n');
    EXPECT_EQ(answer(), kept) << bytes;
    EXPECT_EQ(choices(path), whole) << bytes;
  }
}

}  // namespace
}  // namespace plimsoll::serve
