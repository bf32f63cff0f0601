// SPDX-License-Identifier: Apache-2.0
// A draw must not allocate once the buffers have their size.
#include <gtest/gtest.h>

#include "engine/sampler.h"
#include "tests/testing/counted_new.h"

namespace plimsoll::engine {
namespace {

TEST(SamplerAllocation, DrawsAllocateNothing) {
  std::vector<float> logits(3000);
  for (std::size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(i * 7919 % 3000) / 300.0F;
  const std::vector<TokenId> prompt = {1, 2, 3};
  SamplingParams penalized;
  penalized.seed = 1;
  penalized.repetition_penalty = 1.1;
  penalized.presence_penalty = penalized.frequency_penalty = 0.1;
  penalized.logit_bias = {{5, 1.0}};
  penalized.min_tokens = 10;
  penalized.stop_token_ids = {7};
  penalized.max_tokens = 400;
  SamplerBuffers buffers;
  for (const auto& [top_k, top_p, typical_p] :
       {std::tuple(0, 1.0, 1.0), {50, 1.0, 1.0}, {0, 0.9, 1.0}, {0, 1.0, 0.9}, {2000, 0.95, 0.9}}) {
    auto params = penalized;
    params.top_k = top_k;
    params.top_p = top_p;
    params.typical_p = typical_p;
    Sampler sampler(params, prompt);
    for (int i = 0; i < 5; ++i) sampler.choose(logits, i, buffers);
    const std::size_t before = testing::num_allocations;
    for (int i = 5; i < 300; ++i) sampler.choose(logits, i, buffers);
    EXPECT_EQ(testing::num_allocations, before) << top_k << ' ' << top_p << ' ' << typical_p;
  }
}

}  // namespace
}  // namespace plimsoll::engine
