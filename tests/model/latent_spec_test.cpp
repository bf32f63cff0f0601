// SPDX-License-Identifier: Apache-2.0
// Specs of DeepSeek's shape and its relatives, and of the GGUF files of mixtures: what the arithmetic reads.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "model/model.h"
#include "tests/testing/golden.h"

namespace plimsoll::model {
namespace {

using testing::golden_path;

Result<ModelSpec> spec_of(const std::string& path) {
  PLIMSOLL_TRY(const auto artifact, artifact::open(path));
  return read_spec(*artifact);
}

ModelSpec read(const std::string& figures) {
  const auto config = parse_json("{" + figures + "}", "c");
  EXPECT_TRUE(config);
  const auto spec = read_spec(*config, "c");
  EXPECT_TRUE(spec) << spec.error().describe();
  return spec ? *spec : ModelSpec();
}

const Latent& latent_of(const ModelSpec& spec) {
  return std::get<Latent>(spec.layers.front().mixer);
}

TEST(LatentSpec, BothConfigSpellingsGiveOneSpecOfSoManyParameters) {
  for (const std::string& model :
       testing::present("models", {"deepseek_v2_lite", "deepseek_v3", "deepseek_v3_sharded"})) {
    SCOPED_TRACE(model);
    const auto old_style = spec_of(golden_path("models/" + model + "/config.json"));
    const auto new_style = spec_of(golden_path("models/" + model + "/config.transformers5.json"));
    ASSERT_TRUE(old_style && new_style);
    EXPECT_EQ(*old_style, *new_style);
    const auto expected = read_json_file(golden_path("models/" + model + "/expected.json"));
    ASSERT_TRUE(expected);
    EXPECT_EQ(count_parameters(*old_style), (*expected)["params_total"].as_integer());
  }
}

// Layer by layer: matrices of experts and heads are cut differently.
TEST(LatentSpec, GgufHasTheLayersOfItsFolder) {
  for (const auto& [file, model] :
       {std::pair("qwen3_moe-bf16.gguf", "qwen3_moe"), std::pair("gemma3_text-bf16.gguf", "gemma3_text"),
        std::pair("deepseek_v3-bf16.gguf", "deepseek_v3")}) {
    if (testing::present("gguf", {file}).empty()) continue;
    SCOPED_TRACE(file);
    auto gguf = spec_of(golden_path(std::string("gguf/") + file));
    const auto folder = spec_of(golden_path(std::string("models/") + model));
    ASSERT_TRUE(gguf && folder);
    EXPECT_EQ(gguf->architecture, folder->architecture);
    EXPECT_EQ(count_parameters(*gguf), count_parameters(*folder));
    ASSERT_EQ(gguf->layers.size(), folder->layers.size());
    for (std::size_t i = 0; i < gguf->layers.size(); ++i) {
      const Layer& expected = folder->layers[i];
      if (auto* latent = std::get_if<Latent>(&gguf->layers[i].mixer)) {
        const double scale = std::get<Latent>(expected.mixer).scale;  // yarn's factor is kept in 32 bit
        EXPECT_NEAR(latent->scale, scale, 1e-7);
        latent->scale = scale;
      }
      EXPECT_TRUE(gguf->layers[i] == expected) << "layer " << i;
    }
  }
}

// Figures of the classes where configs are silent, as transformers 5.23 has them.
TEST(LatentSpec, ClassesAssumeTheirOwnFigures) {
  const ModelSpec v3 = read(R"("architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 4)");
  const Router& router = v3.layers.back().ffn.router;
  EXPECT_EQ(router.groups, 8);
  EXPECT_EQ(router.groups_per_token, 4);
  EXPECT_EQ(router.scale, 2.5);
  EXPECT_TRUE(router.is_normalized && router.sums_two_of_group && v3.rope.interleaved);
  EXPECT_NEAR(latent_of(v3).scale, 1 / std::sqrt(192.0), 1e-12);

  const ModelSpec silent = read(R"("architectures": ["MiniCPM3ForCausalLM"])");
  EXPECT_EQ(silent.embedding_scale, 12.0);
  EXPECT_NEAR(silent.residual_scale, 1.4 / std::sqrt(62.0), 1e-12);
  EXPECT_EQ(silent.logits_scale, 0.1);
  EXPECT_FALSE(silent.rope.interleaved);
  const ModelSpec nulls =
      read(R"("architectures": ["MiniCPM3ForCausalLM"], "scale_depth": null, "dim_model_base": null)");
  EXPECT_EQ(nulls.residual_scale, 1.0);
  EXPECT_EQ(nulls.logits_scale, 1.0);

  const ModelSpec mistral = read(R"("architectures": ["Mistral4ForCausalLM"])");
  EXPECT_EQ(mistral.rope.kind, RopeKind::kYarn);
  EXPECT_EQ(latent_of(mistral).temperature_tokens, 8192);
  EXPECT_EQ(latent_of(mistral).temperature_scale, 0.1);
  EXPECT_NEAR(latent_of(mistral).scale, std::pow(0.1 * std::log(128.0) + 1, 2) / std::sqrt(128.0), 1e-12);
}

TEST(LatentSpec, WhatTransformersComputesOtherwiseIsAHintForEngines) {
  const auto is_own = [](const char* more) {
    const ModelSpec spec = read(std::string(R"("architectures": ["DeepseekV2ForCausalLM"])") + more);
    return std::find(spec.traits.begin(), spec.traits.end(), Trait::kOwnFfn) != spec.traits.end();
  };
  EXPECT_FALSE(is_own(""));
  EXPECT_FALSE(is_own(R"(, "topk_method": "group_limited_greedy", "n_group": 8, "topk_group": 3)"));
  EXPECT_TRUE(is_own(R"(, "norm_topk_prob": true)"));
  EXPECT_TRUE(is_own(R"(, "topk_method": "noaux_tc")"));
}

}  // namespace
}  // namespace plimsoll::model
