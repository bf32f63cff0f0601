// SPDX-License-Identifier: Apache-2.0
// Configs that wrap a decoder's, and classes that put another head on it.
#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "model/model.h"
#include "tests/model/llama_config.h"

namespace plimsoll::model {
namespace {

TEST(ReadSpec, ReadsFiguresOfAWrapperFromItsTextConfig) {
  Json inner = llama_config();
  Json outer = Json::object({{"architectures", Json(Json::Array{"LlavaForConditionalGeneration"})},
                             {"model_type", "llava"},
                             {"text_config", inner},
                             {"vision_config", Json::object({{"num_hidden_layers", 7}})}});
  const auto spec = read_spec(outer, "config.json");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->layers.size(), 32U);
  EXPECT_EQ(spec->model_type, "llava");
}

// A decoder that has its own figures is no wrapper; an inner object without a name has the outer one's.
TEST(ReadSpec, WhatStandsUnderAWrappersKeyBesideADecoder) {
  const auto alone = read_spec(llama_config(), "c");
  for (const Json& inner : {Json::object({{"a", 1}}), Json::object({{"num_hidden_layers", 3}})}) {
    const auto beside = read_spec(llama_config({{"text_config", inner}}), "c");
    ASSERT_TRUE(beside) << beside.error().describe();
    EXPECT_EQ(beside->layers.size(), 32U);
  }
  Json unnamed = llama_config();
  unnamed.set("architectures", nullptr);
  unnamed.set("model_type", nullptr);
  const auto wrapped = read_spec(
      Json::object({{"architectures", Json(Json::Array{"LlamaForCausalLM"})}, {"text_config", unnamed}}),
      "c");
  ASSERT_TRUE(wrapped) << wrapped.error().describe();
  EXPECT_EQ(count_parameters(*wrapped), count_parameters(*alone));
}

TEST(ReadSpec, WrappersMayStandAtAnyDepth) {
  Json config = llama_config();
  for (int i = 0; i < 60; ++i) config = Json::object({{i % 2 == 0 ? "text_config" : "llm_config", config}});
  const auto spec = read_spec(config, "c");
  ASSERT_TRUE(spec) << spec.error().describe();
  EXPECT_EQ(spec->layers.size(), 32U);
}

// A class that is a language model without a head has none, by its type or by its name.
TEST(ReadSpec, TextClassesHaveNoHead) {
  Json bare = llama_config({{"architectures", nullptr}, {"model_type", "qwen2_vl_text"}});
  const auto has_head = [](const Result<ModelSpec>& spec) {
    return std::any_of(spec->weights.begin(), spec->weights.end(),
                       [](const Weight& weight) { return weight.group == WeightGroup::kHead; });
  };
  EXPECT_FALSE(has_head(read_spec(bare, "c")));
  const Json wrapped = Json::object({{"architectures", Json(Json::Array{"Qwen2VLForConditionalGeneration"})},
                                     {"model_type", "qwen2_vl"},
                                     {"text_config", bare}});
  EXPECT_TRUE(has_head(read_spec(wrapped, "c")));
  bare.set("architectures", Json(Json::Array{"Qwen2VLTextModel"}));
  const auto named = read_spec(bare, "c");
  ASSERT_TRUE(named) << named.error().describe();
  EXPECT_FALSE(has_head(named));
}

// Who says that the head is the embedding differs from wrapper to wrapper.
TEST(ReadSpec, TiesAreSaidByTheWrapperTheTextOrNobody) {
  struct Case {
    const char *architecture, *type;
    bool wrapper, text, is_tied;
  };
  for (const Case& test : {Case{"LlavaForConditionalGeneration", "llava", true, false, true},
                           Case{"LlavaForConditionalGeneration", "llava", false, true, false},
                           Case{"Blip2ForConditionalGeneration", "blip-2", true, false, false},
                           Case{"Blip2ForConditionalGeneration", "blip-2", false, true, true},
                           Case{"VoxtralForConditionalGeneration", "voxtral", true, true, false}}) {
    const Json config = Json::object({{"architectures", Json(Json::Array{test.architecture})},
                                      {"model_type", test.type},
                                      {"tie_word_embeddings", test.wrapper},
                                      {"text_config", llama_config({{"tie_word_embeddings", test.text}})}});
    const auto spec = read_spec(config, "c");
    ASSERT_TRUE(spec) << spec.error().describe();
    EXPECT_EQ(spec->ties_embeddings, test.is_tied) << test.type;
  }
}

std::int64_t head_of(const Json& config) {
  const auto spec = read_spec(config, "c");
  EXPECT_TRUE(spec) << spec.error().describe();
  std::int64_t elements = 0;
  for (const Weight& weight : spec->weights)
    if (weight.group == WeightGroup::kHead) elements += weight.elements();
  return elements;
}

// Heads as transformers builds them: two labels unless the config names others, a bias where tokens are told.
TEST(ReadSpec, HeadsOfClassifiers) {
  const auto with = [](const char* architecture) {
    return llama_config({{"architectures", Json(Json::Array{architecture})}});
  };
  EXPECT_EQ(head_of(with("LlamaForSequenceClassification")), 2 * 4096);
  EXPECT_EQ(head_of(with("LlamaForTokenClassification")), 2 * 4096 + 2);
  EXPECT_EQ(head_of(with("LlamaForQuestionAnswering")), 2 * 4096 + 2);
  EXPECT_EQ(head_of(with("Qwen2ForRewardModel")), 4096 * 4096 + 4096 + 4096 + 1);
  EXPECT_EQ(head_of(with("Qwen2ForProcessRewardModel")), 4096 * 4096 + 4096 + 2 * 4096 + 2);
  EXPECT_EQ(head_of(with("LlamaModel")), 0);
  // 350m: 512 wide outside, 1024 within.
  const auto opt = parse_json(R"({"architectures":["OPTForSequenceClassification"],"model_type":"opt",
      "hidden_size":64,"word_embed_proj_dim":32,"ffn_dim":128,"num_attention_heads":4,
      "num_hidden_layers":1,"vocab_size":99,"num_labels":3})",
                              "c");
  EXPECT_EQ(head_of(*opt), 3 * 32);
  const auto gemma = parse_json(R"({"architectures":["Gemma3TextForSequenceClassification"],
      "model_type":"gemma3_text","hidden_size":64,"intermediate_size":128,"num_attention_heads":4,
      "num_key_value_heads":2,"head_dim":16,"num_hidden_layers":1,"vocab_size":99})",
                                "c");
  EXPECT_EQ(head_of(*gemma), 2 * 64);
  const auto t5 = parse_json(R"({"architectures":["T5ForSequenceClassification"],"model_type":"t5","d_ff":128,
      "d_kv":16,"d_model":64,"num_heads":4,"num_layers":1,"vocab_size":99})",
                             "c");
  EXPECT_EQ(head_of(*t5), 64 * 64 + 64 + 2 * 64 + 2);
  Json seven = with("LlamaForTokenClassification");
  seven.set("num_labels", 7);
  EXPECT_EQ(head_of(seven), 7 * 4096 + 7);
}

}  // namespace
}  // namespace plimsoll::model
