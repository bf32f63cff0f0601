// SPDX-License-Identifier: Apache-2.0
#include "serve/offline.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "base/cores.h"
#include "base/mapped_file.h"
#include "serve/measure.h"
#include "tests/serve/doubles.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::serve {
namespace {

Offline offline_with(std::string script) {
  return Offline(scripted_model(std::move(script)));
}

TEST(Offline, LinesKeepTheirOrderWhateverTheBatch) {
  const std::string lines = R"({"prompt_token_ids":[1,2],"max_tokens":4})"
                            "\n\n"
                            R"({"prompt":"a","max_tokens":1,"logprobs":2})"
                            "\n"
                            R"({"prompt":"a","stop":"lo"})"
                            "\n";
  std::string first;
  for (const int batch : {1, 2, 8}) {
    Offline offline = offline_with("Hello");
    std::istringstream in(lines);
    std::ostringstream out;
    EXPECT_EQ(offline.run_lines(in, out, batch).value(), 0);
    if (batch == 1) first = out.str();
    EXPECT_EQ(out.str(), first) << batch;
  }
  EXPECT_EQ(
      first,
      R"({"prompt_token_ids":[1,2],"choices":[{"index":0,"token_ids":[72,101,108,108],"text":"Hell","finish_reason":"length"}]})"
      "\n"
      R"({"prompt_token_ids":[256,97],"choices":[{"index":0,"token_ids":[72],"text":"H","finish_reason":"length",)"
      R"("logprobs":[{"token_id":72,"logprob":-0.5,"top":[[72,-0.5],[65,-1.5]]}]}]})"
      "\n"
      R"({"prompt_token_ids":[256,97],"choices":[{"index":0,"token_ids":[72,101,108,108,111],"text":"Hel","finish_reason":"stop"}]})"
      "\n");
}

TEST(Offline, ALineThatIsRefusedDoesNotStopTheRest) {
  Offline offline = offline_with("Hello");
  std::istringstream in(
      "{\n{\"prompt_token_ids\":[999]}\n{\"prompt\":\"a\",\"stream\":true}\n{\"prompt\":[\"a\",\"b\"]}\n{"
      "\"prompt\":\"a\"}\n");
  std::ostringstream out;
  EXPECT_EQ(offline.run_lines(in, out, 2).value(), 4);
  std::istringstream answers(out.str());
  std::string line;
  for (int i = 0; i < 4; ++i) {
    std::getline(answers, line);
    EXPECT_TRUE(line.starts_with("{\"error\":{\"message\":")) << line;
  }
  std::getline(answers, line);
  EXPECT_NE(line.find("\"text\":\"Hello\""), std::string::npos) << line;
}

TEST(Offline, TheTextOfOneRequestComesAsItIsMade) {
  Offline offline = offline_with("Hello");
  std::string heard;
  const auto answer = offline.run_one(*parse_json(R"({"messages":[{"role":"user","content":"x"}]})", "test"),
                                      [&](std::string_view text) { heard += std::string(text) + "|"; });
  ASSERT_TRUE(answer);
  EXPECT_EQ(heard, "H|e|l|l|o|");
}

TEST(LoadedModel, StartupLines) {
  const auto lines = startup_lines(ScriptedEngine("").memory(), 1.25);
  ASSERT_EQ(lines.size(), 6u);
  EXPECT_EQ(lines[0], "Model loading took 1.00 GiB memory and 1.250000 seconds");
  EXPECT_EQ(lines[1], "Using int8 data type to store kv cache.");
  EXPECT_EQ(lines[2], "Available KV cache memory: 2.00 GiB");
  EXPECT_EQ(lines[3], ScriptedEngine("").memory().capacity_line);
  EXPECT_EQ(
      lines[4],
      R"(plimsoll memory: {"weights_bytes":1073741824,"kv_cache_bytes":2147483648,"kv_bytes_per_token":23040,)"
      R"("num_blocks":100,"block_size":16,"kv_tokens":1600})");
  EXPECT_EQ(lines[5], "plimsoll threads: 1 (" + describe(read_cores()) + ")");
}

LoadOptions plain_options() {
  LoadOptions options;
  options.model = testing::golden_path("models/llama_plain");
  options.engine.mode = engine::ComputeMode::kFloat32;
  options.engine.max_model_len = 512;
  options.engine.num_blocks = 64;
  options.engine.threads = 2;
  return options;
}

TEST(Offline, GreedyTokensOfTheReference) {
  const auto expected = read_json_file(testing::golden_path("models/llama_plain") + "/expected.json");
  ASSERT_TRUE(expected);
  auto offline = Offline::load(plain_options());
  ASSERT_TRUE(offline) << offline.error().describe();
  std::string lines;
  std::vector<Json> greedy;
  for (const char* name : {"p0", "p1", "p2"}) {
    const Json& prompt = (*expected)["prompts"][name];
    ASSERT_TRUE(prompt["ids"].is_array());
    lines += dump(Json::object({{"prompt_token_ids", prompt["ids"]},
                                {"max_tokens", 48},
                                {"temperature", 0},
                                {"ignore_eos", true},
                                {"return_logits", Json(Json::Array{"steps", "prompt"})}})) +
             "\n";
    greedy.push_back(prompt["greedy48"]);
  }
  std::istringstream in(lines);
  std::ostringstream out;
  EXPECT_EQ((*offline)->run_lines(in, out, 3).value(), 0);
  std::istringstream answers(out.str());
  std::string line;
  for (std::size_t i = 0; i < greedy.size(); ++i) {
    ASSERT_TRUE(std::getline(answers, line));
    const auto answer = parse_json(line, "answer");
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->at_pointer("/choices/0/token_ids"), greedy[i]);
    EXPECT_TRUE(answer->at_pointer("/choices/0/text").is_null());  // no tokenizer in this folder
    const Json& prompt_rows = answer->at_pointer("/logits/prompt");
    ASSERT_EQ(prompt_rows.size(), (*answer)["prompt_token_ids"].size());
    EXPECT_EQ(prompt_rows.items().back(), answer->at_pointer("/logits/steps/0"));
  }
}

