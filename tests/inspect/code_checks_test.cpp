// SPDX-License-Identifier: Apache-2.0
#include "inspect/code_checks.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

std::string with_map(const std::string& map) {
  std::string text(kSmallLlama);
  text.pop_back();
  return text + R"(,"auto_map":)" + map + "}";
}

TEST(CodeChecks, AutoMapOfTheConfig) {
  ModelFolder folder;
  folder.write("config.json", with_map(R"({"AutoModelForCausalLM":"modeling_own.OwnForCausalLM"})"));
  folder.write("modeling_own.py", "print('never run')");
  const Report report = folder.inspected();
  const auto* finding = finding_of(report, "REMOTE_CODE");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kWarning);
  EXPECT_EQ(finding->where, "config.json: /auto_map");
  EXPECT_NE(finding->message.find("modeling_own.OwnForCausalLM"), std::string::npos);
  EXPECT_EQ(finding->message.find("is not in the folder"), std::string::npos);
  EXPECT_EQ(finding_of(report, "CODE_FILES"), nullptr);
}

// A class that engines have themselves needs none of the model's code; another class under its name does, and
// so does a tokenizer.
TEST(CodeChecks, ACodeThatEnginesHaveThemselvesIsNoWarning) {
  const auto level = [](const std::string& map) {
    ModelFolder folder;
    folder.write("config.json", with_map(map));
    const Report report = folder.inspected();
    const auto* finding = finding_of(report, "REMOTE_CODE");
    return finding ? std::string(to_string(finding->level)) : std::string("none");
  };
  EXPECT_EQ(level(R"({"AutoConfig":"configuration_llama.LlamaConfig","AutoModel":"modeling_llama.LlamaModel",
                      "AutoModelForCausalLM":"modeling_llama.LlamaForCausalLM"})"),
            "info");
  EXPECT_EQ(level(R"({"AutoConfig":"configuration_llama.LlamaConfig"})"), "info");
  EXPECT_EQ(level(R"({"AutoModelForCausalLM":"modeling_own.OwnForCausalLM"})"), "warning");
  EXPECT_EQ(level(R"({"AutoModelForCausalLM":"modeling_llama.LlamaForCausalLM",
                      "AutoTokenizer":["tokenization_own.OwnTokenizer",null]})"),
            "warning");
}

// The class is vLLM's, its config is not: phi-2 was published under a type of its own.
TEST(CodeChecks, AConfigOfItsOwnIsRun) {
  ModelFolder folder;
  std::string config = with_map(R"({"AutoConfig":"configuration_own.OwnConfig"})");
  config.replace(config.find("\"llama\""), 7, "\"llama-own\"");
  folder.write("config.json", config);
  const Report report = folder.inspected();
  const auto* finding = finding_of(report, "REMOTE_CODE");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kWarning);
}

TEST(CodeChecks, TokenizersAndOtherRepositories) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  folder.write("tokenizer_config.json",
               R"({"auto_map":{"AutoTokenizer":["org/other--tokenization_own.OwnTokenizer", null]}})");
  const Report report = folder.inspected();
  const auto* finding = finding_of(report, "REMOTE_CODE");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->where, "tokenizer_config.json: /auto_map");
  EXPECT_NE(finding->message.find("another repository"), std::string::npos);
}

TEST(CodeChecks, PythonThatNothingLoads) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("convert.py", "pass");
  const Report report = folder.inspected();
  ASSERT_NE(finding_of(report, "CODE_FILES"), nullptr);
  EXPECT_EQ(finding_of(report, "CODE_FILES")->level, FindingLevel::kInfo);
  ModelFolder odd;
  odd.write("config.json", with_map("[1, {\"a\": 2}]"));
  EXPECT_EQ(finding_of(odd.inspected(), "REMOTE_CODE"), nullptr);
}

}  // namespace
}  // namespace plimsoll::inspect
