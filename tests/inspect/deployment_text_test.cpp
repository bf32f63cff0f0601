// SPDX-License-Identifier: Apache-2.0
#include "inspect/deployment_text.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

TEST(DeploymentText, ShowsEachTopicOnALine) {
  ModelFolder folder;
  std::string config(kSmallLlama);
  config.pop_back();
  folder.write("config.json", config + R"(,"sliding_window":512})");
  folder.write("README.md", "---\nlicense: llama3.1\n---\n");
  folder.write("generation_config.json", R"({"temperature":0.6,"top_p":0.9})");
  Options options;
  options.gpu = "H100:2";
  const std::string text = deployment_text(folder.inspected(options));
  for (const char* line :
       {"License               llama3.1: commercial use conditional",
        "Sampling defaults     temperature 0.6, top_p 0.9",
        "Tensor parallel       1, 2, 4, 8 (KV replicated at 4, 8); not 16: 8 query heads are not divisible "
        "by 16",
        "plimsoll supported", "vllm supported since 0.6.0", "Window                512 tokens",
        "Has                   compute capability 8.0 for bf16"})
    EXPECT_NE(text.find(line), std::string::npos) << "wanted \"" << line << "\" in\n" << text;
  EXPECT_EQ(to_text(folder.inspected(options)).find(text) == std::string::npos, false);
}

TEST(DeploymentText, NothingKnownIsNotShown) {
  ModelFolder folder;
  folder.write("config.json", R"({"architectures":["NobodyForCausalLM"]})");
  const std::string text = deployment_text(folder.inspected());
  for (const char* label : {"License", "Window", "Maximum input", "Sampling", "Tensor parallel"})
    EXPECT_EQ(text.find(label), std::string::npos) << label << " in\n" << text;
}

}  // namespace
}  // namespace plimsoll::inspect
