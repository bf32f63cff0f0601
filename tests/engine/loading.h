// SPDX-License-Identifier: Apache-2.0
// Loading and running small models, for the engine's tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/engine.h"

namespace plimsoll::engine {

/// Small pools and steps, so that tests reach the limits: 512 tokens of context, 64 tokens a step.
EngineOptions small_options(ComputeMode mode);

/// Opens, reads and loads; fails the test and returns null when one of them fails.
std::unique_ptr<Engine> load_model(const std::string& path, const EngineOptions& options);

/// The golden models: all of them, or with the copies in data/ alone those whose weights are there.
std::vector<std::string> models_with_weights();

struct Trace {
  std::vector<TokenId> tokens;
  std::vector<std::vector<float>> step_logits, prompt_logits;
  std::optional<FinishReason> finish;
  std::int64_t cached_prompt_tokens = 0;
};

SamplingParams greedy(std::int64_t max_tokens);

/// A submission of one choice.
Submission one_choice(std::vector<TokenId> prompt, const SamplingParams& params);

/// Adds what an output brought.
void take(Trace& run, Output& output);

/// Runs one request alone to its end, with all logits.
Trace run_alone(Engine& engine, const std::vector<TokenId>& prompt, const SamplingParams& params);

}  // namespace plimsoll::engine
