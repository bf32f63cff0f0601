// SPDX-License-Identifier: Apache-2.0
#include "inspect/generation_checks.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

Report with(const std::string& generation_config) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("generation_config.json", generation_config);
  return folder.inspected();
}

TEST(GenerationChecks, DefaultsAreReportedAsWritten) {
  const Report report = with(R"({"temperature":0.6,"top_p":0.95,"top_k":20,"repetition_penalty":1.05,
      "max_new_tokens":2048,"eos_token_id":[1,2],"do_sample":true,"transformers_version":"4.51.0"})");
  EXPECT_EQ(dump(report.generation_defaults),
            R"({"temperature":0.6,"top_p":0.95,"top_k":20,"repetition_penalty":1.05,"max_new_tokens":2048})");
  const auto* finding = finding_of(report, "GEN_DEFAULTS");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kInfo);
  EXPECT_NE(finding->message.find("temperature 0.6"), std::string::npos);
  EXPECT_NE(finding->message.find("max_new_tokens 2048"), std::string::npos);
}

TEST(GenerationChecks, NeutralValuesAreNoFinding) {
  const Report report = with(R"({"temperature":1.0,"top_p":1.0,"top_k":0,"repetition_penalty":1.0})");
  EXPECT_EQ(finding_of(report, "GEN_DEFAULTS"), nullptr);
  EXPECT_EQ(finding_of(with(R"({"top_k":-1})"), "GEN_DEFAULTS"), nullptr);  // switched off
  EXPECT_EQ(report.generation_defaults["temperature"], Json(1.0));
  EXPECT_EQ(finding_of(with(R"({"eos_token_id":2})"), "GEN_DEFAULTS"), nullptr);
}

TEST(GenerationChecks, RefusedValues) {
  for (const char* value : {R"({"temperature":-1})", R"({"top_p":1.5})", R"({"top_p":0})", R"({"top_k":-2})",
                            R"({"temperature":"hot"})", R"({"repetition_penalty":0})",
                            R"({"max_new_tokens":0})", R"({"top_k":1.5})", R"({"max_new_tokens":1e30})"}) {
    const auto report = with(value);
    EXPECT_NE(finding_of(report, "GEN_VALUE"), nullptr) << value;
  }
}

TEST(GenerationChecks, AFileThatIsNoObject) {
  const Report report = with("[1, 2]");
  ASSERT_NE(finding_of(report, "GEN_JSON"), nullptr);
  EXPECT_EQ(finding_of(report, "GEN_JSON")->level, FindingLevel::kError);
  ModelFolder bare;
  bare.write("config.json", kSmallLlama);
  EXPECT_TRUE(bare.inspected().generation_defaults.is_null());
}

}  // namespace
}  // namespace plimsoll::inspect
