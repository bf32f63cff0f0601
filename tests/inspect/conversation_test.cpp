// SPDX-License-Identifier: Apache-2.0
#include "inspect/conversation.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/inspect/model_folder.h"
#include "tests/testing/made_files.h"

namespace plimsoll::inspect {
namespace {

// The level of TMPL_MISSING for a folder with a tokenizer and no template.
std::string missing_in(const std::string& architecture, const std::string& name = "model",
                       const std::string& card = "") {
  ModelFolder folder(name);
  std::string config(kSmallLlama);
  config.replace(config.find("LlamaForCausalLM"), 16, architecture);
  folder.write("config.json", config).write("tokenizer_config.json", "{}");
  if (!card.empty()) folder.write("README.md", "---\nlicense: mit\n---\n" + card);
  const Report report = folder.inspected();
  const auto* finding = finding_of(report, "TMPL_MISSING");
  return finding ? std::string(to_string(finding->level)) : std::string("none");
}

TEST(Conversation, ModelsThatWriteNoTextNeedNoTemplate) {
  for (const char* architecture : {"LlamaModel", "LlamaForSequenceClassification",
                                   "LlamaForTokenClassification", "Qwen2ForRewardModel", "BertForMaskedLM"})
    EXPECT_EQ(missing_in(architecture), "none") << architecture;
  EXPECT_EQ(missing_in("LlamaForCausalLM"), "warning");
}

TEST(Conversation, BaseModelsNeedNoneEither) {
  EXPECT_EQ(missing_in("LlamaForCausalLM", "Own-8B-Base"), "info");
  EXPECT_EQ(missing_in("LlamaForCausalLM", "gemma-3-pt"), "info");
  EXPECT_EQ(missing_in("LlamaForCausalLM", "Own-8B", "Own-8B is a pretrained base model."), "info");
  EXPECT_EQ(missing_in("LlamaForCausalLM", "Own-8B-Instruct", "Fine-tuned from the base model."), "warning");
  EXPECT_EQ(missing_in("LlamaForCausalLM", "Own-8B", "Talk to it."), "warning");
}

TEST(Conversation, AnEmbedderOfACausalClassIsNone) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama).write("tokenizer_config.json", "{}").write("modules.json", "[]");
  EXPECT_EQ(finding_of(folder.inspected(), "TMPL_MISSING"), nullptr);
}

}  // namespace
}  // namespace plimsoll::inspect
