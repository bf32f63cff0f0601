// SPDX-License-Identifier: Apache-2.0
// Module names against the patterns of quantization configs; expressions against Python's re.match.
#include "model/module_pattern.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace plimsoll::model {
namespace {

using Kind = ModulePattern::Kind;

bool matches(Kind kind, const char* pattern, const char* module) {
  return ModulePattern(kind, pattern).matches(module);
}

TEST(ModulePattern, WordsAreWholeSegmentsAnywhere) {
  EXPECT_TRUE(matches(Kind::kWords, "lm_head", "lm_head"));
  EXPECT_TRUE(matches(Kind::kWords, "lm_head", "language_model.lm_head"));
  EXPECT_TRUE(matches(Kind::kWords, "gate", "model.layers.3.mlp.gate"));
  EXPECT_FALSE(matches(Kind::kWords, "gate", "model.layers.3.mlp.gate_proj"));
  EXPECT_TRUE(matches(Kind::kWords, "model.layers.*.self_attn", "model.layers.12.self_attn.q_proj"));
  EXPECT_FALSE(matches(Kind::kWords, "model.layers.1", "model.layers.10.mlp"));
}

TEST(ModulePattern, GlobsTakeDots) {
  EXPECT_TRUE(matches(Kind::kGlob, "model.layers.0*", "model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(matches(Kind::kGlob, "model.layers.1.*", "model.layers.10.mlp"));
  EXPECT_TRUE(matches(Kind::kGlob, "*.mlp.shared_expert.*", "model.layers.9.mlp.shared_expert.up_proj"));
  EXPECT_TRUE(matches(Kind::kGlob, "vision_tower", "vision_tower.blocks.0.attn"));
  EXPECT_FALSE(matches(Kind::kGlob, "vision_tower", "vision_tower2.blocks"));
}

TEST(ModulePattern, ExpressionsMatchAsPythonDoes) {
  const std::vector<std::tuple<const char*, const char*, bool>> rows{
      {R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", "model.layers.0.mlp.up_proj", true},
      {R"(.*mlp\.(gate|up|gate_up|down)_proj.*)", "model.layers.0.mlp.gate", false},
      {R"(.*self_attn.*)", "model.layers.0.self_attn.q_proj", true},
      {R"(model\.layers\.[0-3]\..*)", "model.layers.3.mlp", true},
      {R"(model\.layers\.[0-3]\..*)", "model.layers.4.mlp", false},
      {R"(model\.layers\.(0|1\d)\.mlp$)", "model.layers.12.mlp", true},
      {R"(model\.layers\.(0|1\d)\.mlp$)", "model.layers.12.mlp.up", false},
      {R"(layers)", "model.layers", false},
      {R"(^model\.l)", "model.layers", true},
      {R"(a?b+c*)", "bb", true},
      {R"((?:ab)+$)", "ababa", false},
      {R"([^.]+\.w[12])", "experts.w2", true},
      {R"((a|b|)*c)", "ababc", true},
      {R"(.*)", "", true},
  };
  for (const auto& [pattern, module, expected] : rows)
    EXPECT_EQ(matches(Kind::kRegex, pattern, module), expected) << pattern << " on " << module;
}

TEST(ModulePattern, WhatIsNotReadIsSaid) {
  for (const char* pattern : {"(?!lm_head).*", "a{2}", "(", "a)", "*a", "[a", "\\bx", "a\\"})
    EXPECT_FALSE(ModulePattern(Kind::kRegex, pattern).is_usable()) << pattern;
  ModulePatternSet set;
  set.add(ModulePattern::prefixed("re:(?!x)"));
  EXPECT_EQ(set.unusable().size(), 1U);
  EXPECT_FALSE(set.matches("x"));
}

TEST(ModulePattern, HostileExpressionsEnd) {
  EXPECT_FALSE(matches(Kind::kRegex, "(a*)*(a*)*(a*)*b", std::string(5000, 'a').c_str()));
  EXPECT_FALSE(ModulePattern(Kind::kRegex, std::string(2000, '(')).is_usable());
  EXPECT_FALSE(ModulePattern(Kind::kRegex, std::string(5000, 'a')).is_usable());
}

TEST(ModulePattern, SetsFindTheirBeginnings) {
  ModulePatternSet set;
  for (const char* text : {"model.layers.10.mlp*", "model.layers.1*", "model.layers.0.mlp*", "model.b*"})
    set.add({Kind::kGlob, text});
  set.add({Kind::kWords, "lm_head"});
  EXPECT_TRUE(set.matches("model.layers.10.self_attn"));
  EXPECT_TRUE(set.matches("model.layers.0.mlp.up_proj"));
  EXPECT_FALSE(set.matches("model.layers.0.self_attn"));
  EXPECT_FALSE(set.matches("model.layers.2.mlp"));
  EXPECT_FALSE(set.matches("model.a"));
  EXPECT_TRUE(set.matches("language_model.lm_head"));
}

}  // namespace
}  // namespace plimsoll::model
