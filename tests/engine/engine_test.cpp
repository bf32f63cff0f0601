// SPDX-License-Identifier: Apache-2.0
// What the engine promises whatever it computes: the same bits alone or in company, memory as reported,
// requests that end, and clear refusals.
#include "engine/engine.h"

#include <gtest/gtest.h>

#include <map>

#include "artifact/artifact.h"
#include "memory/memory.h"
#include "model/model.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

std::string plain_model() {
  return testing::golden_path("models/llama_plain");
}

std::vector<TokenId> prompt_of(int length, int seed) {
  std::vector<TokenId> prompt(static_cast<std::size_t>(length));
  for (int i = 0; i < length; ++i)
    prompt[static_cast<std::size_t>(i)] = (seed * 131 + i * 37 + i * i) % 500 + 3;
  return prompt;
}

// Runs all prompts at once; tokens and logits by prompt.
std::vector<Trace> run_together(Engine& engine, const std::vector<std::vector<TokenId>>& prompts,
                                std::int64_t max_tokens) {
  std::map<RequestId, std::size_t> index;
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    const auto id = engine.add(one_choice(prompts[i], greedy(max_tokens)));
    EXPECT_TRUE(id);
    index[*id] = i;
  }
  std::vector<Trace> runs(prompts.size());
  while (engine.has_work())
    for (auto& output : engine.step()) {
      Trace& run = runs[index.at(output.request)];
      run.tokens.insert(run.tokens.end(), output.tokens.begin(), output.tokens.end());
      for (auto& logits : output.logits) run.step_logits.push_back(std::move(logits));
      if (output.finish) run.finish = output.finish;
    }
  return runs;
}

TEST(Engine, GivesTheSameBitsAloneBatchedChunkedCachedAndThreaded) {
  for (const auto mode : {ComputeMode::kFloat32, ComputeMode::kAuto}) {
    std::vector<std::vector<TokenId>> prompts;
    for (int i = 0; i < 6; ++i) prompts.push_back(prompt_of(5 + 23 * i, i));
    std::vector<Trace> alone;
    {
      auto options = small_options(mode);
      options.max_num_batched_tokens = 256;
      options.enable_prefix_caching = false;
      const auto engine = load_model(plain_model(), options);
      ASSERT_TRUE(engine);
      for (const auto& prompt : prompts) alone.push_back(run_alone(*engine, prompt, greedy(12)));
    }
    for (const int threads : {1, 3}) {
      auto options = small_options(mode);
      options.threads = threads;
      options.max_num_batched_tokens = 37;  // prefills are cut at odd places
      const auto engine = load_model(plain_model(), options);
      ASSERT_TRUE(engine);
      for (int round = 0; round < 2; ++round) {  // the second round finds its prompts in the prefix cache
        const auto together = run_together(*engine, prompts, 12);
        for (std::size_t i = 0; i < prompts.size(); ++i) {
          EXPECT_EQ(together[i].tokens, alone[i].tokens) << "prompt " << i << ", round " << round;
          EXPECT_EQ(together[i].step_logits, alone[i].step_logits) << "prompt " << i << ", round " << round;
        }
      }
      EXPECT_GT(engine->stats().prefix_hits_tokens, 0);
    }
  }
}

TEST(Engine, PreemptionChangesNothingButTheOrder) {
  auto options = small_options(ComputeMode::kFloat32);
  options.num_blocks = 12;  // 192 tokens for four requests of up to 100
  options.max_model_len = 128;
  options.enable_prefix_caching = false;
  const auto tight = load_model(plain_model(), options);
  ASSERT_TRUE(tight);
  std::vector<std::vector<TokenId>> prompts;
  for (int i = 0; i < 4; ++i) prompts.push_back(prompt_of(40, i));
  const auto together = run_together(*tight, prompts, 60);
  EXPECT_GT(tight->stats().preemptions, 0);
  options.num_blocks = 128;
  const auto roomy = load_model(plain_model(), options);
  for (std::size_t i = 0; i < prompts.size(); ++i)
    EXPECT_EQ(together[i].tokens, run_alone(*roomy, prompts[i], greedy(60)).tokens);
  EXPECT_EQ(tight->stats().blocks_used.value, 0);
}

