// SPDX-License-Identifier: Apache-2.0
// Holds the engine in float32 mode to transformers' own numbers: logits within the tolerance and greedy
// tokens identical.
#include "tests/testing/golden.h"

#include <gtest/gtest.h>

#include <cmath>

#include "artifact/artifact.h"
#include "base/json.h"
#include "engine/engine.h"
#include "model/model.h"
#include "tests/engine/loading.h"
#include "tests/testing/tensor_file.h"

namespace plimsoll::engine {
namespace {

// Eager float32 of the reference against our summation order; its own f32-against-f64 error is below 1e-4.
constexpr float kTolerance = 2e-3F;
// MiniMax's files hold tables of decays in bf16, which the reference read; see docs/architectures.md.
constexpr float kRoundedDecays = 1e-2F;

std::vector<TokenId> ids_of(const Json& list) {
  std::vector<TokenId> ids;
  for (const auto& id : list.items()) ids.push_back(static_cast<TokenId>(*id.as_integer()));
  return ids;
}

float largest_difference(std::span<const float> found, std::span<const float> expected) {
  EXPECT_EQ(found.size(), expected.size());
  float largest = 0;
  for (std::size_t i = 0; i < std::min(found.size(), expected.size()); ++i) {
    const float difference = std::fabs(found[i] - expected[i]);
    largest = std::isnan(difference) ? INFINITY : std::max(largest, difference);
  }
  return largest;
}

EngineOptions options_for(const std::string& folder) {
  EngineOptions options = small_options(ComputeMode::kFloat32);
  const auto artifact = artifact::open(folder);
  const auto spec = artifact ? model::read_spec(**artifact) : fail(artifact.error());
  EXPECT_TRUE(spec) << folder;
  if (spec && spec->context_tokens() > 0)
    options.max_model_len = std::min(*options.max_model_len, spec->context_tokens());
  return options;
}

// transformers' step by step decode of these differs from its own full forward pass (by 0.2 and 0.008), which
// is what the engine is held to.
bool has_sound_steps(const std::string& model) {
  return model != "nemotron_h" && model != "minimax";
}

class GoldenModel : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenModel, LogitsAndGreedyTokensMatchTransformers) {
  const std::string folder = testing::golden_path("models/" + GetParam());
  const auto expected = read_json_file(folder + "/expected.json");
  ASSERT_TRUE(expected) << folder;
  const auto logits = testing::read_float_tensors(folder + "/expected_logits.safetensors");
  ASSERT_FALSE(logits.empty());
  const float tolerance = GetParam() == "minimax" ? kRoundedDecays : kTolerance;
  for (const std::string prompt : {"p0", "p1", "p2"}) {
    SCOPED_TRACE(prompt);
    const Json& row = (*expected)["prompts"][prompt];
    SamplingParams params = greedy(48);
    params.return_prompt_logits = true;
    const auto ids = ids_of(row["ids"]);
    const auto engine = load_model(folder, options_for(folder));
    ASSERT_TRUE(engine);
    EXPECT_EQ(engine->memory().kv_bytes_per_token.value,
              *(*expected)["kv"]["elements_per_token_short"].as_integer() * 4);
    const Trace run = run_alone(*engine, ids, params);
    EXPECT_EQ(run.tokens, ids_of(row["greedy48"]));
    ASSERT_EQ(run.step_logits.size(), 48u);
    EXPECT_LT(largest_difference(run.step_logits[0], logits.at(prompt + ".last").values), tolerance);
    EXPECT_LT(largest_difference(run.prompt_logits.back(), logits.at(prompt + ".last").values), tolerance);
    if (prompt == "p2" && has_sound_steps(GetParam())) {
      EXPECT_LT(largest_difference(run.step_logits[47], logits.at("p2.greedy_last").values), tolerance);
    }
    if (prompt != "p1") continue;
    const auto& all = logits.at("p1.all");
    for (std::int64_t t = 0; t < all.shape[0]; ++t)
      EXPECT_LT(largest_difference(run.prompt_logits[static_cast<std::size_t>(t)],
                                   std::span(all.values)
                                       .subspan(static_cast<std::size_t>(t * all.shape[1]),
                                                static_cast<std::size_t>(all.shape[1]))),
                tolerance)
          << "prompt position " << t;
  }
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel, ::testing::ValuesIn(models_with_weights()),
                         [](const auto& test) { return test.param; });

class GoldenGguf : public ::testing::TestWithParam<std::string> {};

TEST_P(GoldenGguf, LogitsAndGreedyTokensMatchDequantizedReference) {
  const auto expected = read_json_file(testing::golden_path("gguf/expected_gguf.json"));
  ASSERT_TRUE(expected);
  const auto logits =
      testing::read_float_tensors(testing::golden_path("gguf/expected_gguf_logits.safetensors"));
  const std::string& file = GetParam();
  const Json& rows = (*expected)["files"][file];
  ASSERT_TRUE(rows.is_object()) << file;
  const auto prompts =
      read_json_file(testing::golden_path("models/" + *rows["base"].as_string() + "/expected.json"));
  ASSERT_TRUE(prompts);
  const auto engine = load_model(testing::golden_path("gguf/" + file), small_options(ComputeMode::kFloat32));
  ASSERT_TRUE(engine);
  for (const std::string prompt : {"p0", "p1", "p2"}) {
    SCOPED_TRACE(prompt);
    const Trace run = run_alone(*engine, ids_of((*prompts)["prompts"][prompt]["ids"]), greedy(32));
    EXPECT_EQ(run.tokens, ids_of(rows["prompts"][prompt]["hf_greedy"]))
        << "margin " << *rows["prompts"][prompt]["hf_min_margin"].as_double();
    EXPECT_LT(largest_difference(run.step_logits[0], logits.at(file + "." + prompt + ".hf_last").values),
              kTolerance);
  }
}

// Those whose architecture the engine computes; without the full sets, the copied ones.
std::vector<std::string> computed_files() {
  std::vector<std::string> files;
  for (const char* name :
       {"llama_plain-bf16",  "llama_plain-f16",     "llama_rope_llama3-bf16", "llama_k256-bf16",
        "llama_k256-Q4_0",   "llama_k256-Q4_1",     "llama_k256-Q5_0",        "llama_k256-Q5_1",
        "llama_k256-Q8_0",   "llama_k256-Q2_K",     "llama_k256-Q3_K_M",      "llama_k256-Q4_K_M",
        "llama_k256-Q5_K_M", "llama_k256-Q6_K",     "llama_k256-IQ4_NL",      "llama_k256-IQ4_XS",
        "qwen2-f16",         "qwen2-Q8_0",          "qwen2-Q4_K_M",           "qwen3-bf16",
        "qwen3-Q8_0",        "qwen3-Q4_0",          "qwen3_moe-bf16",         "qwen3_moe-Q8_0",
        "qwen3_moe-Q4_0",    "qwen3_moe-MXFP4_MOE", "gemma3_text-bf16",       "gemma3_text-Q8_0",
        "gemma3_text-Q4_0",  "deepseek_v3-bf16",    "deepseek_v3-Q8_0"})
    files.push_back(std::string(name) + ".gguf");
  return testing::present("gguf", files);
}

INSTANTIATE_TEST_SUITE_P(Computed, GoldenGguf, ::testing::ValuesIn(computed_files()), [](const auto& test) {
  std::string name = test.param.substr(0, test.param.size() - std::string(".gguf").size());
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
});

}  // namespace
}  // namespace plimsoll::engine
