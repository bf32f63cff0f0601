// SPDX-License-Identifier: Apache-2.0
#include "inspect/parallel_checks.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"
#include "tests/testing/golden.h"

namespace plimsoll::inspect {
namespace {

// "1 2r 4x": possible, with replicated KV heads, only with expert parallelism; "8-" not at all.
std::string shown(const std::vector<ParallelRow>& rows) {
  std::string text;
  for (const ParallelRow& row : rows) {
    text += (text.empty() ? "" : " ") + std::to_string(row.tensor_parallel);
    if (!row.is_possible) text += row.with_expert_parallel.value_or(false) ? "x" : "-";
    if (row.is_possible && row.kv_replicated) text += "r";
  }
  return text;
}

Report inspected(const std::string& config) {
  ModelFolder folder;
  folder.write("config.json", config);
  return folder.inspected();
}

std::string llama(int heads, int kv_heads, int width, const std::string& more = "") {
  return R"({"architectures":["LlamaForCausalLM"],"model_type":"llama","hidden_size":4096,"num_hidden_layers":2,
      "head_dim":128,"vocab_size":32000,"max_position_embeddings":2048,"num_attention_heads":)" +
         std::to_string(heads) + R"(,"num_key_value_heads":)" + std::to_string(kv_heads) +
         R"(,"intermediate_size":)" + std::to_string(width) + more + "}";
}

TEST(ParallelChecks, HeadsAndKvHeads) {
  EXPECT_EQ(shown(inspected(llama(32, 8, 14336)).parallel), "1 2 4 8 16r 32r");
  // 28 query heads, 4 KV heads: 8 does not divide the query heads.
  EXPECT_EQ(shown(inspected(llama(28, 4, 18944)).parallel), "1 2 4 8- 16- 32-");
  // 6 KV heads neither divide 4 nor are divided by it.
  const Report odd = inspected(llama(48, 6, 12288));
  EXPECT_EQ(shown(odd.parallel), "1 2 4- 8- 16- 32-");
  EXPECT_NE(odd.parallel[2].reason.find("6 KV heads"), std::string::npos);
  const Report query = inspected(llama(28, 4, 18944));
  EXPECT_EQ(query.parallel[3].reason, "28 query heads are not divisible by 8");
}

TEST(ParallelChecks, WidthsAndGroups) {
  // A width of 29,568 is divisible by 8, but 3,696 to a rank are no multiple of AWQ's groups of 128.
  const std::string awq = R"(,"quantization_config":{"quant_method":"awq","bits":4,"group_size":128})";
  EXPECT_EQ(shown(inspected(llama(64, 8, 29568)).parallel), "1 2 4 8 16r 32r");
  const Report quantized = inspected(llama(64, 8, 29568, awq));
  EXPECT_FALSE(quantized.parallel[3].is_possible);
  EXPECT_NE(quantized.parallel[3].reason.find("3696"), std::string::npos);
  EXPECT_NE(quantized.parallel[3].reason.find("128"), std::string::npos);
  EXPECT_FALSE(inspected(llama(32, 8, 11008)).parallel[0].reason.size());
  EXPECT_EQ(shown(inspected(llama(32, 8, 11000)).parallel), "1 2 4 8 16- 32-");
}

TEST(ParallelChecks, ExpertsOfFp8Blocks) {
  const std::string config =
      R"({"architectures":["NobodyMoeForCausalLM"],"model_type":"nobody_moe","hidden_size":2560,
      "num_hidden_layers":2,"num_attention_heads":24,"num_key_value_heads":2,"head_dim":256,"num_experts":512,
      "num_experts_per_tok":10,"moe_intermediate_size":640,"linear_num_key_heads":16,"linear_num_value_heads":48)";
  EXPECT_EQ(shown(inspected(config + "}").parallel), "1 2 4r 8r 16- 32-");
  // Blocks of 128 are cut down to 32 for shares of 320 and 160; 640 / 8 = 80 is no multiple of 32.
  const Report fp8 = inspected(config + R"(,"quantization_config":{"quant_method":"fp8",
      "weight_block_size":[128,128]}})");
  EXPECT_EQ(shown(fp8.parallel), "1 2 4r 8x 16- 32-");
  EXPECT_NE(fp8.parallel[3].reason.find("80"), std::string::npos);
  EXPECT_NE(fp8.parallel[3].reason.find("--enable-expert-parallel"), std::string::npos);
  EXPECT_EQ(fp8.parallel[3].experts_per_rank, 64);
  // Packed by compressed-tensors the blocks stay whole.
  const Report packed = inspected(config + R"(,"quantization_config":{"quant_method":"compressed-tensors",
      "config_groups":{"group_0":{"weights":{"num_bits":8,"type":"float","strategy":"block",
      "block_structure":[128,128]}}}}})");
  EXPECT_EQ(shown(packed.parallel), "1 2x 4x 8x 16- 32-");
  // FP4 experts come in multiples of 64: 640 / 4 = 160 is none.
  const Report fp4 =
      inspected(config + R"(,"quantization_config":{"quant_method":"modelopt","quant_algo":"NVFP4",
      "group_size":16}})");
  EXPECT_EQ(shown(fp4.parallel), "1 2 4x 8x 16- 32-");
}

// Every spelling of a declaration counts, and what it leaves alone is cut as it likes.
TEST(ParallelChecks, DeclarationsBesideTheConfig) {
  ModelFolder folder;
  folder.write("config.json",
               R"({"architectures":["NobodyMoeForCausalLM"],"model_type":"nobody_moe","hidden_size":2560,
      "num_hidden_layers":2,"num_attention_heads":24,"num_key_value_heads":2,"head_dim":256,"num_experts":512,
      "num_experts_per_tok":10,"moe_intermediate_size":640})");
  EXPECT_EQ(shown(folder.inspected().parallel), "1 2 4r 8r 16- 32-");
  folder.write("hf_quant_config.json",
               R"({"producer":{"name":"modelopt"},"quantization":{"quant_algo":"NVFP4","group_size":16}})");
  EXPECT_EQ(shown(folder.inspected().parallel), "1 2 4x 8x 16- 32-");
  const std::string left =
      R"(,"quantization_config":{"quant_method":"awq","bits":4,"group_size":128,"modules_to_not_convert":["mlp"]})";
  EXPECT_EQ(shown(inspected(llama(64, 8, 29568, left)).parallel), "1 2 4 8 16r 32r");
}

TEST(ParallelChecks, TheDocument) {
  const Json rows = to_json(inspected(llama(28, 4, 18944)))["parallel"];
  ASSERT_EQ(rows.size(), 6U);
  EXPECT_EQ(rows.items()[3]["tensor_parallel"], Json(8));
  EXPECT_EQ(rows.items()[3]["possible"], Json(false));
  EXPECT_EQ(rows.items()[3]["kv_replicated"], Json(true));
  EXPECT_TRUE(rows.items()[3]["with_expert_parallel"].is_null());
  EXPECT_TRUE(to_json(inspected(R"({"architectures":["NobodyForCausalLM"]})"))["parallel"].is_null());
  for (const char* heads : {"0", "-4", "1e30", "\"many\""})
    EXPECT_TRUE(inspected(std::string(R"({"architectures":["NobodyForCausalLM"],"num_attention_heads":)") +
                          heads + "}")
                    .parallel.empty())
        << heads;
}

}  // namespace
}  // namespace plimsoll::inspect
