// SPDX-License-Identifier: Apache-2.0
// Small tokenizers with many pipelines against ids of the reference library; the real vocabularies have their
// own file.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <map>

#include "tests/testing/golden.h"
#include "tests/text/reference_rows.h"
#include "text/tokenizer/gguf_tokenizer.h"
#include "text/tokenizer/tokenizer_json.h"

namespace plimsoll::text {
namespace {

Json tiny(const std::string& name) {
  auto json = read_json_file(testing::golden_path("tokenizers_tiny/" + name + "/tokenizer.json"));
  EXPECT_TRUE(json) << name;
  return json ? *json : Json();
}

std::shared_ptr<const Tokenizer> load(const Json& json) {
  auto parts = read_tokenizer_json(dump(json));
  EXPECT_TRUE(parts) << (parts ? "" : parts.error().describe());
  return parts ? make_tokenizer(std::move(*parts)) : nullptr;
}

// "/model/ignore_merges" and the like: one or two levels.
void set_at(Json& json, const std::string& pointer, const Json& value) {
  const std::size_t second = pointer.find('/', 1);
  if (second == std::string::npos) {
    json.set(pointer.substr(1), value);
    return;
  }
  Json inner = json[pointer.substr(1, second - 1)];
  inner.set(pointer.substr(second + 1), value);
  json.set(pointer.substr(1, second - 1), std::move(inner));
}

// The rows of one pipeline: a small tokenizer with some of its members set otherwise.
struct Variant {
  std::string name;
  Json head;
  std::vector<Json> rows;
};

std::vector<Variant> variants() {
  std::vector<Variant> all;
  for (Json& row : read_rows(testing::data_path("text/tokens.jsonl"))) {
    if (*row["kind"].as_string() == "variant") {
      std::string name = *row["base"].as_string() + "_" + *row["name"].as_string();
      std::replace_if(
          name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
      all.push_back({name, row, {}});
    } else if (!all.empty()) {
      all.back().rows.push_back(std::move(row));
    }
  }
  return all;
}

class TokenizerPipeline : public ::testing::TestWithParam<Variant> {};

TEST_P(TokenizerPipeline, GivesTheReferencesIds) {
  const Variant& variant = GetParam();
  Json json = tiny(*variant.head["base"].as_string());
  for (const auto& [pointer, value] : variant.head["set"].members()) set_at(json, pointer, value);
  const auto tokenizer = load(json);
  ASSERT_TRUE(tokenizer);
  RowCounts counts;
  for (const Json& row : variant.rows)
    check_row(tokenizer, row, to_ids(variant.head["empty_with_special"]), counts);
  EXPECT_GT(counts.encoded, 20);
}

INSTANTIATE_TEST_SUITE_P(Tokens, TokenizerPipeline, ::testing::ValuesIn(variants()),
                         [](const auto& variant) { return variant.param.name; });

TEST(TokenizerReference, ThereAreAllPipelines) {
  EXPECT_EQ(variants().size(), 12u);
}

// GGUF metadata as a converter writes it for this tokenizer.
Json as_gguf(const Json& json, const char* pre) {
  std::map<std::int64_t, std::string> by_id;
  for (const auto& [text, id] : json["model"]["vocab"].members()) by_id[*id.as_integer()] = text;
  std::map<std::int64_t, bool> special;
  for (const Json& token : json["added_tokens"].items()) {
    by_id[*token["id"].as_integer()] = *token["content"].as_string();
    special[*token["id"].as_integer()] = true;
  }
  Json tokens = Json::array(), types = Json::array(), merges = Json::array();
  for (const auto& [id, text] : by_id) {
    tokens.push_back(text);
    types.push_back(special.contains(id) ? 3 : 1);
  }
  for (const Json& pair : json["model"]["merges"].items())
    merges.push_back(*pair.items()[0].as_string() + " " + *pair.items()[1].as_string());
  Json metadata = Json::object({{"tokenizer.ggml.model", "gpt2"}, {"tokenizer.ggml.pre", pre}});
  metadata.set("tokenizer.ggml.tokens", std::move(tokens));
  metadata.set("tokenizer.ggml.token_type", std::move(types));
  metadata.set("tokenizer.ggml.merges", std::move(merges));
  metadata.set("tokenizer.ggml.bos_token_id", 1);
  metadata.set("tokenizer.ggml.eos_token_id", 2);
  return metadata;
}

TEST(TokenizerReference, GgufMetadataGivesTheSameIds) {
  Json metadata = as_gguf(tiny("bpe_llama3"), "dbrx");  // Llama 3's expression without ignore_merges
  auto parts = read_gguf_tokenizer(metadata);
  ASSERT_TRUE(parts) << parts.error().describe();
  const auto tokenizer = make_tokenizer(std::move(*parts));
  EXPECT_EQ(tokenizer->bos(), 1);
  EXPECT_EQ(tokenizer->stop_ids(), std::vector<TokenId>{2});
  RowCounts counts;
  bool is_plain = false;
  for (const Json& row : read_rows(testing::data_path("text/tokens.jsonl"))) {
    if (*row["kind"].as_string() == "variant")
      is_plain = *row["name"].as_string() == "plain" && *row["base"].as_string() == "bpe_llama3";
    if (is_plain) check_row(tokenizer, row, {}, counts);
  }
  EXPECT_GT(counts.encoded, 100);
}

TEST(TokenizerReference, GgufAddsBosWhenItSaysSo) {
  Json metadata = as_gguf(tiny("bpe_llama3"), "gpt-2");
  auto without = read_gguf_tokenizer(metadata);
  ASSERT_TRUE(without);
  EXPECT_TRUE(make_tokenizer(std::move(*without))->encode("").empty());
  metadata.set("tokenizer.ggml.add_bos_token", true);
  auto with = read_gguf_tokenizer(metadata);
  ASSERT_TRUE(with);
  EXPECT_EQ(make_tokenizer(std::move(*with))->encode(""), std::vector<TokenId>{1});
}

}  // namespace
}  // namespace plimsoll::text
