// SPDX-License-Identifier: Apache-2.0
// Checkpoints by their configs alone, against the headers of checkpoints that were written.
#include "memory/quantized_weights.h"

#include <gtest/gtest.h>

#include <array>

#include "base/json.h"
#include "facts/facts.h"
#include "tests/testing/golden.h"

namespace plimsoll::memory {
namespace {

TEST(QuantizedWeights, ConfigsGiveTheBytesOfTheirHeaders) {
  const auto layouts = read_json_file(testing::data_path("quantized/layouts.json"));
  ASSERT_TRUE(layouts) << layouts.error().describe();
  int compared = 0;
  for (const Json& layout : (*layouts)["layouts"].items()) {
    const std::string& name = *layout["name"].as_string();
    SCOPED_TRACE(name);
    const auto spec = model::read_spec(layout["config"], "config.json");
    if (!spec) continue;  // a family that is not read, or none: its layout alone is of interest
    const auto quantization = model::read_quantization(layout["config"], Json());
    ASSERT_TRUE(quantization);
    const auto checkpoint = stored_checkpoint(*spec, quantization);
    ASSERT_TRUE(checkpoint);
    // Only scales that are quantized again write a number out, whose digits differ.
    EXPECT_EQ(checkpoint->within.value > 0, name == "bnb_nf4_double");
    EXPECT_NEAR(static_cast<double>(checkpoint->bytes.value),
                static_cast<double>(layout["expected"]["stored_bytes"].as_integer().value_or(-1)),
                static_cast<double>(checkpoint->within.value));
    ++compared;
  }
  EXPECT_GE(compared, 10);
}

// Four-bit codes for linear layers: neither the output embedding, whatever it is called, nor a stack of
// experts that is one parameter. Source: the layers that transformers 5.24 replaces.
TEST(QuantizedWeights, WhatBitsandbytesLeaves) {
  const auto schemes = [](const char* text, std::string_view part) {
    const auto config = parse_json(text, "config.json");
    const auto spec = model::read_spec(*config, "config.json");
    EXPECT_TRUE(spec) << spec.error().describe();
    const auto quantization = model::read_quantization(
        *parse_json(R"({"quantization_config":{"quant_method":"bitsandbytes","load_in_4bit":true,
                        "bnb_4bit_quant_type":"nf4"}})",
                    "config.json"),
        Json());
    int found = 0, taken = 0;
    const auto declared = DeclaredSchemes::find(*spec, *quantization);
    EXPECT_TRUE(declared);
    for (const model::Weight& weight : spec->weights) {
      if (weight.hf_name.find(part) == std::string::npos) continue;
      ++found;
      if (declared && declared->scheme_of(weight)) ++taken;
    }
    EXPECT_GT(found, 0) << part;
    return taken;
  };
  const char* neox = R"({"architectures":["GPTNeoXForCausalLM"],"model_type":"gpt_neox","hidden_size":64,
      "intermediate_size":128,"num_attention_heads":4,"num_hidden_layers":1,"vocab_size":99,
      "tie_word_embeddings":false})";
  EXPECT_EQ(schemes(neox, "embed_out"), 0);
  EXPECT_GT(schemes(neox, "dense_h_to_4h"), 0);
  const char* gpt_oss = R"({"architectures":["GptOssForCausalLM"],"model_type":"gpt_oss","hidden_size":64,
      "intermediate_size":64,"num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,
      "num_hidden_layers":1,"num_local_experts":4,"num_experts_per_tok":2,"vocab_size":99})";
  EXPECT_EQ(schemes(gpt_oss, "experts"), 0);
  EXPECT_GT(schemes(gpt_oss, "q_proj"), 0);
}

// In a wrapper the lists name modules as its files do. Source: the hub's count of nvidia's checkpoint.
TEST(QuantizedWeights, ListsOfAWrappersModules) {
  const auto config = facts::catalogue_config("nvidia/Gemma-4-26B-A4B-NVFP4");
  ASSERT_TRUE(config);
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto checkpoint = stored_checkpoint(*spec, model::read_quantization(*config, Json()));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->packed, 14'386'941'232 - 25'805'933'872);
}

