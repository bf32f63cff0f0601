// SPDX-License-Identifier: Apache-2.0
// The experts of a mixture, however a file keeps them: rows in order, and other shapes refused by name.
#include "engine/expert_weights.h"

#include <gtest/gtest.h>

#include <numeric>

#include "tests/engine/held_tensors.h"

namespace plimsoll::engine {
namespace {

using model::Role;

constexpr int kExperts = 2;
constexpr std::int64_t kWidth = 3, kInner = 2;

model::Weight stacked(Role role, std::vector<std::int64_t> shape, bool is_turned) {
  model::Weight weight;
  weight.role = role;
  weight.hf_name = "mlp.experts.matrix";
  weight.shape = std::move(shape);
  weight.copies = kExperts;
  weight.is_turned = is_turned;
  return weight;
}

HeldTensors numbered(std::initializer_list<std::int64_t> shape) {
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 0.0F);
  HeldTensors tensors{Json()};
  tensors.put("mlp.experts.matrix", DType::kF32, shape, values);
  return tensors;
}

std::vector<float> rows_of(const StoredMatrix& matrix) {
  std::vector<float> rows(static_cast<std::size_t>(matrix.rows * matrix.columns));
  widen_rows(matrix, 0, matrix.rows, rows.data());
  return rows;
}

TEST(ExpertWeights, GateAndUpOneAfterTheOther) {
  const HeldTensors tensors = numbered({kExperts, 2 * kInner, kWidth});
  std::vector<FfnWeights> experts;
  ASSERT_TRUE(
      load_experts(tensors, stacked(Role::kExpertGateUp, {2 * kInner, kWidth}, false), {}, false, experts));
  ASSERT_EQ(experts.size(), 2u);
  EXPECT_EQ(rows_of(experts[0].gate), (std::vector<float>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(rows_of(experts[0].up), (std::vector<float>{6, 7, 8, 9, 10, 11}));
  EXPECT_EQ(rows_of(experts[1].gate), (std::vector<float>{12, 13, 14, 15, 16, 17}));
}

TEST(ExpertWeights, TurnedMatricesWhoseColumnsAlternate) {
  const HeldTensors tensors = numbered({kExperts, kWidth, 2 * kInner});
  std::vector<FfnWeights> experts;
  ASSERT_TRUE(
      load_experts(tensors, stacked(Role::kExpertGateUp, {kWidth, 2 * kInner}, true), {}, true, experts));
  EXPECT_EQ(rows_of(experts[0].gate), (std::vector<float>{0, 4, 8, 2, 6, 10}));
  EXPECT_EQ(rows_of(experts[0].up), (std::vector<float>{1, 5, 9, 3, 7, 11}));
  EXPECT_EQ(rows_of(experts[1].up), (std::vector<float>{13, 17, 21, 15, 19, 23}));
}

TEST(ExpertWeights, BiasesOfGateAndUpAreTakenApart) {
  const HeldTensors tensors = numbered({kExperts, 2 * kInner});
  std::vector<FfnWeights> experts;
  ASSERT_TRUE(
      load_experts(tensors, stacked(Role::kExpertGateUpBias, {2 * kInner}, false), {}, true, experts));
  EXPECT_EQ(experts[1].gate_bias, (std::vector<float>{4, 6}));
  EXPECT_EQ(experts[1].up_bias, (std::vector<float>{5, 7}));
}

TEST(ExpertWeights, AnotherShapeIsRefusedByName) {
  for (const HeldTensors& tensors :
       {numbered({kExperts + 1, kWidth, kInner}), numbered({kExperts, kInner, kWidth}),
        numbered({kExperts * kWidth, kInner})}) {
    std::vector<FfnWeights> experts;
    const auto status =
        load_experts(tensors, stacked(Role::kExpertDown, {kWidth, kInner}, false), {}, false, experts);
    ASSERT_FALSE(status);
    EXPECT_EQ(status.error().code, ErrorCode::kMalformed);
    EXPECT_NE(status.error().message.find("mlp.experts.matrix has shape ["), std::string::npos)
        << status.error().message;
    EXPECT_NE(status.error().message.find("calls for [2, 3, 2]"), std::string::npos);
  }
}

}  // namespace
}  // namespace plimsoll::engine
