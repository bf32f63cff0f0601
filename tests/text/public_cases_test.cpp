// SPDX-License-Identifier: Apache-2.0
// Reports from public issue threads of other engines, one test name each: the input, and what the reference
// makes of it. Rows that are templates alone are chat_cases_test.cpp's.
#include <gtest/gtest.h>

#include <cctype>

#include "base/hash.h"
#include "tests/testing/golden.h"
#include "tests/text/real_tokenizers.h"
#include "tests/text/reference_rows.h"

namespace plimsoll::text {
namespace {

const std::vector<Json>& public_cases() {
  static const auto rows = [] {
    auto all = read_rows(testing::data_path("golden/tokens/public_cases.jsonl"));
    std::erase_if(all, [](const Json& row) { return row["kind"] == Json("template"); });
    return all;
  }();
  return rows;
}

// The first five characters of the row's prefix, then the next five again and again, `length` characters in
// all.
std::string long_text(const Json& row) {
  std::vector<std::string> characters;
  for (const char byte : *row["prefix"].as_string()) {
    if ((static_cast<unsigned char>(byte) & 0xC0) != 0x80) characters.emplace_back();
    characters.back() += byte;
  }
  std::string text;
  const std::int64_t length = *row["length"].as_integer();
  for (std::int64_t i = 0; i < length; ++i)
    text += characters[static_cast<std::size_t>(i < 5 ? i : 5 + (i - 5) % 5)];
  return text;
}

void check_long(const Tokenizer& tokenizer, const Json& row) {
  const std::string text = long_text(row);
  const std::vector<TokenId> ids = tokenizer.encode(text, {false, true});
  EXPECT_EQ(static_cast<std::int64_t>(ids.size()), *row["count"].as_integer());
  std::string listed;  // as Python's json.dumps writes a list of integers
  for (const TokenId id : ids) listed += (listed.empty() ? "[" : ", ") + std::to_string(id);
  listed += "]";
  EXPECT_EQ(sha256_hex(std::as_bytes(std::span(listed))), *row["sha256_ids_json"].as_string());
  EXPECT_TRUE(tokenizer.decode(ids, false) == text);
}

void check_stream(const std::shared_ptr<const Tokenizer>& tokenizer, const Json& row) {
  StreamDecoder decoder(tokenizer, true);
  const std::vector<TokenId> ids = to_ids(row["ids"]);
  ASSERT_EQ(ids.size(), row["chunks"].size());
  std::string all;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    const auto chunk = decoder.push(ids[i]);
    EXPECT_EQ(Json(chunk), row["chunks"].items()[i]) << "at " << i;
    if (chunk) all += *chunk;
  }
  EXPECT_EQ(all + decoder.flush(), *row["full"].as_string());
}

void check_encode(const Tokenizer& tokenizer, const Json& row) {
  const std::string& text = *row["text"].as_string();
  const bool adds_special = row["add_special_tokens"].as_bool().value_or(false);
  const std::vector<TokenId> ids = tokenizer.encode(text, {adds_special, true});
  EXPECT_EQ(ids, to_ids(row["ids"]));
  EXPECT_EQ(tokenizer.decode(ids, false), row.contains("decoded") ? *row["decoded"].as_string() : text);
  EXPECT_EQ(static_cast<std::int64_t>(ids.size()),
            row["count"].as_integer().value_or(static_cast<std::int64_t>(row["ids"].size())));
}

// A rendered prompt holds its BOS already; who asks for special tokens once more gets two, as in the
// reference.
void check_double_bos(const Tokenizer& tokenizer, const Json& row) {
  check_encode(tokenizer, row);
  const std::vector<TokenId> wrong = to_ids(row["wrong_ids_prefix"]);
  std::vector<TokenId> twice = tokenizer.encode(*row["text"].as_string());
  ASSERT_GE(twice.size(), wrong.size());
  twice.resize(wrong.size());
  EXPECT_EQ(twice, wrong);
}

class PublicCase : public ::testing::TestWithParam<std::size_t> {};

TEST_P(PublicCase, IsAsTheReferenceHasIt) {
  if (!have_real_tokenizers()) GTEST_SKIP() << "PLIMSOLL_TOKENIZERS names no folder of real tokenizers";
  const Json& row = public_cases()[GetParam()];
  SCOPED_TRACE(row.contains("symptom") ? *row["symptom"].as_string() : "");
  auto tokenizer = load_family(*row["family"].as_string());
  ASSERT_TRUE(tokenizer) << tokenizer.error().describe();
  const std::string& kind = *row["kind"].as_string();
  if (kind == "encode" || kind == "template_encode")
    check_encode(**tokenizer, row);
  else if (kind == "encode_long")
    check_long(**tokenizer, row);
  else if (kind == "stream")
    check_stream(*tokenizer, row);
  else if (kind == "double_bos")
    check_double_bos(**tokenizer, row);
  else
    FAIL() << "no check for rows of kind " << kind;
}

// "12_ggml_org_llama_cpp_2721": the row's number and its issue.
std::string case_name(const ::testing::TestParamInfo<std::size_t>& test) {
  std::string name = std::to_string(test.param) + "_" + *public_cases()[test.param]["ref"].as_string();
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return name;
}

INSTANTIATE_TEST_SUITE_P(Tokens, PublicCase, ::testing::Range(std::size_t{0}, public_cases().size()),
                         case_name);

}  // namespace
}  // namespace plimsoll::text
