// SPDX-License-Identifier: Apache-2.0
// Parameters of a recurrence that no state can be computed with are refused when the model is loaded.
#include <gtest/gtest.h>

#include <limits>

#include "tests/engine/held_tensors.h"
#include "tests/engine/loading.h"
#include "tests/testing/golden.h"

namespace plimsoll::engine {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// A golden model with one element of a tensor replaced.
Result<std::unique_ptr<Engine>> loaded_with(const std::string& model, const std::string& ending,
                                            float value) {
  const auto stored =
      artifact::open(testing::golden_path("models/" + model), {.need = artifact::Need::kTensors});
  EXPECT_TRUE(stored);
  auto held = std::make_shared<HeldTensors>((*stored)->config());
  bool is_replaced = false;
  for (const artifact::Tensor& tensor : (*stored)->tensors()) {
    const auto data = (*stored)->data(tensor);
    EXPECT_TRUE(data);
    held->put(std::string(tensor.name), tensor.dtype, tensor.shape,
              std::vector<std::byte>(data->begin(), data->end()));
    if (is_replaced || !tensor.name.ends_with(ending)) continue;
    std::vector<float> values(static_cast<std::size_t>(tensor.elements()), 0.5F);
    values.back() = value;
    held->put(std::string(tensor.name), DType::kF32, tensor.shape, values);
    is_replaced = true;
  }
  EXPECT_TRUE(is_replaced) << ending;
  const auto spec = model::read_spec(*held);
  EXPECT_TRUE(spec);
  return Engine::load(held, *spec, small_options(ComputeMode::kFloat32));
}

TEST(StateWeights, ThatAreNoFiniteNumbersAreRefused) {
  for (const std::string& model : testing::present("models", {"nemotron_h", "mamba2", "jamba", "qwen3_next"}))
    for (const char* ending : {"A_log", model == "jamba" ? "dt_proj.bias" : "dt_bias"})
      for (const float value : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
        const auto engine = loaded_with(model, ending, value);
        ASSERT_FALSE(engine) << model << " " << ending << " " << value;
        EXPECT_EQ(engine.error().code, ErrorCode::kMalformed);
        EXPECT_TRUE(engine.error().where.ends_with(ending)) << engine.error().where;
      }
}

// exp(100) is beyond 32 bits; a step bias of 100 is only a long step.
TEST(StateWeights, ADecayWhoseExponentialIsInfiniteIsRefused) {
  for (const std::string& model : testing::present("models", {"nemotron_h"})) {
    EXPECT_FALSE(loaded_with(model, "A_log", 100));
    EXPECT_TRUE(loaded_with(model, "A_log", 80));
    EXPECT_TRUE(loaded_with(model, "dt_bias", 100));
  }
}

}  // namespace
}  // namespace plimsoll::engine
