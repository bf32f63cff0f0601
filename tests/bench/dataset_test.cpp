// SPDX-License-Identifier: Apache-2.0
#include "bench/dataset.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/mapped_file.h"
#include "tests/bench/toy_tokenizer.h"

namespace plimsoll::bench {
namespace {

std::int64_t num_words(std::string_view text) {
  return std::count(text.begin(), text.end(), ' ') + (text.empty() ? 0 : 1);
}

TEST(RandomPrompts, WithoutATokenizerAreThatManyWords) {
  Options options;
  options.input_tokens = 12;
  options.output_tokens = 5;
  const auto prompts = random_prompts(options, 50);
  ASSERT_TRUE(prompts);
  std::set<std::string> different;
  for (const Prompt& prompt : *prompts) {
    EXPECT_EQ(num_words(prompt.text), 12);
    EXPECT_EQ(prompt.prompt_tokens, 12);
    EXPECT_EQ(prompt.max_output_tokens, 5);
    different.insert(prompt.text);
  }
  EXPECT_EQ(different.size(), 50u);
  EXPECT_EQ(random_prompts(options, 50)->front().text, prompts->front().text);
  options.seed = 1;
  EXPECT_NE(random_prompts(options, 50)->front().text, prompts->front().text);
}

TEST(RandomPrompts, EncodeToExactlyTheAskedTokensEvenWhenWordsMerge) {
  for (bool adds_bos : {false, true}) {
    Options options;
    // " ab cd" is one token: joined words are fewer tokens than words.
    options.tokenizer = std::make_shared<ToyTokenizer>(
        std::vector<std::string>{"", " ab", " cd", " ef", " ghi", " ab cd", "ab", "cd", " ", " 12"},
        adds_bos);
    for (std::int64_t length : {7, 64}) {
      options.input_tokens = length;
      const auto prompts = random_prompts(options, 20);
      ASSERT_TRUE(prompts) << prompts.error().describe();
      std::set<std::string> different;
      for (const Prompt& prompt : *prompts) {
        EXPECT_EQ(std::ssize(options.tokenizer->encode(prompt.text, {})), length) << prompt.text;
        different.insert(prompt.text);
      }
      EXPECT_EQ(different.size(), 20u);
    }
  }
}

TEST(RandomPrompts, LengthsSpreadOverTheirRangeAndNotBeyond) {
  Options options;
  options.input_tokens = 100;
  options.output_tokens = 10;
  options.range_ratio = 0.25;
  const auto prompts = random_prompts(options, 2000);
  ASSERT_TRUE(prompts);
  std::set<std::int64_t> inputs;
  std::set<std::int64_t> outputs;
  for (const Prompt& prompt : *prompts) {
    inputs.insert(prompt.prompt_tokens);
    outputs.insert(prompt.max_output_tokens);
  }
  EXPECT_EQ(*inputs.begin(), 75);
  EXPECT_EQ(*inputs.rbegin(), 125);
  EXPECT_EQ(inputs.size(), 51u);
  EXPECT_EQ(*outputs.begin(), 7);    // floor(7.5)
  EXPECT_EQ(*outputs.rbegin(), 13);  // ceil(12.5)
}

TEST(RandomPrompts, RefuseWhatCannotBe) {
  Options options;
  options.range_ratio = 1.0;
  EXPECT_EQ(random_prompts(options, 1).error().code, ErrorCode::kUsage);
  options.range_ratio = 0;
  options.input_tokens = 0;
  EXPECT_EQ(random_prompts(options, 1).error().code, ErrorCode::kUsage);
  options.input_tokens = 1;
  EXPECT_EQ(random_prompts(options, 1000).error().code, ErrorCode::kUnsupported);  // not that many words
  options.tokenizer = std::make_shared<ToyTokenizer>(std::vector<std::string>{"", "12"});
  EXPECT_EQ(random_prompts(options, 1).error().code, ErrorCode::kUnsupported);
  options.tokenizer = std::make_shared<ToyTokenizer>(std::vector<std::string>{"", " ab", " cd"}, true);
  EXPECT_EQ(random_prompts(options, 1).error().code, ErrorCode::kUsage);  // BOS alone fills it
}

TEST(CustomPrompts, ReadRowsAndNameTheBadOne) {
  Options options;
  options.dataset_path = "set.jsonl";
  const auto rows = custom_prompts(options, "{\"prompt\":\"a\",\"output_tokens\":3}\r\n\n{\"prompt\":\"b\"}");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 2u);
  EXPECT_EQ((*rows)[0].max_output_tokens, 3);
  EXPECT_EQ((*rows)[1].text, "b");
  EXPECT_EQ((*rows)[1].max_output_tokens, 256);
  options.dataset_output_tokens = 9;
  EXPECT_EQ((*custom_prompts(options, "{\"prompt\":\"b\"}"))[0].max_output_tokens, 9);
  for (const char* bad :
       {"{\"prompt\":\"a\"}\n{\"text\":\"b\"}", "{\"prompt\":\"a\"}\nnot json",
        "{\"prompt\":\"a\"}\n{\"prompt\":\"\"}", "{\"prompt\":\"a\"}\n{\"prompt\":\"b\",\"output_tokens\":0}",
        "{\"prompt\":\"a\"}\n{\"prompt\":\"b\",\"output_tokens\":\"8\"}",
        "{\"prompt\":\"a\"}\n{\"prompt\":\"b\",\"output_tokens\":1000000000000000000}"}) {
    const auto refused = custom_prompts(options, bad);
    ASSERT_FALSE(refused) << bad;
    EXPECT_EQ(refused.error().code, ErrorCode::kMalformed);
    EXPECT_NE(refused.error().where.find("line 2"), std::string::npos) << refused.error().where;
  }
}

TEST(ShareGptPrompts, TakeTheFirstTwoTurnsAndLeaveOutTheExtremes) {
  Options options;
  options.tokenizer = std::make_shared<ToyTokenizer>(std::vector<std::string>{""});  // one token per byte
  const std::string entry = R"({"conversations":[{"value":"12345"},{"value":"123456"},{"value":"x"}]})";
  const std::string brief = R"({"conversations":[{"value":"123"},{"value":"123456"}]})";
  const std::string lone = R"({"conversations":[{"value":"12345"}]})";
  const std::string huge =
      R"({"conversations":[{"value":")" + std::string(1025, 'x') + R"("},{"value":"12345"}]})";
  const auto rows = sharegpt_prompts(options, "[" + entry + "," + brief + "," + lone + "," + huge + ",7]");
  ASSERT_TRUE(rows);
  ASSERT_EQ(rows->size(), 1u);
  EXPECT_EQ((*rows)[0].text, "12345");
  EXPECT_EQ((*rows)[0].prompt_tokens, 5);
  EXPECT_EQ((*rows)[0].max_output_tokens, 6);
  EXPECT_EQ(sharegpt_prompts(options, "{}").error().code, ErrorCode::kMalformed);
}

TEST(LoadPrompts, GoesRoundInAFileThatIsTooShort) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "plimsoll_bench_set.jsonl").string();
  ASSERT_TRUE(write_file(path, "{\"prompt\":\"first one\"}\n{\"prompt\":\"second\"}\n"));
  Options options;
  options.dataset = Dataset::kCustom;
  EXPECT_EQ(load_prompts(options, 3).error().code, ErrorCode::kUsage);
  options.dataset_path = path;
  const auto prompts = load_prompts(options, 3);
  ASSERT_TRUE(prompts);
  ASSERT_EQ(prompts->size(), 3u);
  EXPECT_EQ((*prompts)[2].text, "first one");
  ASSERT_TRUE(write_file(path, "\n"));
  EXPECT_EQ(load_prompts(options, 3).error().code, ErrorCode::kMalformed);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace plimsoll::bench
