// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/loading.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "artifact/artifact.h"
#include "model/model.h"
#include "tests/testing/golden.h"

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

std::vector<std::string> models_with_weights() {
  auto names = testing::present("models", {"llama_plain",
                                           "llama_f32",
                                           "llama_f16",
                                           "llama_sharded",
                                           "llama_tied",
                                           "llama_k256",
                                           "llama_v5config",
                                           "llama_bias",
                                           "llama_mqa",
                                           "llama_headdim32",
                                           "llama_rope_llama3",
                                           "llama_rope_yarn",
                                           "llama_rope_linear",
                                           "qwen2",
                                           "qwen2_sliding",
                                           "qwen3",
                                           "mistral",
                                           "phi4",
                                           "phi4_mini",
                                           "phi3_longrope",
                                           "gemma2",
                                           "gemma3_text",
                                           "granite",
                                           "olmo2",
                                           "olmo3",
                                           "cohere2",
                                           "glm4",
                                           "smollm3",
                                           "starcoder2",
                                           "gpt2",
                                           "gpt_neox",
                                           "falcon_7b_style",
                                           "opt",
                                           "mixtral",
                                           "qwen2_moe",
                                           "qwen3_moe",
                                           "qwen3_moe_f32",
                                           "glm4_moe",
                                           "minimax_m2",
                                           "deepseek_v2_lite",
                                           "deepseek_v3",
                                           "deepseek_v3_sharded",
                                           "kimi_linear",
                                           "mamba2",
                                           "nemotron_h",
                                           "falcon_h1",
                                           "jamba",
                                           "minimax",
                                           "qwen3_next",
                                           "qwen3_5_text",
                                           "qwen3_5_moe_text",
                                           "gpt_oss",
                                           "llama4_text"});
  std::erase_if(names, [](const std::string& name) {
    const std::string folder = testing::golden_path("models/" + name);
    return !std::filesystem::exists(folder + "/model.safetensors") &&
           !std::filesystem::exists(folder + "/model.safetensors.index.json");
  });
  return names;
}

}  // namespace plimsoll::engine