// Modules of a wrapper by the two names in use; others are not guessed.
TEST(QuantizedWeights, NamesOfAWrappersModules) {
  const auto bytes_with = [](const char* ignore) -> std::int64_t {
    Json config = *parse_json(R"({"architectures":["Qwen3_5ForConditionalGeneration"],"model_type":"qwen3_5",
        "text_config":{"model_type":"qwen3_5_text","hidden_size":64,"intermediate_size":128,
        "num_attention_heads":4,"num_key_value_heads":2,"head_dim":16,"num_hidden_layers":2,"vocab_size":320,
        "layer_types":["full_attention","full_attention"]}})",
                              "config.json");
    config.set("quantization_config", Json::object({{"quant_method", "modelopt"},
                                                    {"quant_algo", "NVFP4"},
                                                    {"ignore", Json(Json::Array{ignore})}}));
    const auto spec = model::read_spec(config, "config.json");
    EXPECT_TRUE(spec) << spec.error().describe();
    const auto checkpoint = stored_checkpoint(*spec, model::read_quantization(config, Json()));
    return checkpoint ? checkpoint->bytes.value : -1;
  };
  const std::int64_t one = bytes_with("model.language_model.layers.0.self_attn*");
  EXPECT_GT(one, 0);
  EXPECT_EQ(bytes_with("language_model.model.layers.0.self_attn*"), one);
  EXPECT_GT(bytes_with("model.language_model.layers.*.self_attn*"), one);
  EXPECT_EQ(bytes_with("nobody.layers.0.self_attn*"), -1);
}

// MLX takes embeddings and the head too: two bytes of scale and two of bias for each group.
TEST(QuantizedWeights, Mlx) {
  const auto config = parse_json(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama",
    "hidden_size":128,"intermediate_size":256,"num_attention_heads":4,"num_key_value_heads":2,
    "num_hidden_layers":2,"vocab_size":512,"max_position_embeddings":512,"torch_dtype":"bfloat16",
    "tie_word_embeddings":false,"quantization":{"group_size":64,"bits":4},
    "quantization_config":{"group_size":64,"bits":4}})",
                                 "config.json");
  ASSERT_TRUE(config) << config.error().describe();
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto checkpoint = stored_checkpoint(*spec, model::read_quantization(*config, Json()));
  ASSERT_TRUE(checkpoint);
  constexpr std::int64_t kMatrices = 2 * (512 * 128) + 2 * (2 * 128 * 128 + 2 * 128 * 64 + 3 * 128 * 256);
  constexpr std::int64_t kNorms = 5 * 128;
  EXPECT_EQ(checkpoint->bytes.value, kMatrices / 2 + kMatrices / 64 * 4 + kNorms * 2);
  EXPECT_EQ(checkpoint->scales, kMatrices / 64 * 2);
}

// The published config; totals of the published files. Source: docs/formats/quantized_layouts.md.
TEST(QuantizedWeights, DeepseekV3) {
  const auto config = parse_json(R"({"architectures":["DeepseekV3ForCausalLM"],"model_type":"deepseek_v3",
    "first_k_dense_replace":3,"hidden_size":7168,"intermediate_size":18432,"kv_lora_rank":512,
    "max_position_embeddings":163840,"moe_intermediate_size":2048,"moe_layer_freq":1,"n_routed_experts":256,
    "n_shared_experts":1,"num_attention_heads":128,"num_experts_per_tok":8,"num_hidden_layers":61,
    "num_key_value_heads":128,"num_nextn_predict_layers":1,"q_lora_rank":1536,"qk_nope_head_dim":128,
    "qk_rope_head_dim":64,"v_head_dim":128,"vocab_size":129280,"tie_word_embeddings":false,
    "torch_dtype":"bfloat16","quantization_config":{"activation_scheme":"dynamic","fmt":"e4m3",
    "quant_method":"fp8","weight_block_size":[128,128]}})",
                                 "config.json");
  ASSERT_TRUE(config) << config.error().describe();
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto checkpoint = stored_checkpoint(*spec, model::read_quantization(*config, Json()));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->bytes.value, 688'574'839'360);
  EXPECT_EQ(checkpoint->elements, 684'531'386'000);
  EXPECT_EQ(checkpoint->scales, 41'540'496);
  EXPECT_EQ(checkpoint->mtp, 13'463'426'048);
  EXPECT_EQ(checkpoint->buffers, 15'104);
  EXPECT_EQ(checkpoint->packed, 0);
}

// The published total: the indexer of the prediction layer keeps its projection, as those of the decoder do.
TEST(QuantizedWeights, IndexerOfThePredictionLayer) {
  const auto config = facts::catalogue_config("zai-org/GLM-5-FP8");
  ASSERT_TRUE(config);
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto checkpoint = stored_checkpoint(*spec, model::read_quantization(*config, Json()));
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->elements, 753'910'024'032);
}

TEST(QuantizedWeights, IntegersKeepTheirType) {
  model::ModelSpec spec;
  spec.declared_dtype = DType::kBF16;
  model::Weight plain, hash;
  plain.shape = {10};
  hash.shape = {35};
  hash.hf_name = "hash";
  hash.is_parameter = false;
  hash.dtype = DType::kI64;
  spec.weights = {plain, hash};
  const auto checkpoint = stored_checkpoint(spec, std::nullopt);
  ASSERT_TRUE(checkpoint);
  EXPECT_EQ(checkpoint->bytes.value, 10 * 2 + 35 * 8);
  EXPECT_EQ(checkpoint->buffers, 35);
}

TEST(QuantizedWeights, NamesOfOtherModelsMakeNoAnswer) {
  const auto config = parse_json(R"({"architectures":["LlamaForCausalLM"],"hidden_size":64,
    "intermediate_size":128,"num_hidden_layers":1,"num_attention_heads":2,"vocab_size":32,
    "max_position_embeddings":128,"quantization_config":{"quant_method":"fp8",
    "modules_to_not_convert":["transformer.h.0.attn.c_proj"]}})",
                                 "config.json");
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_FALSE(stored_checkpoint(*spec, model::read_quantization(*config, Json())));
}

