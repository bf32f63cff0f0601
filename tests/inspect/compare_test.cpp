// SPDX-License-Identifier: Apache-2.0
// Two models side by side: what is the same, what differs, and that one model does not differ from itself.
#include "inspect/compare.h"

#include <gtest/gtest.h>

#include "tests/inspect/header_folder.h"
#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

Report inspected(const HeaderFolder& folder) {
  Options options;
  options.lists_tensors = true;
  auto report = inspect(folder.path(), options);
  EXPECT_TRUE(report);
  return std::move(*report);
}

Json config(const char* heads) {
  std::string text(kSmallLlama);
  text.replace(text.find("\"num_key_value_heads\":2"), 23, std::string("\"num_key_value_heads\":") + heads);
  return *parse_json(text, "config.json");
}

const Json* figure(const Json& comparison, std::string_view name) {
  for (const Json& row : comparison["figures"].items())
    if (*row["name"].as_string() == name) return &row;
  return nullptr;
}

TEST(Compare, AModelIsTheSameAsItself) {
  const HeaderFolder one(config("2"), {{"model.norm.weight", "BF16", {64}}});
  const HeaderFolder two(config("2"), {{"model.norm.weight", "BF16", {64}}});
  const Json comparison = compare(inspected(one), inspected(two));
  EXPECT_EQ(comparison["same"], Json(true)) << dump_pretty(comparison);
  EXPECT_EQ(comparison["layers"].size(), 0U);
  EXPECT_NE(compare_text(comparison).find("The same"), std::string::npos);
  EXPECT_EQ(compare_text(comparison).find("differs"), std::string::npos);
}

TEST(Compare, FiguresLayersAndTensorsThatDiffer) {
  const HeaderFolder one(config("2"), {{"model.norm.weight", "BF16", {64}},
                                       {"lm_head.weight", "BF16", {320, 64}},
                                       {"model.layers.0.input_layernorm.weight", "BF16", {64}}});
  const HeaderFolder two(config("4"), {{"model.norm.weight", "BF16", {64}},
                                       {"lm_head.weight", "F16", {320, 64}},
                                       {"model.layers.1.input_layernorm.weight", "BF16", {64}}});
  const Json comparison = compare(inspected(one), inspected(two));
  EXPECT_EQ(comparison["same"], Json(false));
  const Json* kv = figure(comparison, "KV bytes per token");
  ASSERT_NE(kv, nullptr);
  EXPECT_EQ((*kv)["a"], Json(4 * 2 * 2 * 8 * 2));
  EXPECT_EQ((*kv)["b"], Json(4 * 2 * 4 * 8 * 2));
  EXPECT_EQ((*kv)["same"], Json(false));
  EXPECT_EQ((*figure(comparison, "architecture"))["same"], Json(true));
  ASSERT_EQ(comparison["layers"].size(), 1U);
  EXPECT_EQ(comparison.at_pointer("/layers/0/count"), Json(4));
  EXPECT_EQ(comparison.at_pointer("/layers/0/a/kv_heads"), Json(2));
  EXPECT_EQ(comparison.at_pointer("/layers/0/b/kv_heads"), Json(4));
  const Json& tensors = comparison["tensors"];
  ASSERT_EQ(tensors["changed"].size(), 1U);
  EXPECT_EQ(tensors.at_pointer("/changed/0/name"), Json("lm_head.weight"));
  EXPECT_EQ(tensors.at_pointer("/changed/0/b/dtype"), Json("f16"));
  ASSERT_EQ(tensors["added"].size(), 1U);
  EXPECT_EQ(tensors.at_pointer("/added/0/name"), Json("model.layers.1.input_layernorm.weight"));
  ASSERT_EQ(tensors["removed"].size(), 1U);
  EXPECT_EQ(tensors.at_pointer("/removed/0/name"), Json("model.layers.0.input_layernorm.weight"));
  ASSERT_EQ(comparison["dtypes"].size(), 2U);
  const std::string text = compare_text(comparison);
  for (const char* part : {"layers 0 to 3", "1 added, 1 removed, 1 changed", "They differ",
                           "~ lm_head.weight  bf16 [320,64] -> f16 [320,64]"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
}

TEST(Compare, LayersBehindTheShorterModel) {
  ModelFolder one, two;
  std::string text(kSmallLlama);
  one.write("config.json", text);
  text.replace(text.find("\"num_hidden_layers\":4"), 21, "\"num_hidden_layers\":6");
  two.write("config.json", text);
  const Json comparison = compare(one.inspected(), two.inspected());
  ASSERT_EQ(comparison["layers"].size(), 1U);
  EXPECT_EQ(comparison.at_pointer("/layers/0/first"), Json(4));
  EXPECT_EQ(comparison.at_pointer("/layers/0/count"), Json(2));
  EXPECT_TRUE(comparison.at_pointer("/layers/0/a").is_null());
}

}  // namespace
}  // namespace plimsoll::inspect
