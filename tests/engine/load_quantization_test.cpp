// SPDX-License-Identifier: Apache-2.0
// Weights rounded to blocks while a model is loaded: bytes as planned, logits near those of the stored ones.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "base/json.h"
#include "engine/engine.h"
#include "memory/memory.h"
#include "model/model.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"
#include "tests/testing/made_files.h"

namespace plimsoll::engine {
namespace {

using memory::WeightFormat;

EngineOptions options_for(std::optional<WeightFormat> format) {
  EngineOptions options = small_options(ComputeMode::kFloat32);
  options.quantization = format;
  options.max_model_len = 256;
  options.num_blocks = 2'000;
  options.threads = 2;
  return options;
}

std::vector<float> logits_of(Engine& engine) {
  std::vector<TokenId> prompt(40);
  for (std::size_t i = 0; i < prompt.size(); ++i)
    prompt[i] = static_cast<TokenId>((i * 37 + i * i) % 500 + 3);
  return run_alone(engine, prompt, greedy(1)).step_logits.at(0);
}

double root_mean_square(const std::vector<float>& values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return std::sqrt(sum / static_cast<double>(values.size()));
}

class QuantizedAtLoad : public ::testing::TestWithParam<std::string> {};

// Rounding is off by 0.5 % and 7 % of the weights; layers behind each other add up, and the choice of an
// expert tips over in models whose experts have nothing in common.
TEST_P(QuantizedAtLoad, TakesWhatWasPlannedAndStaysNear) {
  const std::string path = testing::golden_path("models/" + GetParam());
  const auto artifact = artifact::open(path);
  ASSERT_TRUE(artifact);
  const auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec);
  const auto stored = load_model(path, options_for({}));
  ASSERT_TRUE(stored);
  const auto exact = logits_of(*stored);
  Bytes before = stored->memory().weights;
  const bool has_experts =
      std::ranges::any_of(spec->weights, [](const auto& weight) { return weight.copies > 1; });
  for (const auto& [format, bound] : {std::pair(WeightFormat::kInt8, has_experts ? 0.3 : 0.05),
                                      {WeightFormat::kInt4, has_experts ? 1.0 : 0.6}}) {
    const auto engine = load_model(path, options_for(format));
    ASSERT_TRUE(engine);
    const auto planned = memory::loaded_weights_bytes(artifact->get(), *spec, format);
    ASSERT_TRUE(planned) << planned.error().describe();
    EXPECT_EQ(engine->memory().weights, *planned);
    EXPECT_LT(*planned, before) << "fewer bits take fewer bytes";
    before = *planned;
    auto found = logits_of(*engine);
    for (std::size_t i = 0; i < found.size(); ++i) found[i] -= exact[i];
    const double error = root_mean_square(found) / root_mean_square(exact);
    EXPECT_GT(error, 0);
    EXPECT_LT(error, bound);
  }
}
INSTANTIATE_TEST_SUITE_P(Models, QuantizedAtLoad, ::testing::ValuesIn(models_with_weights()),
                         [](const auto& test) { return test.param; });

TEST(QuantizedAtLoadOf, LayersAreTold) {
  std::vector<std::string> told;
  EngineOptions options = options_for(WeightFormat::kInt8);
  options.on_progress = [&](std::string_view text) { told.emplace_back(text); };
  ASSERT_TRUE(load_model(testing::golden_path("models/llama_plain"), options));
  ASSERT_EQ(told.size(), 4u);
  EXPECT_EQ(told.front(), "quantizing weights: layer 1 of 4");
  EXPECT_EQ(told.back(), "quantizing weights: layer 4 of 4");
}

// A file of terabytes that has no blocks on the disk, and lacks a tensor: whoever looked for tensors before
// memory was counted would say so.
TEST(Loading, ACheckpointBeyondAllMemoryIsRefusedByItsHeadersAlone) {
  const testing::MadeFolder folder;
  folder.put("config.json",
             R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512,
    "hidden_size": 16384, "intermediate_size": 262144, "num_hidden_layers": 100, "num_attention_heads": 128,
    "num_key_value_heads": 8, "max_position_embeddings": 1024, "rms_norm_eps": 1e-5, "hidden_act": "silu",
    "torch_dtype": "bfloat16"})");
  const auto config = artifact::open(folder.path().string());
  ASSERT_TRUE(config);
  const auto spec = model::read_spec(**config);
  ASSERT_TRUE(spec) << spec.error().describe();
  Json header = Json::object();
  std::int64_t end = 0;
  for (const model::Weight& weight : spec->weights) {
    if (weight.role == model::Role::kOutputNorm) continue;
    Json shape = Json::array();
    for (const std::int64_t size : weight.shape) shape.push_back(size);
    Json offsets = Json::array();
    offsets.push_back(end);
    offsets.push_back(end += 2 * weight.elements());
    header.set(weight.hf_name,
               Json::object({{"dtype", "BF16"}, {"shape", shape}, {"data_offsets", offsets}}));
  }
  folder.put("model.safetensors", testing::safetensors_file(dump(header)));
  const auto file = folder.path() / "model.safetensors";
  std::filesystem::resize_file(file, std::filesystem::file_size(file) + static_cast<std::uintmax_t>(end));
  const auto artifact = artifact::open(folder.path().string());
  ASSERT_TRUE(artifact);
  for (const auto format : {std::optional<WeightFormat>(), std::optional(WeightFormat::kInt4)}) {
    EngineOptions options = options_for(format);
    options.max_num_batched_tokens = 16;
    const auto engine = Engine::load(*artifact, *spec, options);
    ASSERT_FALSE(engine);
    EXPECT_EQ(engine.error().code, ErrorCode::kNo) << engine.error().describe();
  }
}

TEST(QuantizedAtLoadOf, AModelThatIsStoredQuantizedIsRefused) {
  for (const std::string& folder :
       testing::present("quantized", {"gptq_int4_sym", "gptq_int4_asym_desc_act", "fp8_block128"})) {
    const auto artifact = artifact::open(testing::golden_path("quantized/" + folder));
    ASSERT_TRUE(artifact);
    const auto spec = model::read_spec(**artifact);
    ASSERT_TRUE(spec);
    const auto engine = Engine::load(*artifact, *spec, options_for(WeightFormat::kInt8));
    ASSERT_FALSE(engine) << folder;
    EXPECT_EQ(engine.error().code, ErrorCode::kUsage);
    EXPECT_EQ(engine.error().where, "--quantization");
  }
  const std::string blocks = testing::golden_path("gguf/llama_k256-Q4_0.gguf");
  const auto artifact = artifact::open(blocks);
  ASSERT_TRUE(artifact);
  const auto spec = model::read_spec(**artifact);
  ASSERT_TRUE(spec);
  const auto engine = Engine::load(*artifact, *spec, options_for(WeightFormat::kInt4));
  ASSERT_FALSE(engine);
  EXPECT_NE(engine.error().message.find("q4_0"), std::string::npos) << engine.error().message;
  EXPECT_TRUE(
      load_model(testing::golden_path("gguf/llama_plain-bf16.gguf"), options_for(WeightFormat::kInt4)));
}

}  // namespace
}  // namespace plimsoll::engine