TEST(QuantizedWeights, StacksOfExpertsAndRaggedGroups) {
  model::QuantizationScheme scheme;
  scheme.layout = model::Layout::kNvfp4;
  const std::vector<std::int64_t> stack{4, 96, 40};
  const auto tensors = stored_tensors(stack, scheme);
  ASSERT_TRUE(tensors);
  ASSERT_EQ(tensors->size(), 3U);
  EXPECT_EQ((*tensors)[0].elements, 4 * 96 * 20);
  EXPECT_EQ((*tensors)[1].elements, 4 * 96 * 3);  // 40 inputs: two groups of 16 and one of 8
  EXPECT_EQ((*tensors)[2].elements, 4);
  const std::vector<std::int64_t> vector{96};
  EXPECT_FALSE(stored_tensors(vector, scheme));
}

// Whatever the config declares: two numbers for each matrix beside the scales of its groups.
TEST(QuantizedWeights, RecipesTakeMoreAndMore) {
  const auto config =
      parse_json(R"({"architectures":["MixtralForCausalLM"],"model_type":"mixtral","hidden_size":64,
    "num_hidden_layers":2,"num_attention_heads":4,"num_key_value_heads":2,"intermediate_size":96,"vocab_size":320,
    "num_local_experts":4,"num_experts_per_tok":2,"max_position_embeddings":128,"torch_dtype":"bfloat16"})",
                 "config.json");
  const auto spec = model::read_spec(*config, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  model::QuantizationScheme scheme;
  scheme.layout = model::Layout::kNvfp4;
  scheme.has_input_scale = true;
  const auto checkpoint = checkpoint_by_recipe(*spec, Recipe::kExperts, scheme);
  ASSERT_TRUE(checkpoint);
  const std::int64_t matrices = 2 * 4 * 3, experts = matrices * 64 * 96;
  EXPECT_EQ(checkpoint->packed, -experts / 2);
  EXPECT_EQ(checkpoint->single_scales, 2 * matrices);
  EXPECT_EQ(checkpoint->scales, experts / 16 + 2 * matrices);
  EXPECT_EQ(checkpoint->elements, *model::count_parameters(*spec) + checkpoint->packed + checkpoint->scales);
  const auto packed = [&](Recipe recipe) { return checkpoint_by_recipe(*spec, recipe, scheme)->packed; };
  EXPECT_EQ(packed(Recipe::kFeedForward), -experts / 2);  // no others here
  EXPECT_EQ(packed(Recipe::kFeedForwardAndOutput), -(experts + 2 * 64 * 64) / 2);
  EXPECT_EQ(packed(Recipe::kAllLinear), -(experts + 2 * 64 * (64 + 64 + 32 + 32)) / 2);
}