// What shrinks while it is loaded is told at once, not by the first request.
TEST(LoadedModel, WeightsThatAreCutMeanwhileAreNoModel) {
  const testing::MadeFolder folder;
  for (const auto& entry : std::filesystem::directory_iterator(plain_options().model))
    folder.put(entry.path().filename().string(), read_file(entry.path().string()).value());
  LoadOptions options = plain_options();
  options.model = folder.path().string();
  const std::string weights = options.model + "/model.safetensors";
  const auto artifact = artifact::open(options.model, {.need = artifact::Need::kTensors});
  ASSERT_TRUE(artifact);
  EXPECT_TRUE(load_model(*artifact, options));
  std::filesystem::resize_file(weights, std::filesystem::file_size(weights) / 2);
  const auto loaded = load_model(*artifact, options);
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error().code, ErrorCode::kMalformed);
  EXPECT_NE(loaded.error().where.find("model.safetensors"), std::string::npos) << loaded.error().where;
}

TEST(Measure, ThePoolHoldsWhatTheFormulaSays) {
  LoadOptions options = plain_options();
  const auto measured = measure_kv(options, {256, 512});
  ASSERT_TRUE(measured) << measured.error().describe();
  ASSERT_EQ(measured->size(), 2u);
  // 256 tokens more are 16 blocks more; both lengths end on a page.
  EXPECT_EQ((*measured)[0].resident().value, 256 * 1024);
  EXPECT_EQ((*measured)[1].resident().value, 512 * 1024);
  EXPECT_FALSE(measure_kv(options, {0}));
}

}  // namespace
}  // namespace plimsoll::serve
