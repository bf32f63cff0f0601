// SPDX-License-Identifier: Apache-2.0
// Bytes that vLLM's own model classes hold on rank 0.
#include "memory/vllm_weights.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iostream>

#include "base/json.h"
#include "facts/facts.h"
#include "memory/quantized_weights.h"
#include "tests/memory/worked_case.h"
#include "tests/testing/golden.h"

namespace plimsoll::memory {
namespace {

std::string config_of(const std::string& model) {
  const std::string path = testing::golden_path("vllm_kv/configs/" + model + "_config.json");
  if (std::filesystem::exists(path)) return path;
  // Two of the models are among the published configs.
  std::string folder = model;
  if (folder.starts_with("hand--")) folder = "Qwen--" + folder.substr(6);
  folder.replace(folder.find("--"), 2, "__");
  return testing::golden_path("configs/" + folder + "/config.json");
}

TEST(VllmWeights, EveryRowOfTheEnginesOwnClasses) {
  std::ifstream in(testing::golden_path("vllm_kv/golden_weights.jsonl"));
  std::size_t rows = 0;
  for (std::string line; std::getline(in, line); ++rows) {
    const auto row = parse_json(line, "golden_weights.jsonl");
    ASSERT_TRUE(row);
    const std::string model = *(*row)["model"].as_string(), option = *(*row)["option"].as_string();
    const auto tp = (*row)["tp"].as_integer().value_or(0);
    SCOPED_TRACE(model + " " + option + " tp " + std::to_string(tp));
    // The smaller of two sisters has no config here: it differs in layers and experts only.
    const bool is_smaller = model == "openai--gpt-oss-20b";
    const std::string path = config_of(is_smaller ? "openai--gpt-oss-120b" : model);
    auto config = read_json_file(path);
    ASSERT_TRUE(config) << path;
    if (is_smaller) {
      config->set("num_hidden_layers", Json(24));
      config->set("num_local_experts", Json(32));
      config->set("layer_types", Json());
    }
    const auto spec = model::read_spec(*config, path);
    ASSERT_TRUE(spec) << spec.error().describe();
    const auto weights = vllm_weights(*spec, {.dtype = DType::kBF16,
                                              .tensor_parallel = static_cast<int>(tp),
                                              .is_expert_parallel = option == "ep",
                                              .has_prediction_layers = false});
    ASSERT_TRUE(weights) << weights.error().describe();
    EXPECT_TRUE(weights->unknown.empty()) << weights->unknown.front();
    EXPECT_EQ(weights->bytes.value, (*row)["param_bytes"].as_integer());
    EXPECT_EQ(vllm_buffers(*spec, DType::kBF16)->value, (*row)["buffer_bytes"].as_integer());
  }
  EXPECT_GT(rows, 0U);
  std::cout << rows << " rows\n";
}

// 128 experts of 30 layers: slices and whole experts are split over all copies; what is left goes to the
// first ranks.
TEST(VllmWeights, CopiesShareTheirExperts) {
  const auto config = read_json_file(config_of("Qwen--Qwen3-30B-A3B"));
  ASSERT_TRUE(config);
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec);
  const auto of = [&](int tensor, int data, bool is_expert_parallel) {
    return vllm_weights(
        *spec, {.tensor_parallel = tensor, .data_parallel = data, .is_expert_parallel = is_expert_parallel});
  };
  const auto one = of(1, 1, false), copies = of(1, 4, false), whole = of(1, 4, true);
  ASSERT_TRUE(one && copies && whole);
  EXPECT_EQ(copies->bytes, whole->bytes);
  std::int64_t experts = 0;
  for (const auto& weight : spec->weights)
    if (weight.group == model::WeightGroup::kExperts) experts += weight.elements() * 2;
  EXPECT_EQ(one->bytes.value - copies->bytes.value, experts / 4 * 3);
  EXPECT_EQ(of(1, 3, true)->bytes.value - (one->bytes.value - experts), experts / 128 * 43);
  EXPECT_EQ(of(1, 129, true).error().code, ErrorCode::kNo);
  EXPECT_EQ(of(1, 0, true).error().code, ErrorCode::kUsage);
}

TEST(VllmWeights, TheWorkedCase) {
  const testing::WorkedCase page("vllm_weights.md");
  const auto config = read_json_file(config_of("meta-llama--Meta-Llama-3.1-8B"));
  ASSERT_TRUE(config);
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec);
  EXPECT_EQ(vllm_weights(*spec, {})->bytes.value, page.integer("8b_bytes_of_1"));
  EXPECT_EQ(vllm_weights(*spec, {.tensor_parallel = 2})->bytes.value, page.integer("8b_bytes_of_2"));
  EXPECT_EQ(vllm_buffers(*spec, DType::kBF16)->value, page.integer("8b_buffers"));
  const auto three = vllm_weights(*spec, {.tensor_parallel = 3});
  ASSERT_FALSE(three);
  EXPECT_EQ(three.error().code, ErrorCode::kNo);
}

