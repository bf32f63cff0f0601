// SPDX-License-Identifier: Apache-2.0
// A sequence gets the same bits whoever runs beside it, however its prompt is cut, whatever was found in the
// prefix cache, and when it shares its prompt with other choices.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "engine/engine.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

constexpr int kPrompts = 33;

// Lengths from 1 to 181 tokens: below and above blocks of 16 and the window of 48.
std::vector<TokenId> prompt_of(int index) {
  std::vector<TokenId> prompt(static_cast<std::size_t>(1 + index * 37 % 182));
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<TokenId>((static_cast<std::size_t>(index) * 131 + i * 37 + i * i) % 500 + 3);
  return prompt;
}

EngineOptions options_of(ComputeMode mode) {
  EngineOptions options = small_options(mode);
  options.max_num_seqs = kPrompts;
  options.num_blocks = 20'000;
  return options;
}

std::vector<Trace> run_together(Engine& engine, int rows, std::int64_t max_tokens) {
  std::map<RequestId, std::size_t> index;
  for (int i = 0; i < rows; ++i)
    index[*engine.add(one_choice(prompt_of(i), greedy(max_tokens)))] = static_cast<std::size_t>(i);
  std::vector<Trace> runs(static_cast<std::size_t>(rows));
  while (engine.has_work())
    for (auto& output : engine.step()) take(runs[index.at(output.request)], output);
  return runs;
}

void expect_equal(const Trace& found, const Trace& expected) {
  EXPECT_EQ(found.tokens, expected.tokens);
  EXPECT_EQ(found.step_logits, expected.step_logits);  // every bit
  EXPECT_EQ(found.finish, expected.finish);
}

class Company : public ::testing::TestWithParam<std::string> {
 protected:
  // Attention in every layer, with windows or not: tried with all combinations.
  static bool is_plain() {
    const auto plain = {"llama_plain", "qwen2_sliding", "gemma2", "gemma3_text", "mixtral"};
    return std::ranges::find(plain, GetParam()) != plain.end();
  }

  std::string model() const { return testing::golden_path("models/" + GetParam()); }

  std::vector<Trace> all_alone(EngineOptions options) const {
    options.max_num_batched_tokens = 512;
    options.enable_prefix_caching = false;
    const auto engine = load_model(model(), options);
    std::vector<Trace> runs;
    for (int i = 0; i < kPrompts; ++i) runs.push_back(run_alone(*engine, prompt_of(i), greedy(6)));
    return runs;
  }
};

TEST_P(Company, RowsChunksAndPrefixHitsChangeNoBit) {
  using Numbers = std::vector<int>;
  for (const auto mode : {ComputeMode::kFloat32, ComputeMode::kAuto}) {
    if (mode == ComputeMode::kAuto && !is_plain()) continue;
    const auto alone = all_alone(options_of(mode));
    for (const int chunk : is_plain() ? Numbers{1, 16, 100, 512} : Numbers{1, 100})
      for (const bool has_cache : {false, true})
        for (const int rows : is_plain() ? Numbers{1, 3, 8, 33} : Numbers{3, 33}) {
          SCOPED_TRACE(::testing::Message()
                       << rows << " rows, chunks of " << chunk << ", cache " << has_cache);
          EngineOptions options = options_of(mode);
          options.threads = rows == 8 ? 3 : 1;
          options.max_num_batched_tokens = chunk;
          options.enable_prefix_caching = has_cache;
          const auto engine = load_model(model(), options);
          ASSERT_TRUE(engine);
          for (int round = 0; round < (has_cache ? 2 : 1); ++round) {
            const auto together = run_together(*engine, rows, 6);
            for (std::size_t i = 0; i < together.size(); ++i) expect_equal(together[i], alone[i]);
          }
          EXPECT_EQ(engine->stats().prefix_hits_tokens > 0, has_cache && rows > 1);  // prompt 0 has one token
          EXPECT_EQ(engine->stats().blocks_used.value, 0);
        }
  }
}

TEST_P(Company, CachesOfEightBitsChangeNoBit) {
  for (const char* name : {"fp8", "int8"}) {
    EngineOptions options = options_of(ComputeMode::kAuto);
    options.cache_format = *memory::embedded_cache_format(name);
    const auto alone = all_alone(options);
    for (const int chunk : {16, 100}) {
      SCOPED_TRACE(::testing::Message() << name << ", chunks of " << chunk);
      options.max_num_batched_tokens = chunk;
      options.threads = 3;
      const auto engine = load_model(model(), options);
      ASSERT_TRUE(engine);
      for (int round = 0; round < 2; ++round) {
        const auto together = run_together(*engine, 8, 6);
        for (std::size_t i = 0; i < together.size(); ++i) expect_equal(together[i], alone[i]);
      }
      EXPECT_GT(engine->stats().prefix_hits_tokens, 0);
    }
  }
}

TEST_P(Company, PreemptionChangesNoBit) {
  constexpr int kRequests = 8, kTokens = 40;
  EngineOptions options = options_of(ComputeMode::kFloat32);
  options.max_model_len = 240;
  std::vector<Trace> alone;
  const auto roomy = load_model(model(), options);
  for (int i = 0; i < kRequests; ++i) alone.push_back(run_alone(*roomy, prompt_of(i), greedy(kTokens)));
  const double per_request =
      static_cast<double>(roomy->memory().num_blocks.value) / roomy->memory().max_concurrency;
  options.num_blocks = static_cast<std::int64_t>(per_request * 2.2);  // they ask for four times as much
  for (const bool has_cache : {false, true}) {
    options.enable_prefix_caching = has_cache;
    options.max_num_batched_tokens = 16;
    const auto engine = load_model(model(), options);
    ASSERT_TRUE(engine);
    const auto together = run_together(*engine, kRequests, kTokens);
    if (is_plain()) {  // others hold most of what they need from their first token on: they wait
      EXPECT_GT(engine->stats().preemptions, 0);
    }
    for (std::size_t i = 0; i < together.size(); ++i) expect_equal(together[i], alone[i]);
  }
}

