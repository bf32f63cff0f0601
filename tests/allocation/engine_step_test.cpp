// SPDX-License-Identifier: Apache-2.0
// A step of the engine asks the system for no memory once the engine is warm.
#include <gtest/gtest.h>

#include "engine/engine.h"
#include "tests/allocation/counting.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

struct Case {
  const char* name;
  const char* model;
  ComputeMode mode;
  bool has_prefix_cache;
  double temperature;
};

class EngineStep : public ::testing::TestWithParam<Case> {};

// Prompts of four chunks and of a part of one; `round` makes them new.
void add_all(Engine& engine, int round, double temperature) {
  for (const int length : {150, 37, 203, 64}) {
    std::vector<TokenId> prompt;
    for (int i = 0; i < length; ++i) prompt.push_back((round * 71 + length * 13 + i * 37 + i * i) % 250 + 3);
    SamplingParams params;
    params.max_tokens = 40 + length % 7;
    params.temperature = temperature;
    params.seed = 7;
    ASSERT_TRUE(engine.add(one_choice(std::move(prompt), params)));
  }
}

TEST_P(EngineStep, AllocatesNothingOnceWarm) {
  const Case& c = GetParam();
  EngineOptions options = small_options(c.mode);
  options.threads = 2;
  options.enable_prefix_caching = c.has_prefix_cache;
  const auto engine = load_model(testing::golden_path(std::string("models/") + c.model), options);
  ASSERT_TRUE(engine);
  for (int round = 0; round < 2; ++round) {
    add_all(*engine, round, c.temperature);
    while (engine->has_work()) engine->step();
  }
  add_all(*engine, 2, c.temperature);
  int num_prefills = 0, num_decodes = 0;
  while (engine->has_work()) {
    const std::int64_t waiting = engine->stats().waiting, before = testing::num_allocations();
    const auto outputs = engine->step();
    const std::int64_t allocated = testing::num_allocations() - before;
    // A sequence's tables are made for its whole length when it is admitted.
    if (engine->stats().waiting < waiting) continue;
    EXPECT_EQ(allocated, 0) << "step " << num_prefills + num_decodes;
    ++(outputs.size() < 4 && num_decodes == 0 ? num_prefills : num_decodes);
  }
  EXPECT_GE(num_prefills, 2);
  EXPECT_GT(num_decodes, 30);
}

INSTANTIATE_TEST_SUITE_P(
    Models, EngineStep,
    ::testing::Values(Case{"plain", "llama_plain", ComputeMode::kAuto, true, 0},
                      Case{"plain_f32", "llama_plain", ComputeMode::kFloat32, true, 0},
                      Case{"plain_without_cache", "llama_plain", ComputeMode::kAuto, false, 0},
                      Case{"plain_sampled", "llama_plain", ComputeMode::kAuto, true, 0.8},
                      Case{"windows", "qwen2_sliding", ComputeMode::kAuto, true, 0},
                      Case{"soft_caps", "gemma2", ComputeMode::kAuto, true, 0},
                      Case{"states", "nemotron_h", ComputeMode::kAuto, true, 0},
                      Case{"latents", "kimi_linear", ComputeMode::kAuto, true, 0}),
    [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace plimsoll::engine
