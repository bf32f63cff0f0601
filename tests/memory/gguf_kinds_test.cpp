// SPDX-License-Identifier: Apache-2.0
// Cache bytes of GGUF files by their keys alone: latent attention, mixtures, windows with heads of their own,
// prediction layers, hybrids, encoders. Expected figures are worked by hand from the keys of real files.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "memory/memory.h"
#include "model/model.h"
#include "tests/testing/made_files.h"

namespace plimsoll::memory {
namespace {

using testing::gguf_key;
using testing::gguf_string;
using testing::le32;

constexpr std::uint32_t kUint32 = 4, kFloat = 6, kBool = 7, kString = 8, kArray = 9;

struct Key {
  std::string name;
  std::vector<std::uint32_t> values;
  std::uint32_t type = kUint32;
};

std::string value_bytes(const Key& key) {
  std::string bytes;
  for (const std::uint32_t value : key.values)
    bytes += key.type == kBool ? std::string(1, static_cast<char>(value)) : le32(value);
  if (key.values.size() == 1) return bytes;
  return le32(key.type) + testing::le64(key.values.size()) + bytes;
}

Result<model::ModelSpec> spec_of(const std::string& architecture, const std::vector<Key>& keys) {
  std::string text = gguf_key("general.architecture", kString, gguf_string(architecture));
  for (const Key& key : keys)
    text +=
        gguf_key(architecture + "." + key.name, key.values.size() == 1 ? key.type : kArray, value_bytes(key));
  testing::MadeFolder folder;
  folder.put("m.gguf", testing::gguf_file(testing::gguf_start(1, keys.size() + 1) + text +
                                              testing::gguf_tensor("token_embd.weight", {256, 4}, 1, 0),
                                          std::string(256 * 4 * 2, '\0')));
  PLIMSOLL_TRY(const auto artifact, artifact::open((folder.path() / "m.gguf").string()));
  return model::read_spec(*artifact);
}

std::vector<Key> base(std::uint32_t layers, std::vector<Key> more) {
  std::vector<Key> keys{{"block_count", {layers}},
                        {"context_length", {4096}},
                        {"embedding_length", {256}},
                        {"feed_forward_length", {512}},
                        {"attention.head_count", {8}},
                        {"attention.layer_norm_rms_epsilon", {0x3727c5ac}, kFloat},  // 1e-5
                        {"rope.freq_base", {0x461c4000}, kFloat}};                   // 10,000
  for (Key& key : more) {
    std::erase_if(keys, [&](const Key& own) { return own.name == key.name; });
    keys.push_back(std::move(key));
  }
  return keys;
}

struct Case {
  const char* architecture;
  std::vector<Key> keys;
  std::size_t layers;
  std::int64_t bytes_per_token;  // in 16 bit
};

const std::vector<Key> kSsm{{"ssm.conv_kernel", {4}},         {"ssm.inner_size", {512}},
                            {"ssm.state_size", {16}},         {"ssm.time_step_rank", {8}},
                            {"ssm.group_count", {2}},         {"attention.key_length", {32}},
                            {"attention.value_length", {32}}, {"rope.dimension_count", {32}}};

std::vector<Key> with_ssm(std::vector<Key> more) {
  more.insert(more.end(), kSsm.begin(), kSsm.end());
  return more;
}

TEST(GgufKinds, CacheBytesByTheKeys) {
  const Key two_heads{"attention.head_count_kv", {2}};
  const std::vector<Case> cases{
      // One vector of 512 + 64 values a layer.
      {"deepseek2",
       base(3, {{"attention.head_count_kv", {1}},
                {"attention.key_length", {576}},
                {"attention.value_length", {512}},
                {"attention.key_length_mla", {192}},
                {"attention.value_length_mla", {128}},
                {"attention.kv_lora_rank", {512}},
                {"attention.q_lora_rank", {1536}},
                {"rope.dimension_count", {64}}}),
       3, 3 * 576 * 2},
      // Mixtral calls itself llama.
      {"llama", base(2, {two_heads, {"expert_count", {8}}, {"expert_used_count", {2}}}), 2, 2 * 2 * 32 * 4},
      // Windows with narrower heads: five of 64 values, one of 128.
      {"gemma4",
       base(6, {{"attention.head_count_kv", {1}},
                {"attention.key_length", {128}},
                {"attention.value_length", {128}},
                {"attention.key_length_swa", {64}},
                {"attention.value_length_swa", {64}},
                {"attention.sliding_window", {512}},
                {"attention.sliding_window_pattern", {1, 1, 1, 1, 1, 0}, kBool}}),
       6, 5 * 64 * 4 + 128 * 4},
      // The last of twelve blocks predicts.
      {"glm4moe",
       base(12,
            {two_heads, {"nextn_predict_layers", {1}}, {"expert_count", {8}}, {"expert_used_count", {2}}}),
       11, 11 * 2 * 32 * 4},
      // Hybrids whose first layer has no heads.
      {"qwen3next", base(8, with_ssm({two_heads, {"full_attention_interval", {4}}})), 8, 2 * 2 * 32 * 4},
      {"qwen3next", base(8, with_ssm({two_heads})), 8, 2 * 2 * 32 * 4},  // llama.cpp's own interval
      {"qwen35", base(8, with_ssm({two_heads, {"full_attention_interval", {2}}})), 8, 4 * 2 * 32 * 4},
      {"granitehybrid", base(8, with_ssm({{"attention.head_count_kv", {0, 0, 0, 2, 0, 0, 0, 2}}})), 8,
       2 * 2 * 32 * 4},
      {"nemotron_h",
       base(4,
            with_ssm({{"attention.head_count_kv", {0, 0, 2, 0}}, {"feed_forward_length", {0, 512, 0, 0}}})),
       4, 2 * 32 * 4},
      // Encoders keep nothing, whether or not the file says what they are.
      {"bert", base(4, {two_heads, {"attention.causal", {0}, kBool}}), 4, 0},
      {"nomic-bert", base(4, {two_heads}), 4, 0},
      {"t5encoder", base(4, {two_heads}), 4, 0},
      // Of an encoder-decoder the decoder's layers do.
      {"t5", base(4, {two_heads, {"decoder_block_count", {6}}}), 6, 6 * 2 * 32 * 4},
  };
  for (const Case& test : cases) {
    SCOPED_TRACE(test.architecture);
    const auto spec = spec_of(test.architecture, test.keys);
    ASSERT_TRUE(spec) << spec.error().describe();
    EXPECT_EQ(spec->layers.size(), test.layers);
    const auto bytes = kv_bytes_per_token(*spec, DType::kF16);
    ASSERT_TRUE(bytes) << bytes.error().describe();
    EXPECT_EQ(bytes->value, test.bytes_per_token);
  }
}

// Kimi Linear: a matrix a head and three convolutions a layer, in 32 bit; every fourth layer is latent.
TEST(GgufKinds, DeltaAttentionOfKimiLinear) {
  const auto spec = spec_of("kimi-linear", base(4, {{"attention.head_count_kv", {0, 0, 0, 1}},
                                                    {"attention.kv_lora_rank", {64}},
                                                    {"attention.key_length", {96}},
                                                    {"attention.value_length", {64}},
                                                    {"rope.dimension_count", {32}},
                                                    {"ssm.conv_kernel", {4}},
                                                    {"kda.head_dim", {32}}}));
  ASSERT_TRUE(spec) << spec.error().describe();
  const auto* state = std::get_if<model::State>(&spec->layers[0].mixer);
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state->kind, model::StateKind::kKda);
  EXPECT_EQ(state->recurrent_elements, 8 * 32 * 32);
  EXPECT_EQ(state->convolution_elements, 3 * 8 * 32 * 3);
  EXPECT_TRUE(std::holds_alternative<model::Latent>(spec->layers[3].mixer));
}

// A state of unknown size is no state of size 0.
TEST(GgufKinds, AStateWithoutItsFiguresIsRefused) {
  for (const char* architecture : {"jamba", "granitehybrid", "mamba2", "qwen3next"}) {
    const auto spec = spec_of(architecture, base(4, {{"attention.head_count_kv", {0, 2, 0, 2}}}));
    ASSERT_FALSE(spec) << architecture;
    EXPECT_NE(spec.error().describe().find("ssm.state_size"), std::string::npos) << spec.error().describe();
  }
}

}  // namespace
}  // namespace plimsoll::memory