// Qwen3.8 in bf16 by part: main part, n-gram table, prediction layer. The table of expected figures was
// derived by others: its main part has 0.02 GiB more than the checkpoint's tensors add up to, and it shares
// out the prediction layer's two KV heads over 8 ranks, where the engine copies them.
TEST(VllmWeights, NgramTablesApart) {
  const auto config = read_json_file(testing::golden_path("qwen38/config.json"));
  const auto expected = read_json_file(testing::golden_path("qwen38/expected.json"));
  ASSERT_TRUE(config && expected);
  const auto spec = model::read_spec(*config, "qwen38");
  ASSERT_TRUE(spec);
  const auto gib = [](Bytes bytes) { return static_cast<double>(bytes.value) / static_cast<double>(kGiB); };
  for (const int ranks : {1, 2, 4, 8}) {
    SCOPED_TRACE(ranks);
    VllmWeightSettings settings;
    settings.tensor_parallel = ranks;
    settings.keeps_tables_in_host = true;
    const auto main = vllm_weights(*spec, settings);
    settings.has_prediction_layers = true;
    const auto with_drafts = vllm_weights(*spec, settings);
    settings.has_prediction_layers = settings.keeps_tables_in_host = false;
    const auto on_gpu = vllm_weights(*spec, settings);
    ASSERT_TRUE(main && with_drafts && on_gpu);
    EXPECT_TRUE(main->unknown.empty()) << main->unknown.front();
    const Json& row = (*expected)["weights_per_rank_derived"]["table"]["bf16_tp" + std::to_string(ranks)];
    EXPECT_NEAR(gib(main->bytes), *row["main_without_table_GiB"].as_double(), 0.023);
    EXPECT_NEAR(gib(main->in_host), *row["ngram_table_GiB"].as_double(), 0.00501);
    EXPECT_NEAR(gib(with_drafts->bytes - main->bytes), *row["mtp_GiB"].as_double(), 0.0065);
    EXPECT_EQ(on_gpu->bytes, main->bytes + main->in_host);
  }
}

// Wrappers name their language model's layers by other names than the spec: what is quantized is asked for
// under the declaration's own, and one rank holds what the checkpoint stores. Latent vectors are unfolded by
// a plain copy that engines add, and four-bit experts are filled up: those are left out here.
TEST(VllmWeights, QuantizedWrappersHoldWhatIsStored) {
  int compared = 0;
  for (const char* id : {"nvidia/Qwen3.6-27B-NVFP4", "nvidia/Qwen3.6-35B-A3B-NVFP4",
                         "nvidia/Qwen3.5-122B-A10B-NVFP4", "nvidia/Gemma-4-26B-A4B-NVFP4"}) {
    SCOPED_TRACE(id);
    const auto* entry = facts::find_catalogue(id);
    ASSERT_NE(entry, nullptr);
    const Json config = entry->config_json();
    const auto spec = model::read_spec(config, id);
    ASSERT_TRUE(spec) << spec.error().describe();
    const auto quantization = model::read_quantization(config, {});
    ASSERT_TRUE(quantization);
    const auto stored = stored_checkpoint(*spec, quantization);
    ASSERT_TRUE(stored);
    std::int64_t beside = 0;  // encoders and prediction layers, in 16 bit or as the declaration says
    for (const auto& weight : spec->weights)
      if (weight.group == model::WeightGroup::kEncoder) beside += weight.elements() * 2;
    VllmWeightSettings settings;
    settings.quantization = &*quantization;
    settings.has_encoders = false;
    settings.has_prediction_layers = true;
    const auto held = vllm_weights(*spec, settings);
    ASSERT_TRUE(held) << held.error().describe();
    EXPECT_NEAR(static_cast<double>(held->bytes.value), static_cast<double>(stored->bytes.value - beside),
                static_cast<double>(stored->bytes.value) * 0.001);
    ++compared;
  }
  EXPECT_EQ(compared, 4);
}

// Blocks of an encoder are split where the class of its model does that; what has no such layers, and widths
// that cannot be split, stay whole.
TEST(VllmWeights, EncodersByTheirClass) {
  const auto* entry = facts::find_catalogue("nvidia/Qwen3.6-27B-NVFP4");
  ASSERT_NE(entry, nullptr);
  const Json config = entry->config_json();
  const auto spec = model::read_spec(config, entry->id);
  ASSERT_TRUE(spec);
  const auto held = [&](int ranks, EncoderSplit split, bool has_encoders = true) {
    VllmWeightSettings settings;
    settings.tensor_parallel = ranks;
    settings.has_encoders = has_encoders;
    settings.encoder_split = split;
    const auto weights = vllm_weights(*spec, settings);
    EXPECT_TRUE(weights && weights->unknown.empty());
    return weights ? weights->bytes.value : 0;
  };
  std::int64_t all = 0, blocks = 0, projector = 0;
  for (const auto& weight : spec->weights) {
    if (weight.group != model::WeightGroup::kEncoder) continue;
    const std::string& name = weight.hf_name;
    all += weight.elements() * 2;
    const bool is_row_bias = name.ends_with("attn.proj.bias") || name.ends_with("fc2.bias");
    const bool is_block = name.find(".attn.") != std::string::npos || name.find(".mlp.") != std::string::npos;
    const bool is_projector = name.find(".linear_fc") != std::string::npos;
    if (is_row_bias) continue;
    if (is_block) blocks += weight.elements() * 2;
    if (is_projector) projector += weight.elements() * 2;
  }
  EXPECT_GT(projector, 0);
  for (const int ranks : {1, 2, 4}) {
    const std::int64_t text = held(ranks, EncoderSplit::kNone, false);
    EXPECT_EQ(held(ranks, EncoderSplit::kNone) - text, all);
    EXPECT_EQ(held(ranks, EncoderSplit::kBlocks) - text, all - blocks + blocks / ranks);
    EXPECT_EQ(held(ranks, EncoderSplit::kBlocksAndProjector) - text,
              all - (blocks + projector) / ranks * (ranks - 1));
  }
}

}  // namespace
}  // namespace plimsoll::memory
