// SPDX-License-Identifier: Apache-2.0
#include "serve/model_context.h"

#include <gtest/gtest.h>

#include "artifact/artifact.h"
#include "tests/testing/made_files.h"

namespace plimsoll::serve {
namespace {

Result<SamplingDefaults> defaults_of(const std::string& own, const std::string& source) {
  testing::MadeFolder folder;
  folder.put("config.json", R"({"model_type":"llama"})");
  folder.put("generation_config.json", own);
  const auto artifact = artifact::open(folder.path().string());
  EXPECT_TRUE(artifact);
  return read_sampling_defaults(**artifact, source);
}

constexpr const char* kAll =
    R"({"temperature":0.6,"top_p":0.95,"top_k":20,"min_p":0.1,"repetition_penalty":1.05,
    "presence_penalty":1.5,"frequency_penalty":0.5,"max_new_tokens":2048,"skip_special_tokens":false,
    "typical_p":0.5,"do_sample":false,"eos_token_id":[1,2]})";

/// temperature, top_p, top_k, min_p, then the penalties: repetition, presence, frequency.
std::vector<double> numbers(const SamplingDefaults& of) {
  return {of.temperature,
          of.top_p,
          static_cast<double>(of.top_k),
          of.min_p,
          of.repetition_penalty,
          of.presence_penalty,
          of.frequency_penalty};
}

TEST(SamplingDefaults, TakeWhatVllmTakesOfTheFile) {
  const auto defaults = defaults_of(kAll, "auto");
  ASSERT_TRUE(defaults);
  EXPECT_EQ(numbers(*defaults), (std::vector<double>{0.6, 0.95, 20, 0.1, 1.05, 1.5, 0.5}));
  EXPECT_EQ(defaults->max_new_tokens, 2048);
  EXPECT_FALSE(defaults->skip_special_tokens || defaults->caps_max_tokens);
  EXPECT_TRUE(defaults->stop_ids.empty());  // the tokenizer has the model's own
}

TEST(SamplingDefaults, VllmMeansNone) {
  const auto defaults = defaults_of(kAll, "vllm");
  ASSERT_TRUE(defaults);
  EXPECT_EQ(numbers(*defaults), (std::vector<double>{1, 1, 0, 0, 1, 0, 0}));
  EXPECT_FALSE(defaults->max_new_tokens);
  EXPECT_TRUE(defaults->skip_special_tokens);
}

TEST(SamplingDefaults, AnotherFolderReplacesTheModelsOwn) {
  testing::MadeFolder other;
  other.put("generation_config.json", R"({"top_k":7,"max_new_tokens":5,"eos_token_id":[9,8,9]})");
  const auto defaults = defaults_of(kAll, other.path().string());
  ASSERT_TRUE(defaults);
  EXPECT_EQ(defaults->top_k, 7);
  EXPECT_EQ(defaults->temperature, 1.0);
  EXPECT_EQ(defaults->max_new_tokens, 5);
  EXPECT_TRUE(defaults->caps_max_tokens);
  EXPECT_EQ(defaults->stop_ids, (std::vector<TokenId>{9, 8}));
  EXPECT_FALSE(defaults_of(kAll, other.path().string() + "/nothing"));
}

TEST(SamplingDefaults, ValuesOutOfRangeAreNamed) {
  const auto refused = defaults_of(R"({"temperature":2.5})", "auto");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::kMalformed);
  EXPECT_NE(refused.error().describe().find("at most 2, got 2.5"), std::string::npos);
  EXPECT_EQ(defaults_of(R"({"top_p":0})", "auto")->top_p, 1.0);
}

}  // namespace
}  // namespace plimsoll::serve
