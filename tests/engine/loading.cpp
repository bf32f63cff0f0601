// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/loading.h"

#include <gtest/gtest.h>

#include "artifact/artifact.h"
#include "model/model.h"

namespace plimsoll::engine {

EngineOptions small_options(ComputeMode mode) {
  EngineOptions options;
  options.mode = mode;
  options.threads = 1;
  options.max_model_len = 512;
  options.num_blocks = 128;
  options.max_num_seqs = 8;
  options.max_num_batched_tokens = 64;
  return options;
}

std::unique_ptr<Engine> load_model(const std::string& path, const EngineOptions& options) {
  auto artifact = artifact::open(path);
  EXPECT_TRUE(artifact) << path << ": " << (artifact ? "" : artifact.error().describe());
  if (!artifact) return nullptr;
  auto spec = model::read_spec(**artifact);
  EXPECT_TRUE(spec) << path << ": " << (spec ? "" : spec.error().describe());
  if (!spec) return nullptr;
  auto engine = Engine::load(*artifact, *spec, options);
  EXPECT_TRUE(engine) << path << ": " << (engine ? "" : engine.error().describe());
  return engine ? std::move(*engine) : nullptr;
}

SamplingParams greedy(std::int64_t max_tokens) {
  SamplingParams params;
  params.temperature = 0;
  params.max_tokens = max_tokens;
  params.return_step_logits = true;
  return params;
}

Submission one_choice(std::vector<TokenId> prompt, const SamplingParams& params) {
  Submission submission;
  submission.prompt = std::move(prompt);
  submission.choices = {params};
  return submission;
}

void take(Trace& run, Output& output) {
  EXPECT_NE(output.finish, FinishReason::kError) << output.error;
  run.tokens.insert(run.tokens.end(), output.tokens.begin(), output.tokens.end());
  for (auto& logits : output.logits) run.step_logits.push_back(std::move(logits));
  if (!output.prompt_logits.empty()) run.prompt_logits = std::move(output.prompt_logits);
  run.cached_prompt_tokens += output.cached_prompt_tokens;
  if (output.finish) run.finish = output.finish;
}

Trace run_alone(Engine& engine, const std::vector<TokenId>& prompt, const SamplingParams& params) {
  Trace run;
  const auto id = engine.add(one_choice(prompt, params));
  EXPECT_TRUE(id) << (id ? "" : id.error().describe());
  while (engine.has_work())
    for (auto& output : engine.step()) take(run, output);
  return run;
}

}  // namespace plimsoll::engine