// Rows of the prompt were once written a second time, after they had been handed out.
TEST(Engine, APreemptedRequestGivesItsPromptRowsOnce) {
  auto options = small_options(ComputeMode::kFloat32);
  options.num_blocks = 12;
  options.max_model_len = 128;
  const auto engine = load_model(plain_model(), options);
  ASSERT_TRUE(engine);
  auto params = greedy(60);
  params.return_prompt_logits = true;
  params.prompt_logprobs = 1;
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(engine->add(one_choice(prompt_of(40, i), params)));
  int reports = 0, finished = 0;
  while (engine->has_work())
    for (const auto& output : engine->step()) {
      reports += output.prompt_logits.empty() ? 0 : 1;
      for (const auto& row : output.prompt_logits) EXPECT_EQ(row.size(), 512u);
      finished += output.finish ? 1 : 0;
    }
  EXPECT_GT(engine->stats().preemptions, 0);
  EXPECT_EQ(reports, 4);
  EXPECT_EQ(finished, 4);
}

TEST(Engine, BuffersAreAsLargeAsThePlanSaid) {
  const auto engine = load_model(plain_model(), small_options(ComputeMode::kAuto));
  ASSERT_TRUE(engine);
  const auto artifact = artifact::open(plain_model());
  const auto spec = model::read_spec(**artifact);
  memory::EmbeddedOptions sizes;
  sizes.max_model_len = 512;
  sizes.max_num_seqs = 8;
  sizes.max_num_batched_tokens = 64;
  EXPECT_EQ(engine->memory().workspace, memory::embedded_workspace(*spec, sizes)->total());
  EXPECT_EQ(engine->memory().weights, memory::stored_weights_bytes(**artifact, *spec));
}

TEST(Engine, ResidentPagesAreWhatTheFormulaSays) {
  // 16 tokens of this model fill a page multiple in neither dtype, so several blocks are measured against
  // whole pages.
  for (const auto mode : {ComputeMode::kFloat32, ComputeMode::kAuto}) {
    auto options = small_options(mode);
    const auto engine = load_model(plain_model(), options);
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->resident_kv_bytes().value, 0);
    const std::int64_t tokens = 480;
    run_alone(*engine, prompt_of(static_cast<int>(tokens), 1), greedy(1));
    const std::int64_t expected = engine->memory().kv_bytes_per_token.value * tokens;
    EXPECT_GE(engine->resident_kv_bytes().value, expected);
    EXPECT_LT(engine->resident_kv_bytes().value, expected + 2 * 4096);
  }
}

TEST(Engine, APoolMeasuredWithoutWeightsIsTheOneThatIsServed) {
  const auto artifact = artifact::open(plain_model());
  const auto spec = model::read_spec(**artifact);
  const auto engine = load_model(plain_model(), small_options(ComputeMode::kAuto));
  ASSERT_TRUE(engine);
  run_alone(*engine, prompt_of(480, 1), greedy(1));
  const auto report = measure_resident_kv(*spec, small_options(ComputeMode::kAuto), Tokens(480));
  ASSERT_TRUE(report && report->kinds.size() == 1);
  EXPECT_EQ(report->kinds[0].bytes, engine->resident_kv_bytes());
  EXPECT_FALSE(report->kinds[0].window_tokens);
}

TEST(Engine, CancelFreesBlocksAtOnceAndReportsIt) {
  const auto engine = load_model(plain_model(), small_options(ComputeMode::kAuto));
  ASSERT_TRUE(engine);
  const auto id = engine->add(one_choice(prompt_of(100, 1), greedy(100)));
  ASSERT_TRUE(id);
  engine->step();
  EXPECT_GT(engine->stats().blocks_used.value, 0);
  engine->cancel(*id);
  EXPECT_EQ(engine->stats().blocks_used.value, 0);
  ASSERT_TRUE(engine->has_work());
  const auto outputs = engine->step();
  ASSERT_EQ(outputs.size(), 1u);
  EXPECT_EQ(outputs[0].finish, FinishReason::kCancelled);
  EXPECT_FALSE(engine->has_work());
  engine->cancel(*id);  // twice is harmless
}

