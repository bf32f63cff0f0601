// SPDX-License-Identifier: Apache-2.0
#include "inspect/sidecar_checks.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

TEST(Sidecars, EveryMalformedFileIsAnErrorOfItsOwn) {
  const std::vector<std::pair<std::string, std::string>> files = {
      {"tokenizer_config.json", "TOK_JSON"},
      {"special_tokens_map.json", "TOK_JSON"},
      {"added_tokens.json", "TOK_JSON"},
      {"vocab.json", "TOK_JSON"},
      {"tokenizer.json", "TOK_JSON"},
      {"chat_template.json", "TMPL_JSON"},
      {"processor_config.json", "PROC_JSON"},
      {"preprocessor_config.json", "PROC_JSON"},
      {"video_preprocessor_config.json", "PROC_JSON"},
      {"hf_quant_config.json", "QUANT_JSON"},
      {"generation_config.json", "GEN_JSON"}};
  const std::string utf16("\xff\xfe{\0}\0", 6);
  for (const auto& [file, id] : files)
    for (const std::string& content : {std::string("{broken"), std::string(), std::string("[]"), utf16}) {
      ModelFolder folder;
      folder.write("config.json", kSmallLlama);
      folder.write(file, content);
      const Report report = folder.inspected();
      const Finding* told = finding_of(report, id);
      ASSERT_NE(told, nullptr) << file << " holding " << content;
      EXPECT_TRUE(told->where.starts_with(file)) << told->where;
      EXPECT_EQ(verdict_code(report.findings), ErrorCode::kMalformed) << file;
      EXPECT_EQ(finding_of(report, "TMPL_MISSING"), nullptr) << file;
    }
}

TEST(Sidecars, SoundFilesAreNoFindings) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  for (const char* file : {"tokenizer_config.json", "special_tokens_map.json", "preprocessor_config.json"})
    folder.write(file, "\xEF\xBB\xBF{}");
  folder.write("vocab.json", R"({"a":0})");
  const Report report = folder.inspected();
  for (const char* id : {"TOK_JSON", "PROC_JSON"}) EXPECT_EQ(finding_of(report, id), nullptr) << id;
}

TEST(Sidecars, ATokenizerWithoutVocabularyIsNone) {
  ModelFolder folder;
  folder.write("config.json", kSmallLlama);
  for (const auto& [text, where] : {std::pair(R"({"a":1})", "tokenizer.json: /model"),
                                    std::pair(R"({"model":{"a":1}})", "tokenizer.json: /model/vocab")}) {
    const Report report = folder.write("tokenizer.json", text).inspected();
    const Finding* told = finding_of(report, "TOK_JSON");
    ASSERT_NE(told, nullptr) << text;
    EXPECT_EQ(told->where, where);
  }
}

}  // namespace
}  // namespace plimsoll::inspect
