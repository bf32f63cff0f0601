// SPDX-License-Identifier: Apache-2.0
// The names that a message offers for one that nobody knows.
#include "model/nearest_names.h"

#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/json.h"
#include "model/model.h"

namespace plimsoll::model {
namespace {

TEST(NearestNames, TakeTheFewestChanges) {
  constexpr std::array<std::string_view, 4> kKnown{"Qwen3ForCausalLM", "LlamaForCausalLM", "MambaForCausalLM",
                                                   "GPT2LMHeadModel"};
  EXPECT_EQ(nearest_names("Llama9ForCausalLM", kKnown, 2),
            (std::vector<std::string_view>{"LlamaForCausalLM", "MambaForCausalLM"}));
  EXPECT_EQ(nearest_names("", kKnown, 9).size(), kKnown.size());
}

TEST(NearestNames, AreAllThatAnUnknownArchitectureIsTold) {
  const auto config =
      parse_json(R"({"architectures": ["Mistrel3ForCausalLM"], "hidden_size": 64})", "config.json");
  ASSERT_TRUE(config);
  const auto spec = read_spec(*config, "config.json");
  ASSERT_FALSE(spec);
  EXPECT_EQ(spec.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(spec.error().message.find("Mistral4ForCausalLM"), std::string::npos) << spec.error().message;
  EXPECT_LT(spec.error().message.size(), 250U);
}

TEST(NearestNames, DoNotGrowWithTheNameAsked) {
  const std::string name(1 << 20, 'x');
  const auto config = parse_json("{\"architectures\": [\"" + name + "\"]}", "config.json");
  ASSERT_TRUE(config);
  const auto spec = read_spec(*config, "config.json");
  ASSERT_FALSE(spec);
  EXPECT_LT(spec.error().message.size(), 500U);
}

}  // namespace
}  // namespace plimsoll::model