TEST(Engine, RefusesWhatCanNeverRun) {
  const auto engine = load_model(plain_model(), small_options(ComputeMode::kAuto));
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->add(one_choice({}, greedy(1))).error().code, ErrorCode::kUsage);
  EXPECT_EQ(engine->add(one_choice({-1}, greedy(1))).error().code, ErrorCode::kUsage);
  EXPECT_EQ(engine->add(one_choice({512}, greedy(1))).error().code, ErrorCode::kUsage);
  const auto too_long = engine->add(one_choice(prompt_of(512, 0), greedy(1)));
  ASSERT_FALSE(too_long);
  EXPECT_NE(too_long.error().message.find("maximum context length is 512 tokens"), std::string::npos);
  EXPECT_TRUE(engine->add(one_choice(prompt_of(511, 0), greedy(100))));
  EXPECT_EQ(engine->stats().waiting, 1);
}

TEST(Engine, StopsAtStopTokensAndLengths) {
  const auto engine = load_model(plain_model(), small_options(ComputeMode::kFloat32));
  ASSERT_TRUE(engine);
  const auto free_run = run_alone(*engine, prompt_of(20, 2), greedy(10));
  EXPECT_EQ(free_run.finish, FinishReason::kLength);
  ASSERT_EQ(free_run.tokens.size(), 10u);
  auto params = greedy(10);
  params.stop_token_ids = {free_run.tokens[4]};
  const auto stopped = run_alone(*engine, prompt_of(20, 2), params);
  EXPECT_EQ(stopped.finish, FinishReason::kStop);
  EXPECT_LE(stopped.tokens.size(), 5u);
  EXPECT_EQ(stopped.tokens.back(), free_run.tokens[4]);
}

TEST(Engine, RefusesAPoolTooSmallForOneRequestNamingWhatFits) {
  auto artifact_options = small_options(ComputeMode::kAuto);
  artifact_options.num_blocks = 2;
  auto artifact = artifact::open(plain_model());
  ASSERT_TRUE(artifact);
  auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec);
  const auto engine = Engine::load(*artifact, *spec, artifact_options);
  ASSERT_FALSE(engine);
  EXPECT_EQ(engine.error().code, ErrorCode::kNo);
  EXPECT_NE(engine.error().describe().find("32"), std::string::npos) << engine.error().describe();
}

TEST(Engine, PromptLogitsAreHeardInOrderWithoutBeingKept) {
  auto options = small_options(ComputeMode::kFloat32);
  options.max_num_batched_tokens = 32;
  const auto engine = load_model(plain_model(), options);
  ASSERT_TRUE(engine);
  SamplingParams params = greedy(2);
  params.return_prompt_logits = true;
  const auto prompt = prompt_of(100, 4);
  const Trace kept = run_alone(*engine, prompt, params);
  ASSERT_EQ(kept.prompt_logits.size(), 100u);
  for (const std::int64_t first : {0, 41, 99}) {
    std::vector<std::vector<float>> heard;
    Submission submission = one_choice(prompt, greedy(2));
    submission.first_heard = first;
    submission.on_prompt_logits = [&](std::int64_t position, std::span<const float> row) {
      EXPECT_EQ(position, first + std::ssize(heard));
      heard.emplace_back(row.begin(), row.end());
    };
    ASSERT_TRUE(engine->add(std::move(submission)));
    while (engine->has_work())
      for (const Output& output : engine->step()) EXPECT_TRUE(output.prompt_logits.empty());
    EXPECT_TRUE(
        std::ranges::equal(heard, std::span(kept.prompt_logits).subspan(static_cast<std::size_t>(first))))
        << first;
  }
}

}  // namespace
}  // namespace plimsoll::engine
