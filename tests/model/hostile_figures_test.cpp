// SPDX-License-Identifier: Apache-2.0
// Figures that no model has, in configs and headers: told or refused, never divided by and never wrapped.
#include <gtest/gtest.h>

#include <limits>
#include <vector>

#include "base/json.h"
#include "model/model.h"
#include "model/stored_layout.h"
#include "tests/testing/made_files.h"

namespace plimsoll::model {
namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();

StoredGroup group_of(Part carrier, const std::vector<std::int64_t>& codes, DType dtype,
                     const std::vector<std::int64_t>& scales) {
  StoredGroup group;
  group.parts[static_cast<std::size_t>(carrier)] = StoredPart{dtype, codes};
  group.parts[static_cast<std::size_t>(Part::kScale)] = StoredPart{DType::kF16, scales};
  return group;
}

TEST(HostileFigures, ScalesWithoutOutputsAreNoDivisor) {
  const std::vector<std::int64_t> codes{1, 8}, scales{1, 0};
  const auto weight = decode_stored(Part::kQweight, group_of(Part::kQweight, codes, DType::kI32, scales), {});
  EXPECT_NE(weight.fault, "");
  EXPECT_FALSE(weight.elements);
}

TEST(HostileFigures, WordsOfARowThatDoNotFitAreCapped) {
  const std::vector<std::int64_t> codes{std::int64_t{1} << 60}, scales{1};
  StoredGroup group = group_of(Part::kPacked, codes, DType::kI32, scales);
  group.stored_shape = {1, 1};
  const auto weight = decode_stored(Part::kPacked, group, {});
  EXPECT_NE(weight.fault, "");
  EXPECT_EQ(weight.elements, 1);
}

TEST(HostileFigures, ElementsStopAtTheLargestNumber) {
  Weight weight;
  weight.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  weight.copies = 3;
  EXPECT_EQ(weight.elements(), kMost);
}

TEST(HostileFigures, SharedExpertsThatCannotBeMeantAreRefused) {
  for (const char* architecture : {"Cohere2MoeForCausalLM", "Qwen2MoeForCausalLM", "DeepseekV3ForCausalLM"}) {
    const auto config = parse_json(
        R"({"architectures":[")" + std::string(architecture) +
            R"("],"hidden_size":64,"intermediate_size":64,"num_hidden_layers":2,"num_attention_heads":2,
            "num_key_value_heads":2,"vocab_size":16,"moe_intermediate_size":1048576,"num_experts":8,
            "n_routed_experts":8,"num_experts_per_tok":2,"n_shared_experts":65536,"num_shared_experts":65536,
            "kv_lora_rank":16,"qk_rope_head_dim":8,"qk_nope_head_dim":8,"v_head_dim":8,"head_dim":8})",
        "test");
    ASSERT_TRUE(config);
    const auto spec = read_spec(*config, "config.json");
    if (spec)
      for (const Layer& layer : spec->layers)
        EXPECT_GE(layer.ffn.shared_intermediate_size, 0) << architecture;
    else
      EXPECT_EQ(spec.error().code, ErrorCode::kMalformed) << spec.error().describe();
  }
}

// A vocabulary that only the embedding's own rows state is believed as far as one that a key states.
TEST(HostileFigures, RowsOfTheEmbeddingAreBounded) {
  using testing::gguf_key;
  using testing::gguf_string;
  using testing::le32;
  constexpr std::uint32_t kText = 8, kNumber = 4, kHalf = 1;
  std::string keys = gguf_key("general.architecture", kText, gguf_string("llama"));
  std::uint64_t num_keys = 1;
  for (const auto& [name, value] :
       std::vector<std::pair<const char*, std::uint32_t>>{{"block_count", 1},
                                                          {"embedding_length", 64},
                                                          {"attention.head_count", 2},
                                                          {"feed_forward_length", 64},
                                                          {"context_length", 64}}) {
    keys += gguf_key(std::string("llama.") + name, kNumber, le32(value));
    ++num_keys;
  }
  testing::MadeFolder folder;
  folder.put("m.gguf",
             testing::gguf_file(testing::gguf_start(1, num_keys) + keys +
                                    testing::gguf_tensor("token_embd.weight", {64, 1ULL << 50}, kHalf, 0),
                                std::string(64, '\0')));
  const auto artifact = artifact::open((folder.path() / "m.gguf").string());
  ASSERT_TRUE(artifact) << artifact.error().describe();
  const auto spec = read_spec(**artifact);
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, ErrorCode::kMalformed);
  EXPECT_NE(spec.error().message.find("rows"), std::string::npos) << spec.error().message;
}

}  // namespace
}  // namespace plimsoll::model
