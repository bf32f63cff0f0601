// SPDX-License-Identifier: Apache-2.0
// Real vocabularies, one test name each: against the reference library's rows of the golden set (a sample of
// them lies in git), and against the test vectors that llama.cpp ships with its vocabulary files.
#include <gtest/gtest.h>

#include <fstream>
#include <sstream>

#include "tests/testing/golden.h"
#include "tests/text/real_tokenizers.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

// Two GGUF files ask for special tokens around the text (add_bos_token, add_eos_token); the reference was
// rebuilt from their vocabulary without that step.
struct Around {
  const char* family;
  std::vector<TokenId> before, after;
};
const Around kAround[] = {{"command_r", {5}, {}}, {"xlmr_unigram", {0}, {2}}};

Json as_the_file_says(Json row, const std::string& family) {
  for (const Around& around : kAround)
    if (around.family == family && row.contains("ids")) {
      Json ids = Json::array();
      for (const TokenId id : around.before) ids.push_back(id);
      for (const Json& id : row["ids"].items()) ids.push_back(id);
      for (const TokenId id : around.after) ids.push_back(id);
      row.set("ids_special", std::move(ids));
    }
  return row;
}

class RealFamily : public ::testing::TestWithParam<std::string> {};

TEST_P(RealFamily, EveryRowAgrees) {
  if (!have_real_tokenizers()) GTEST_SKIP() << "PLIMSOLL_TOKENIZERS names no folder of real tokenizers";
  const auto rows = read_rows(testing::golden_path("tokens/" + GetParam() + ".jsonl"));
  ASSERT_GT(rows.size(), 10U);
  auto tokenizer = load_family(GetParam());
  ASSERT_TRUE(tokenizer) << tokenizer.error().describe();
  EXPECT_GE((*tokenizer)->vocab_size(), *rows[0]["vocab_size"].as_integer());
  RowCounts counts;
  for (const Json& row : rows)
    check_row(*tokenizer, as_the_file_says(row, GetParam()), to_ids(rows[0]["empty_with_special"]), counts);
  EXPECT_EQ(counts.encoded + counts.streams + counts.bytes + 1, static_cast<int>(rows.size()));
}

INSTANTIATE_TEST_SUITE_P(Tokens, RealFamily, ::testing::ValuesIn(family_names()),
                         [](const auto& test) { return test.param; });

// Texts of an .inp file, and the ids of its .out file, as llama.cpp's own test reads them.
struct Vector {
  std::string text;
  std::vector<TokenId> ids;
};

std::string whole_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << path;
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

std::vector<Vector> read_vectors(const std::string& path) {
  const std::string separator = "\n__ggml_vocab_test__\n";
  const std::string inputs = whole_file(path + ".inp");
  std::istringstream outputs(whole_file(path + ".out"));
  std::vector<Vector> vectors;
  std::size_t start = 0;
  for (std::size_t end; (end = inputs.find(separator, start)) != std::string::npos;
       start = end + separator.size()) {
    std::string line;
    EXPECT_TRUE(std::getline(outputs, line)) << "more texts than lines of ids";
    std::istringstream ids(line);
    Vector vector{inputs.substr(start, end - start), {}};
    for (TokenId id; ids >> id;) vector.ids.push_back(id);
    vectors.push_back(std::move(vector));
  }
  return vectors;
}

class LlamaCppVectors : public ::testing::TestWithParam<const char*> {};

TEST_P(LlamaCppVectors, EveryTextAgrees) {
  if (!have_real_tokenizers()) GTEST_SKIP() << "PLIMSOLL_TOKENIZERS names no folder of real tokenizers";
  const std::string path = std::string("llama_cpp/ggml-vocab-") + GetParam() + ".gguf";
  auto tokenizer = load_real_tokenizer(path);
  ASSERT_TRUE(tokenizer) << tokenizer.error().describe();
  const auto vectors = read_vectors(tokenizer_path(path));
  EXPECT_GE(vectors.size(), 40U);
  for (const Vector& vector : vectors)
    EXPECT_EQ((*tokenizer)->encode(vector.text, {false, false}), vector.ids) << vector.text;
}

// ggml-vocab-X.gguf by X, dashes as they are in the file's name.
std::string test_name(const ::testing::TestParamInfo<const char*>& test) {
  std::string name = test.param;
  for (char& c : name)
    if (c == '-') c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tokens, LlamaCppVectors,
                         ::testing::Values("bert-bge", "command-r", "deepseek-coder", "deepseek-llm",
                                           "falcon", "gemma-4", "gpt-2", "llama-bpe", "llama-spm", "mpt",
                                           "phi-3", "qwen2", "qwen35", "refact", "starcoder"),
                         test_name);

class LlamaCppVocabulary : public ::testing::TestWithParam<const char*> {};

TEST_P(LlamaCppVocabulary, GivesBackWhatItReads) {
  if (!have_real_tokenizers()) GTEST_SKIP() << "PLIMSOLL_TOKENIZERS names no folder of real tokenizers";
  auto tokenizer = load_real_tokenizer(std::string("llama_cpp/ggml-vocab-") + GetParam() + ".gguf");
  ASSERT_TRUE(tokenizer) << tokenizer.error().describe();
  for (const std::string text :
       {"The quick brown fox; 3.14 jumps!", "我喜欢吃火锅!", "한국어 문장 🦙\n\n  end"})
    EXPECT_EQ((*tokenizer)->decode((*tokenizer)->encode(text, {false, false}), false), text);
}

INSTANTIATE_TEST_SUITE_P(Tokens, LlamaCppVocabulary, ::testing::Values("aquila", "baichuan", "gpt-neox"),
                         test_name);

}  // namespace
}  // namespace plimsoll::text
