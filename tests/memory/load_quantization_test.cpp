// SPDX-License-Identifier: Apache-2.0
#include "memory/load_quantization.h"

#include <gtest/gtest.h>

#include "base/json.h"
#include "tests/memory/worked_case.h"

namespace plimsoll::memory {
namespace {

TEST(LoadQuantization, TheFormulaPagesWorkedCase) {
  const testing::WorkedCase page("load_quantization.md");
  const auto config = parse_json(
      R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 49152, "hidden_size": 576,
          "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
          "num_key_value_heads": 3, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5,
          "hidden_act": "silu", "torch_dtype": "bfloat16", "tie_word_embeddings": true})",
      "test");
  ASSERT_TRUE(config);
  const auto read = model::read_spec(*config, "config.json");
  ASSERT_TRUE(read) << read.error().describe();
  const model::ModelSpec& spec = *read;
  std::int64_t linear = 0;
  for (const auto& weight : spec.weights)
    if (becomes_blocks(weight)) linear += weight.elements();
  EXPECT_EQ(linear, page.integer("linear_weights"));
  EXPECT_EQ(loaded_weights_bytes(nullptr, spec, WeightFormat::kInt8)->value, page.integer("int8_bytes"));
  EXPECT_EQ(loaded_weights_bytes(nullptr, spec, WeightFormat::kInt4)->value, page.integer("int4_bytes"));
}

TEST(LoadQuantization, SmallMatricesRoutersAndEndsStay) {
  model::Weight weight;
  weight.role = model::Role::kQuery;
  weight.is_linear = true;
  weight.shape = {64, 96};
  EXPECT_TRUE(becomes_blocks(weight));
  weight.shape = {96, 40};
  EXPECT_FALSE(becomes_blocks(weight)) << "40 inputs fill no whole blocks";
  weight.is_turned = true;
  EXPECT_TRUE(becomes_blocks(weight)) << "96 do";
  weight.is_turned = false;
  weight.shape = {4, 32, 64};
  EXPECT_TRUE(becomes_blocks(weight));
  for (const auto role : {model::Role::kRouter, model::Role::kSharedExpertGate, model::Role::kOutputHead}) {
    weight.role = role;
    EXPECT_FALSE(becomes_blocks(weight));
  }
  weight.role = model::Role::kQuery;
  weight.is_linear = false;
  EXPECT_FALSE(becomes_blocks(weight)) << "embeddings and norms";
}

TEST(LoadQuantization, OtherFormatsAndQuantizedModelsAreRefused) {
  EXPECT_EQ(block_at_load(WeightFormat::kFp8).error().code, ErrorCode::kUsage);
  auto spec = testing::llama(testing::kLlama8B);
  spec.quantization = "gptq";
  const auto refused = loaded_weights_bytes(nullptr, spec, WeightFormat::kInt8);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kUsage);
  EXPECT_NE(refused.error().message.find("gptq"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::memory