// bitsandbytes writes the kind of its four-bit values into a name and into a text.
TEST(QuantizedWeights, FourBitStatesNameTheirKind) {
  for (const auto& [type, ending] : {std::pair("nf4", "weight.quant_state.bitsandbytes__nf4"),
                                     std::pair("fp4", "weight.quant_state.bitsandbytes__fp4")}) {
    const Json config = *parse_json(std::string(R"({"quantization_config":{"quant_method":"bitsandbytes",
        "load_in_4bit":true,"bnb_4bit_quant_type":")") +
                                        type + "\"}}",
                                    "config.json");
    const auto quantization = model::read_quantization(config, {});
    ASSERT_TRUE(quantization);
    const std::array<std::int64_t, 2> shape{64, 64};
    const auto tensors = stored_tensors(shape, *quantization->main_scheme());
    ASSERT_TRUE(tensors);
    EXPECT_EQ(tensors->back().ending, ending);
  }
}

// Lists of modules by name are looked up, however long; what is tried one by one has to stay within bounds.
TEST(QuantizedWeights, OfMoreRulesThanCanBeTried) {
  const auto bytes_with = [](const std::string& before, const std::string& after, int num_names) {
    Json::Array names;
    for (int i = 0; i < num_names; ++i) names.push_back(before + std::to_string(i) + after);
    Json config = *parse_json(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,
        "num_hidden_layers":1024,"num_attention_heads":8,"num_key_value_heads":2,"intermediate_size":128,
        "vocab_size":320,"max_position_embeddings":2048,"torch_dtype":"bfloat16"})",
                              "config.json");
    config.set("quantization_config",
               Json::object({{"quant_method", "fp8"}, {"modules_to_not_convert", Json(std::move(names))}}));
    const auto checkpoint =
        stored_checkpoint(*model::read_spec(config, "config.json"), model::read_quantization(config, {}));
    return checkpoint ? checkpoint->bytes.value : -1;
  };
  const std::int64_t none = bytes_with("model.layers.0.x", "", 1000);
  EXPECT_EQ(none, -1);  // no name of the list is one of the model's
  const std::int64_t some = bytes_with("model.layers.", ".self_attn.q_proj", 1000);
  EXPECT_GT(some, 0);
  EXPECT_EQ(bytes_with("re:.*layers.", ".self_attn.q_proj", 1000), -1);
}

// auto-round's mixed models: every module by name, bits in turns.
TEST(QuantizedWeights, ModulesByNameWithBitsInTurns) {
  Json modules = Json::object({});
  for (int i = 0; i < 6000; ++i)
    modules.set("model.layers." + std::to_string(i) + ".mlp.up_proj",
                Json::object({{"bits", i % 2 ? 8 : 4}, {"group_size", 32}}));
  Json config = Json::object({});
  config.set("quantization_config", Json::object({{"quant_method", "auto-round"},
                                                  {"bits", 2},
                                                  {"group_size", 128},
                                                  {"extra_config", std::move(modules)}}));
  const auto quantization = model::read_quantization(config, {});
  ASSERT_TRUE(quantization);
  EXPECT_TRUE(quantization->faults.empty());
  EXPECT_TRUE(quantization->can_answer(100'000));
  EXPECT_EQ(quantization->scheme_of("model.layers.4998.mlp.up_proj")->bits, 4);
  EXPECT_EQ(quantization->scheme_of("model.layers.4999.mlp.up_proj")->bits, 8);
  EXPECT_EQ(quantization->scheme_of("model.layers.4999.mlp.down_proj")->bits, 2);
}

TEST(QuantizedWeights, InThirtyTwoBitsWhereNoDtypeIsNamed) {
  Json config = *parse_json(R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":64,
      "num_hidden_layers":2,"num_attention_heads":8,"num_key_value_heads":2,"intermediate_size":128,
      "vocab_size":320})",
                            "config.json");
  const auto spec = model::read_spec(config, "config.json");
  ASSERT_TRUE(spec);
  const auto least = stored_checkpoint(*spec, std::nullopt);
  ASSERT_TRUE(least);
  EXPECT_EQ(most_checkpoint_bytes(*spec, std::nullopt), least->bytes * 2);
  config.set("torch_dtype", "bfloat16");
  EXPECT_EQ(most_checkpoint_bytes(*model::read_spec(config, "config.json"), std::nullopt), std::nullopt);
}

}  // namespace
}  // namespace plimsoll::memory
