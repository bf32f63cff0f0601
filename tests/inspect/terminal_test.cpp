// SPDX-License-Identifier: Apache-2.0
// Nothing that a model's files say may steer the terminal of whoever inspects it, nor forge a line of the
// page.
#include <gtest/gtest.h>

#include <filesystem>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

bool has_controls(const std::string& page) {
  for (const char c : page)
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n') || c == 0x7F) return true;
  return false;
}

// A safetensors file of one tensor of two bytes.
std::string one_tensor(const std::string& escaped_name) {
  std::string header = "{\"" + escaped_name + R"(":{"dtype":"BF16","shape":[1],"data_offsets":[0,2]}})";
  std::string file(8, '\0');
  file[0] = static_cast<char>(header.size());
  return file + header + std::string(2, '\0');
}

TEST(Terminal, TheTextPageShowsControlCharactersAsEscapes) {
  ModelFolder folder("model\x1b[31m");
  std::string config(kSmallLlama);
  config.replace(config.find("LlamaForCausalLM"), 16, "\\u001b]0;pwn\\u0007");
  config.pop_back();
  folder.write("config.json", config + R"(,"quantization_config":{"quant_method":"\u001b[2J\nVerdict  ok"},
      "auto_map":{"AutoModel":"m\u001b.X"},"k\u001b[31m":1,"k\u001b[31m":2})");
  folder.write("README.md", "---\nlicense: \x1b[5m\n---\n");
  folder.write("model.safetensors", one_tensor("t\\u001b[1m\\nVerdict  ok"));
  folder.write("tokenizer_config.json", R"({"chat_template":"{{ raise_exception('\u001b[7m') }}"})");
  std::filesystem::create_symlink("no\x1bwhere", folder.path() + "/dangling\x1b[0m");
  Options options;
  options.lists_tensors = true;
  const Report report = folder.inspected(options);
  ASSERT_FALSE(report.findings.empty());
  const std::string page = to_text(report);
  EXPECT_FALSE(has_controls(page)) << page;
  EXPECT_NE(page.find("\\x1b"), std::string::npos) << page;
  EXPECT_EQ(page.find("\nVerdict  ok"), std::string::npos) << page;
  // The document keeps the texts as they are: JSON has escapes of its own.
  EXPECT_NE(dump(to_json(report)).find("\\u001b"), std::string::npos);
}

}  // namespace
}  // namespace plimsoll::inspect
