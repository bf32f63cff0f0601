// SPDX-License-Identifier: Apache-2.0
// What SGLang treats in its own way, by the architecture's name.
#include "facts/sglang.h"

#include <gtest/gtest.h>

namespace plimsoll::facts {
namespace {

TEST(Sglang, WindowPools) {
  EXPECT_TRUE(sglang_has_window_pool("GptOssForCausalLM"));
  EXPECT_FALSE(sglang_has_window_pool("Gemma3ForCausalLM"));
}

TEST(Sglang, DraftLayersThatThePoolIsSizedFor) {
  EXPECT_EQ(sglang_draft_layers("DeepseekV3ForCausalLM", 1), 1);
  EXPECT_EQ(sglang_draft_layers("Step3p5ForCausalLM", 3), 3);
  EXPECT_EQ(sglang_draft_layers("HYV3ForCausalLM", 2), 1);
  EXPECT_EQ(sglang_draft_layers("Qwen3NextForCausalLM", 1), 0);
}

}  // namespace
}  // namespace plimsoll::facts
