// SPDX-License-Identifier: Apache-2.0
// Prompts of made and recorded loads: lengths, shared beginnings, sessions, traces, warm-ups.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "base/mapped_file.h"
#include "bench/dataset.h"
#include "tests/bench/toy_tokenizer.h"

namespace plimsoll::bench {
namespace {

using workload::Distribution;

/// Words that stay one token each, with and without their blank, as in real vocabularies.
std::shared_ptr<ToyTokenizer> plain_vocabulary(bool adds_bos) {
  return std::make_shared<ToyTokenizer>(
      std::vector<std::string>{"", " ab", "ab", " cd", "cd", " ef", "ef", " gh", "gh", " ij", "ij"},
      adds_bos);
}

/// " ab cd" is one token: words join over the border of what is put together.
std::shared_ptr<ToyTokenizer> joining_vocabulary(bool adds_bos) {
  return std::make_shared<ToyTokenizer>(
      std::vector<std::string>{"", " ab", "ab", " cd", "cd", " ef", "ef", " ab cd", " ghi"}, adds_bos);
}

std::int64_t tokens_of(const Options& options, std::string_view text, bool is_first = true) {
  return std::ssize(options.tokenizer->encode(text, {.add_special_tokens = is_first}));
}

Distribution count(std::string_view word) {
  const auto made = Distribution::parse(word, {1, 1e6, true}, "--flag");
  EXPECT_TRUE(made) << made.error().describe();
  return made ? *made : Distribution::whole(1, 1);
}

std::string first_bytes_in_common(const std::string& a, const std::string& b) {
  return a.substr(
      0, static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin()));
}

std::string made_file(const std::string& name, std::string_view content) {
  const std::string path = (std::filesystem::path(::testing::TempDir()) / name).string();
  EXPECT_TRUE(write_file(path, content));
  return path;
}

constexpr std::string_view kMooncake =
    "{\"timestamp\": 0, \"input_length\": 10, \"output_length\": 5, \"hash_ids\": [1, 2, 3]}\n"
    "{\"timestamp\": 500, \"input_length\": 12, \"output_length\": 6, \"hash_ids\": [1, 2, 4]}\n"
    "{\"timestamp\": 2000, \"input_length\": 8, \"output_length\": 7, \"hash_ids\": [1, 2]}\n"
    "{\"timestamp\": 3000, \"input_length\": 9, \"output_length\": 8, \"hash_ids\": [9]}\n";

TEST(WorkloadPrompts, LengthsComeFromDistributions) {
  Options options;
  options.tokenizer = plain_vocabulary(true);
  options.lengths.emplace(count("uniform:20,24"), count("7"));
  const auto prompts = random_prompts(options, 200);
  ASSERT_TRUE(prompts) << prompts.error().describe();
  std::set<std::int64_t> lengths;
  for (const Prompt& prompt : *prompts) {
    EXPECT_EQ(tokens_of(options, prompt.text), prompt.prompt_tokens);
    EXPECT_EQ(prompt.max_output_tokens, 7);
    lengths.insert(prompt.prompt_tokens);
  }
  EXPECT_EQ(lengths, (std::set<std::int64_t>{20, 21, 22, 23, 24}));
  options.lengths.emplace(count("1"), count("7"));  // BOS alone fills it
  EXPECT_EQ(random_prompts(options, 1).error().code, ErrorCode::kUsage);
}

TEST(WorkloadPrompts, RandomPromptsShareTheirPrefix) {
  for (const bool adds_bos : {false, true}) {
    for (const auto& vocabulary : {plain_vocabulary(adds_bos), joining_vocabulary(adds_bos)}) {
      Options options;
      options.tokenizer = vocabulary;
      options.prefix_tokens = 12;
      options.input_tokens = 20;
      const auto prompts = random_prompts(options, 10);
      ASSERT_TRUE(prompts) << prompts.error().describe();
      std::set<std::string> different;
      for (const Prompt& prompt : *prompts) {
        EXPECT_EQ(prompt.prompt_tokens, 32);
        EXPECT_EQ(tokens_of(options, prompt.text), 32);
        // 12 tokens are 11 words at least beside the BOS, of two letters at least.
        EXPECT_GE(first_bytes_in_common(prompt.text, prompts->front().text).size(), 22u);
        different.insert(prompt.text);
      }
      EXPECT_EQ(different.size(), 10u);
    }
  }
}

TEST(WorkloadPrompts, PrefixRepetitionHasAsManyBeginningsAsAsked) {
  Options options;
  options.dataset = Dataset::kPrefixRepetition;
  options.tokenizer = plain_vocabulary(true);
  options.prefix_repetition = {16, 12, 3, 9};
  const auto prompts = load_prompts(options, 20);
  ASSERT_TRUE(prompts) << prompts.error().describe();
  ASSERT_EQ(prompts->size(), 20u);
  std::map<std::string, int> beginnings;
  std::set<std::string> different;
  for (const Prompt& prompt : *prompts) {
    EXPECT_EQ(tokens_of(options, prompt.text), 28);
    EXPECT_EQ(prompt.max_output_tokens, 9);
    // 15 words beside the BOS: two letters each and 14 blanks.
    ++beginnings[prompt.text.substr(0, 15 * 3 - 1)];
    different.insert(prompt.text);
  }
  ASSERT_EQ(beginnings.size(), 3u);
  for (const auto& [text, times] : beginnings) EXPECT_GE(times, 6);
  EXPECT_EQ(different.size(), 20u);
  options.prefix_repetition.num_prefixes = 21;
  EXPECT_EQ(load_prompts(options, 20).error().code, ErrorCode::kUsage);
}

TEST(WorkloadPrompts, SessionsAreChainsOfTurns) {
  Options options;
  options.tokenizer = plain_vocabulary(true);
  options.input_tokens = 16;
  options.num_turns = count("uniform:2,4");
  options.turn_delay_s = *Distribution::parse("uniform:1,2", {0, 10, false}, "--turn-delay");
  const auto prompts = random_prompts(options, 40);
  ASSERT_TRUE(prompts) << prompts.error().describe();
  ASSERT_EQ(prompts->size(), 40u);
  int sessions = 0;
  for (std::int64_t i = 0; i < 40; ++i) {
    const Prompt& prompt = (*prompts)[static_cast<std::size_t>(i)];
    const bool is_first = prompt.follows < 0;
    sessions += is_first;
    EXPECT_EQ(tokens_of(options, prompt.text, is_first), 16);  // BOS once a conversation
    if (is_first) {
      EXPECT_EQ(prompt.delay_s, 0);
    } else {
      EXPECT_EQ(prompt.follows, i - 1);
      EXPECT_TRUE(prompt.delay_s >= 1 && prompt.delay_s <= 2);
    }
  }
  EXPECT_TRUE(sessions >= 10 && sessions <= 20) << sessions;
}

TEST(WorkloadPrompts, ShareGptTurnsFollowEachOther) {
  Options options;
  options.dataset = Dataset::kShareGpt;
  options.tokenizer = std::make_shared<ToyTokenizer>(std::vector<std::string>{""}, true);  // a token per byte
  options.dataset_path = made_file(
      "plimsoll_sharegpt.json",
      R"([{"conversations":[{"value":"first question"},{"value":"an answer"},{"value":"go on"},{"value":"yes"},)"
      R"({"value":""},{"value":"lost"}]}])");
  EXPECT_EQ(load_prompts(options, 1)->front().follows, -1);
  options.num_turns = count("5");
  const auto prompts = load_prompts(options, 5);
  ASSERT_TRUE(prompts) << prompts.error().describe();
  EXPECT_EQ((*prompts)[1].text, "go on");
  EXPECT_EQ((*prompts)[1].prompt_tokens, 5);
  EXPECT_EQ((*prompts)[1].max_output_tokens, 3);
  std::vector<std::int64_t> follows;
  for (const Prompt& prompt : *prompts) follows.push_back(prompt.follows);
  EXPECT_EQ(follows, (std::vector<std::int64_t>{-1, 0, -1, 2, -1}));  // an empty turn ends it; round again
  // vLLM leaves the shortest reply out only where its length comes from the file.
  options.num_turns.reset();
  options.dataset_output_tokens = 1;
  EXPECT_EQ(load_prompts(options, 1)->front().max_output_tokens, 1);
  std::filesystem::remove(options.dataset_path);
}

TEST(WorkloadPrompts, ATraceKeepsItsTimesUnlessARateIsAsked) {
  Options options;
  options.dataset = Dataset::kTrace;
  options.has_num_prompts = false;
  options.trace.block_tokens = 4;
  options.trace_speed = 2;
  options.dataset_path = made_file("plimsoll_trace.jsonl", kMooncake);
  const auto prompts = load_prompts(options, 1000);
  ASSERT_TRUE(prompts) << prompts.error().describe();
  ASSERT_EQ(prompts->size(), 4u);  // whole
  EXPECT_DOUBLE_EQ(*(*prompts)[1].at_s, 0.25);
  EXPECT_EQ((*prompts)[2].prompt_tokens, 8);
  EXPECT_EQ((*prompts)[3].max_output_tokens, 8);
  options.request_rate = 5;
  EXPECT_FALSE(load_prompts(options, 1000)->front().at_s);
  options.has_num_prompts = true;
  EXPECT_EQ(load_prompts(options, 2)->size(), 2u);
  EXPECT_EQ(load_prompts(options, 5).error().code, ErrorCode::kUsage);
  std::filesystem::remove(options.dataset_path);
}

TEST(WorkloadPrompts, BlocksOfOneIdAreTheSameText) {
  for (const bool adds_bos : {false, true}) {
    for (const auto& vocabulary : {plain_vocabulary(adds_bos), joining_vocabulary(adds_bos)}) {
      Options options;
      options.tokenizer = vocabulary;
      const auto trace = workload::read_trace(kMooncake, "trace", {"", 4, {}});
      ASSERT_TRUE(trace) << trace.error().describe();
      const auto prompts = trace_prompts(options, *trace, {});
      ASSERT_TRUE(prompts) << prompts.error().describe();
      for (std::size_t i = 0; i < 4; ++i)
        EXPECT_EQ(tokens_of(options, (*prompts)[i].text), trace->requests[i].input_tokens);
    }
    Options options;
    options.tokenizer = plain_vocabulary(adds_bos);
    const auto prompts = *trace_prompts(options, *workload::read_trace(kMooncake, "trace", {"", 4, {}}), {});
    // Blocks 1 and 2 are the whole third prompt, and the beginning of the first two; then they part.
    EXPECT_TRUE(prompts[0].text.starts_with(prompts[2].text));
    EXPECT_TRUE(prompts[1].text.starts_with(prompts[2].text));
    EXPECT_FALSE(prompts[1].text.starts_with(prompts[0].text));
    EXPECT_NE(prompts[3].text.substr(0, 8), prompts[0].text.substr(0, 8));
  }
}

TEST(WorkloadPrompts, BurstGptTakesTheRowsThatVllmTakes) {
  Options options;
  options.dataset = Dataset::kBurstGpt;
  options.has_num_prompts = false;
  options.dataset_path = made_file("plimsoll_burstgpt.csv",
                                   "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n"
                                   "1,ChatGPT,5,6,11,x\n3,GPT-4,7,8,15,x\n9,GPT-4,7,0,7,x\n");
  EXPECT_EQ(load_prompts(options, 1)->size(), 1u);
  options.dataset = Dataset::kTrace;
  const auto all = load_prompts(options, 1);
  ASSERT_EQ(all->size(), 2u);
  EXPECT_DOUBLE_EQ(*(*all)[1].at_s, 2);
  std::filesystem::remove(options.dataset_path);
}

TEST(WorkloadPrompts, WarmUpsShareNothingWithWhatIsMeasured) {
  Options options;
  options.dataset = Dataset::kPrefixRepetition;
  options.prefix_repetition = {32, 16, 1, 9};
  options.num_warmups = 3;
  const auto prompts = load_prompts(options, 8);
  ASSERT_TRUE(prompts) << prompts.error().describe();
  ASSERT_EQ(prompts->size(), 8u);
  for (std::size_t i = 5; i < 8; ++i) {
    EXPECT_EQ((*prompts)[i].prompt_tokens, 48);
    EXPECT_FALSE((*prompts)[i].at_s);
    for (std::size_t k = 0; k < i; ++k)  // some words may agree by chance, a block of 16 does not
      EXPECT_LT(first_bytes_in_common((*prompts)[i].text, (*prompts)[k].text).size(), 32u);
  }
}

TEST(WorkloadPrompts, RefuseFlagsOfAnotherDataSet) {
  Options options;
  options.dataset = Dataset::kCustom;
  const auto refused = [](Options asked, void (*change)(Options&)) {
    change(asked);
    const auto prompts = load_prompts(asked, 1);
    return prompts ? std::string() : prompts.error().where;
  };
  EXPECT_EQ(refused(options, [](Options& o) { o.num_turns = Distribution::whole(2, 2); }), "--num-turns");
  EXPECT_EQ(refused(options, [](Options& o) { o.prefix_tokens = 4; }), "--random-prefix-len");
  EXPECT_EQ(refused(options, [](Options& o) { o.turn_delay_s = Distribution::whole(2, 2); }), "--turn-delay");
  EXPECT_EQ(refused(options, [](Options& o) { o.trace_speed = 0; }), "--trace-speed");
  EXPECT_EQ(
      refused(options,
              [](Options& o) { o.lengths.emplace(Distribution::whole(2, 2), Distribution::whole(2, 2)); }),
      "--input-len, --output-len");
  const auto ramp = [](double start, double end, workload::RampShape shape) {
    Options asked;
    asked.ramp = workload::Ramp{shape, start, end};
    return load_prompts(asked, 1).has_value();
  };
  EXPECT_TRUE(ramp(0, 5, workload::RampShape::kLinear));
  EXPECT_FALSE(ramp(5, 0, workload::RampShape::kLinear));
  EXPECT_FALSE(ramp(0, 5, workload::RampShape::kExponential));
  options = {};
  options.ramp = workload::Ramp{workload::RampShape::kLinear, 1, 5};
  EXPECT_EQ(refused(options, [](Options& o) { o.request_rate = 4; }), "--request-rate");
  options = {};
  options.input_tokens = 1'000'000;
  EXPECT_EQ(load_prompts(options, 1001).error().where, "--num-prompts, --num-warmups");  // 10^9
  EXPECT_EQ(load_prompts(options, INT64_MAX).error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll::bench