// The choices of a prompt against requests of their own, with the same seeds.
TEST_P(Company, ChoicesOfOnePromptAreWhatTheyWouldBeAlone) {
  SamplingParams params = greedy(20);
  params.temperature = 1.5;
  Submission submission;
  submission.prompt = prompt_of(2);  // 75 tokens: the last block is partly filled
  for (std::uint64_t seed = 1; seed <= 5; ++seed) {
    params.seed = seed;
    params.max_tokens = seed == 3 ? 1 : 20;  // one ends with its first token
    submission.choices.push_back(params);
  }
  const auto single = load_model(model(), options_of(ComputeMode::kFloat32));
  std::vector<Trace> alone;
  for (const auto& choice : submission.choices)
    alone.push_back(run_alone(*single, submission.prompt, choice));
  EXPECT_NE(alone[0].tokens, alone[1].tokens);

  for (const int seats : {kPrompts, 2}) {  // with two, forks wait and read the prefix tree
    EngineOptions options = options_of(ComputeMode::kFloat32);
    options.max_num_seqs = seats;
    const auto engine = load_model(model(), options);
    const auto first = engine->add(submission);
    ASSERT_TRUE(first);
    std::vector<Trace> runs(submission.choices.size());
    std::int64_t steps = 0;
    for (; engine->has_work(); ++steps)
      for (auto& output : engine->step()) take(runs[output.request - *first], output);
    for (std::size_t k = 0; k < runs.size(); ++k) expect_equal(runs[k], alone[k]);
    EXPECT_EQ(engine->stats().blocks_used.value, 0);
    EXPECT_GT(engine->stats().blocks_copied.value, 0);
    if (seats < kPrompts) continue;
    EXPECT_EQ(steps, 2 + 19);  // a prompt of 75 in steps of 64 is computed once
  }
}

TEST_P(Company, AChoiceThatIsCancelledLeavesTheOthers) {
  const auto engine = load_model(model(), options_of(ComputeMode::kFloat32));
  const Trace alone = run_alone(*engine, prompt_of(2), greedy(8));
  Submission submission = one_choice(prompt_of(2), greedy(8));
  submission.choices.resize(3, greedy(8));
  for (const int steps_before : {0, 1, 3}) {
    const auto first = engine->add(submission);
    std::vector<Trace> runs(3);
    const auto step = [&] {
      for (auto& output : engine->step()) take(runs[output.request - *first], output);
    };
    for (int i = 0; i < steps_before; ++i) step();
    engine->cancel(*first);
    engine->cancel(*first + 2);
    while (engine->has_work()) step();
    EXPECT_EQ(runs[0].finish, FinishReason::kCancelled);
    EXPECT_EQ(runs[2].finish, FinishReason::kCancelled);
    expect_equal(runs[1], alone);
    EXPECT_EQ(engine->stats().blocks_used.value, 0);
  }
  const auto first = engine->add(submission);
  engine->step();
  for (RequestId k = 0; k < 3; ++k) engine->cancel(*first + k);
  EXPECT_EQ(engine->stats().blocks_used.value, 0);
  EXPECT_EQ(engine->step().size(), 3u);
  EXPECT_FALSE(engine->has_work());
}

// Logits of a cached prompt are not there: such a request computes all of it, and others may read it after.
TEST_P(Company, PromptRowsAreCompleteWhateverIsCached) {
  const auto engine = load_model(model(), options_of(ComputeMode::kFloat32));
  auto params = greedy(2);
  params.return_prompt_logits = true;
  params.prompt_logprobs = 2;
  const Trace first = run_alone(*engine, prompt_of(2), params);
  const Trace second = run_alone(*engine, prompt_of(2), params);
  ASSERT_EQ(second.prompt_logits.size(), 75u);
  EXPECT_EQ(second.prompt_logits, first.prompt_logits);
  EXPECT_EQ(second.cached_prompt_tokens, 0);
  EXPECT_EQ(run_alone(*engine, prompt_of(2), greedy(2)).cached_prompt_tokens, 64);
}

INSTANTIATE_TEST_SUITE_P(Models, Company,
                         ::testing::ValuesIn(testing::present(
                             "models", {"llama_plain", "qwen2_sliding", "gemma2", "gemma3_text", "mixtral",
                                        "mamba2", "jamba", "nemotron_h", "falcon_h1", "qwen3_next",
                                        "kimi_linear", "deepseek_v2_lite", "gpt_oss", "llama4_text"})),
                         [](const auto& test) { return test.param; });

TEST(WindowedCache, ALongSequenceHoldsNoMoreThanItsWindow) {
  EngineOptions options = small_options(ComputeMode::kAuto);
  options.max_model_len = 1000;
  options.num_blocks.reset();
  options.kv_cache_bytes = Bytes(1 << 20);
  const auto engine = load_model(testing::golden_path("models/qwen2_sliding"), options);
  ASSERT_TRUE(engine);
  ASSERT_TRUE(engine->add(one_choice(std::vector<TokenId>(900, 7), greedy(64))));
  std::int64_t most = 0;
  while (engine->has_work()) {
    engine->step();
    most = std::max(most, engine->stats().blocks_used.value);
  }
  // One layer keeps all 963 tokens; two keep the 47 that the next token reads, which lie in at most 4 blocks.
  EXPECT_EQ(most, (900 + 63 + 15) / 16 + 2 * 4);
}

}  // namespace
}  // namespace plimsoll::engine
