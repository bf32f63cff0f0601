// SPDX-License-Identifier: Apache-2.0
// Quantized weights that do not fit are refused by name before a byte outside a tensor is read.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

#include "memory/memory.h"
#include "model/declarations.h"
#include "tests/engine/quantized_modules.h"

namespace plimsoll::engine {
namespace {

class QuantizedRefusals : public GroupedWeights {};

// One change to a sound matrix, and what has to be said about it.
struct Refusal {
  std::string said;
  std::function<void(HeldTensors&)> change;
  ErrorCode code = ErrorCode::kMalformed;
};

TEST_F(QuantizedRefusals, WhatDoesNotFitIsNamed) {
  const Grouped made = random_grouped(4);
  const auto order_with = [&](std::int32_t value) {
    return [&made, value](HeldTensors& tensors) {
      auto order = made.order;
      order[5] = value;
      tensors.put(part("g_idx"), DType::kI32, {Grouped::kColumns}, order);
    };
  };
  const std::vector<Refusal> refusals{
      {"up_proj.g_idx is 4 at 5, a group from 0 to 3 was expected", order_with(4)},
      {"up_proj.g_idx is -1 at 5, a group from 0 to 3 was expected", order_with(-1)},
      {"up_proj.g_idx is [8], [64] was expected",
       [](HeldTensors& t) { t.put(part("g_idx"), DType::kI32, {8}, std::vector<std::int32_t>(8)); }},
      {"needs tensor model.layers.0.mlp.up_proj.qzeros", [](HeldTensors& t) { t.remove(part("qzeros")); }},
      {"up_proj.scales is [4, 15], [4, 16] was expected",
       [](HeldTensors& t) { t.put(part("scales"), DType::kF32, {4, 15}, std::vector<float>(60)); }},
      {"up_proj.scales is i32, f32 or f16 or bf16 was expected",
       [](HeldTensors& t) { t.put(part("scales"), DType::kI32, {4, 16}, std::vector<float>(64)); }},
      {"up_proj.qweight is [8, 8], [8, 16] was expected",
       [](HeldTensors& t) { t.put(part("qweight"), DType::kI32, {8, 8}, std::vector<std::uint32_t>(64)); }},
      {"scales of its inputs",
       [](HeldTensors& t) { t.put(part("pre_quant_scale"), DType::kF32, {1}, std::vector<float>(1)); },
       ErrorCode::kUnsupported},
  };
  for (const Refusal& refusal : refusals) {
    HeldTensors tensors = gptq(made, 4, "gptq");
    refusal.change(tensors);
    const auto matrix = load(tensors, Grouped::kRows, Grouped::kColumns);
    ASSERT_FALSE(matrix) << refusal.said;
    EXPECT_NE(matrix.error().message.find(refusal.said), std::string::npos) << matrix.error().message;
    EXPECT_EQ(matrix.error().code, refusal.code) << refusal.said;
  }
}

TEST(EmbeddedLayouts, WhatIsNotReadIsRefusedByTheDeclarationAlone) {
  for (
      const char* declaration :
      {R"({"quant_method": "gptq", "bits": 3, "group_size": 32})",
       R"({"quant_method": "gptq", "bits": 4, "group_size": 32, "checkpoint_format": "marlin"})",
       R"({"quant_method": "awq", "bits": 4, "group_size": 32, "version": "gemv"})",
       R"({"quant_method": "awq", "bits": 8, "group_size": 32})",
       R"({"quant_method": "aqlm", "nbits_per_codebook": 16})",
       R"({"quant_method": "hqq", "quant_config": {"weight_quant_params": {"nbits": 4, "group_size": 64}}})"}) {
    SCOPED_TRACE(declaration);
    const HeldTensors tensors = with_config(declaration);
    const Status said = memory::check_embedded_quantization(*model::declared_quantization(tensors));
    ASSERT_FALSE(said);
    EXPECT_EQ(said.error().code, ErrorCode::kUnsupported);
    EXPECT_EQ(said.error().where, "config.json: /quantization_config");
  }
  const HeldTensors zero_group = with_config(R"({"quant_method": "gptq", "bits": 4, "group_size": 0})");
  const Status said = memory::check_embedded_quantization(*model::declared_quantization(zero_group));
  ASSERT_FALSE(said);
  EXPECT_EQ(said.error().code, ErrorCode::kMalformed);
}

// Random bytes for every number of a sound set: nothing outside is read, whatever they stand for.
TEST_F(QuantizedRefusals, AnyCodesAndScalesAreReadWithinTheTensors) {
  for (int run = 0; run < 20; ++run) {
    HeldTensors tensors = gptq(random_grouped(4), 4, "gptq");
    std::vector<std::uint32_t> words(128);
    for (auto& word : words) word = static_cast<std::uint32_t>(random_());
    tensors.put(part("qweight"), DType::kI32, {8, 16}, words);
    std::vector<float> scales(64, std::numeric_limits<float>::quiet_NaN());
    tensors.put(part("scales"), DType::kF32, {4, 16}, scales);
    const auto matrix = load(tensors, Grouped::kRows, Grouped::kColumns);
    ASSERT_TRUE(matrix);
    std::vector<float> rows(Grouped::kRows * Grouped::kColumns);
    widen_rows(*matrix, 0, Grouped::kRows, rows.data());
    for (const float value : rows) ASSERT_TRUE(std::isnan(value));
  }
}

}  // namespace
}  // namespace plimsoll::engine
