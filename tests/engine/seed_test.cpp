// SPDX-License-Identifier: Apache-2.0
// A seed gives the same text alone and in any company; log probabilities of a prompt are those of its logits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

std::unique_ptr<Engine> load(int max_num_seqs, int num_blocks, int step_tokens) {
  auto options = small_options(ComputeMode::kAuto);
  options.max_num_seqs = max_num_seqs;
  options.num_blocks = num_blocks;
  options.max_num_batched_tokens = step_tokens;
  return load_model(testing::golden_path("models/llama_plain"), options);
}

struct Asked {
  std::vector<TokenId> prompt;
  SamplingParams params;
};

// Request `i` of 32: another prompt, seed and kind of sampling each.
Asked request(int i) {
  Asked asked;
  for (int at = 0; at < 8 + 5 * (i % 7); ++at)
    asked.prompt.push_back((i * 131 + at * 37 + at * at) % 500 + 3);
  SamplingParams& params = asked.params;
  params.max_tokens = 24;
  params.seed = static_cast<std::uint64_t>(1000 + i);
  params.temperature = 0.7 + 0.1 * (i % 5);
  if (i % 4 == 1) params.top_k = 40;
  if (i % 4 == 2) params.top_p = 0.9;
  if (i % 4 == 3) params.repetition_penalty = 1.2, params.frequency_penalty = 0.5;
  if (i % 8 == 5) params.typical_p = 0.8, params.min_p = 0.01;
  return asked;
}

/// Tokens of the requests, run together; those in `cancelled` are given up after their third token.
std::vector<std::vector<TokenId>> run_all(Engine& engine, const std::vector<int>& which,
                                          const std::vector<int>& cancelled = {}) {
  std::map<RequestId, int> index;
  for (const int i : which) {
    const Asked asked = request(i);
    const auto id = engine.add(one_choice(asked.prompt, asked.params));
    EXPECT_TRUE(id) << (id ? "" : id.error().describe());
    if (id) index[*id] = i;
  }
  std::vector<std::vector<TokenId>> tokens(32);
  while (engine.has_work())
    for (const auto& output : engine.step()) {
      const int i = index.at(output.request);
      auto& mine = tokens[static_cast<std::size_t>(i)];
      mine.insert(mine.end(), output.tokens.begin(), output.tokens.end());
      if (mine.size() == 3 && std::count(cancelled.begin(), cancelled.end(), i) > 0)
        engine.cancel(output.request);
    }
  return tokens;
}

std::vector<int> numbers(int count) {
  std::vector<int> result;
  for (int i = 0; i < count; ++i) result.push_back(i);
  return result;
}

TEST(Seeds, GiveTheSameTextAloneAndInAnyCompany) {
  const auto engine = load(32, 256, 64);
  ASSERT_TRUE(engine);
  std::vector<std::vector<TokenId>> alone(32);
  for (int i = 0; i < 32; ++i)
    alone[static_cast<std::size_t>(i)] = run_all(*engine, {i})[static_cast<std::size_t>(i)];
  ASSERT_EQ(alone[3].size(), 24u);
  EXPECT_NE(alone[0], alone[8]);

  EXPECT_EQ(run_all(*engine, numbers(32)), alone);  // all in one batch, prompts from the prefix cache
  std::vector<int> backwards = numbers(32);
  std::reverse(backwards.begin(), backwards.end());
  EXPECT_EQ(run_all(*load(5, 256, 37), backwards), alone);  // five at a time, prompts cut at odd places

  const auto tight = load(32, 40, 64);  // blocks for a few only: the others are set back and computed again
  EXPECT_EQ(run_all(*tight, numbers(32)), alone);
  EXPECT_GT(tight->stats().preemptions, 0);

  const auto left = run_all(*engine, numbers(32), {0, 5, 6, 31});  // company that leaves in between
  for (std::size_t i = 0; i < 32; ++i) {
    if (left[i].size() < 24) continue;
    EXPECT_EQ(left[i], alone[i]) << i;
  }
}

TEST(Seeds, OtherSeedsGiveOtherTexts) {
  const auto engine = load(32, 256, 64);
  ASSERT_TRUE(engine);
  Asked asked = request(0);
  const auto first = run_alone(*engine, asked.prompt, asked.params).tokens;
  ++*asked.params.seed;
  EXPECT_NE(run_alone(*engine, asked.prompt, asked.params).tokens, first);
}

TEST(PromptLogprobs, AreTheLogSoftmaxOfTheRowBeforeAlsoBehindACachedPrefix) {
  const auto engine = load(8, 256, 64);
  ASSERT_TRUE(engine);
  Asked asked = request(6);
  for (int i = 0; i < 60; ++i) asked.prompt.push_back(i + 3);
  run_alone(*engine, asked.prompt, greedy(1));  // leaves its blocks in the prefix cache
  auto params = greedy(1);
  params.prompt_logprobs = 3;
  params.return_prompt_logits = true;
  ASSERT_TRUE(engine->add(one_choice(asked.prompt, params)));
  std::vector<std::optional<TokenLogprob>> logprobs;
  std::vector<std::vector<float>> rows;
  while (engine->has_work())
    for (auto& output : engine->step()) {
      if (!output.prompt_logprobs.empty()) logprobs = std::move(output.prompt_logprobs);
      if (!output.prompt_logits.empty()) rows = std::move(output.prompt_logits);
    }
  ASSERT_EQ(logprobs.size(), asked.prompt.size());
  ASSERT_EQ(rows.size(), asked.prompt.size());
  EXPECT_FALSE(logprobs[0]);
  for (std::size_t at = 1; at < logprobs.size(); ++at) {
    ASSERT_TRUE(logprobs[at]);
    EXPECT_EQ(logprobs[at]->token, asked.prompt[at]);
    EXPECT_EQ(logprobs[at]->top.size(), 3u);
    double sum = 0;
    for (const float logit : rows[at - 1]) sum += std::exp(static_cast<double>(logit));
    const auto token = static_cast<std::size_t>(asked.prompt[at]);
    EXPECT_NEAR(logprobs[at]->logprob, static_cast<double>(rows[at - 1][token]) - std::log(sum), 1e-9);
  }
}

}  // namespace
}  // namespace plimsoll::engine
