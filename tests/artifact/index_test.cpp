// SPDX-License-Identifier: Apache-2.0
// Indices of sharded folders: their text, and the text against the shards.
#include <gtest/gtest.h>

#include "artifact/artifact.h"
#include "artifact/index_text.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using testing::MadeFolder;
using testing::safetensors_file;

std::string ids(const Findings& findings) {
  std::string text;
  for (const Finding& finding : findings) text += finding.id + " ";
  return text;
}

TEST(IndexText, ReadsEntriesShardsAndTotal) {
  Findings findings;
  const auto index = read_index_text(
      std::string_view(
          R"({"metadata":{"total_size":12,"x":NaN},"weight_map":{"a":"s1","\u0062":"s2","c":"s1"}})"),
      "i", findings);
  ASSERT_TRUE(index);
  EXPECT_TRUE(findings.empty());
  ASSERT_EQ(index->entries.size(), 3U);
  EXPECT_EQ(index->entries[1].tensor, "b");
  EXPECT_EQ(index->shards, (std::vector<std::string>{"s1", "s2"}));
  EXPECT_EQ(index->entries[2].shard, 0U);
  EXPECT_EQ(index->total_size, Json(12));
}

TEST(IndexText, LastOfEqualKeysCounts) {
  Findings findings;
  auto index =
      read_index_text(std::string_view(R"({"weight_map":{"a":"s1","b":"s1","a":"s2"}})"), "i", findings);
  ASSERT_TRUE(index);
  index->keep_last_of_repeated();
  ASSERT_EQ(index->entries.size(), 2U);
  EXPECT_EQ(index->shards[index->entries[0].shard], "s2");
  EXPECT_EQ(index->num_repeated, 1);
  EXPECT_EQ(index->first_repeated, "a");
}

TEST(IndexText, NamesThatLeadOutAreRefused) {
  for (const char* value : {R"("/etc/hostname")", R"("../x")", R"("a/../../x")", R"("a\\b")", R"("")", "7",
                            "null", R"(["s1"])", R"("..")", R"("a\u0000b")"}) {
    Findings findings;
    const std::string text = "{\"weight_map\":{\"a\":" + std::string(value) + "}}";
    const auto index = read_index_text(std::string_view(text), "i", findings);
    ASSERT_TRUE(index) << value;
    EXPECT_EQ(index->refused_values.size(), 1U) << value;
    EXPECT_TRUE(index->entries.empty());
  }
}

TEST(IndexText, TextsThatAreNone) {
  const std::string deep = "{\"metadata\":" + std::string(1'000'000, '[');
  for (const std::string& text :
       {std::string(), std::string("[]"), std::string("{}"), std::string(R"({"weight_map":[]})"),
        std::string(R"({"weight_map":{"a":"s",}})"), std::string(R"({"weight_map":{"a" "s"}})"),
        std::string(R"({"weight_map":{"a":"s"})"), std::string(R"({"weight_map":{"a":"s"}} x)"), deep,
        std::string("<html>")}) {
    Findings findings;
    EXPECT_FALSE(read_index_text(std::string_view(text), "i", findings)) << text.substr(0, 40);
    ASSERT_EQ(findings.size(), 1U);
    EXPECT_EQ(findings.front().level, FindingLevel::kError);
  }
  Findings findings;
  read_index_text(std::string_view("{\n\"weight_map\": {\n \"a\": x}}"), "i", findings);
  EXPECT_EQ(findings.front().where, "i: byte 24");
  EXPECT_NE(findings.front().message.find("line 3, column 7"), std::string::npos) << findings.front().message;
}

std::string one(const std::string& name) {
  return safetensors_file("{\"" + name + R"(":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}  )", "1234");
}

class Indexed : public ::testing::Test {
 protected:
  std::string open_ids(const std::string& map, const std::string& index = "model.safetensors.index.json") {
    folder_.put("config.json", "{}");
    folder_.put(index, R"({"metadata":{"total_size":8},"weight_map":{)" + map + "}}");
    auto opened = open(folder_.path().string());
    EXPECT_TRUE(opened);
    if (!opened) return {};
    artifact_ = *opened;
    return ids(artifact_->findings());
  }
  MadeFolder folder_;
  std::shared_ptr<const Artifact> artifact_;
};

TEST_F(Indexed, AnyOrderOfTheIndexIsFine) {
  folder_.put("s1.safetensors", one("a"));
  folder_.put("s2.safetensors", one("b"));
  EXPECT_EQ(open_ids(R"("b":"s2.safetensors","a":"s1.safetensors")"), "");
  EXPECT_EQ(artifact_->tensors().size(), 2U);
  EXPECT_EQ(artifact_->index_total_size_bytes(), 8);
  EXPECT_NE(artifact_->find("b"), nullptr);
  EXPECT_EQ(artifact_->find("c"), nullptr);
}

TEST_F(Indexed, IndexOfAnotherName) {
  folder_.put("model.fp16-00001-of-00001.safetensors", one("a"));
  EXPECT_EQ(open_ids(R"("a":"model.fp16-00001-of-00001.safetensors")", "model.safetensors.index.fp16.json"),
            "IDX_TOTAL_SIZE WEIGHTS_NAME ");
  EXPECT_EQ(artifact_->tensors().size(), 1U);
}

TEST_F(Indexed, ADoubledTensorIsTakenWhereTheIndexSays) {
  folder_.put("s1.safetensors", one("a"));
  folder_.put("s2.safetensors", one("a"));
  EXPECT_EQ(open_ids(R"("a":"s2.safetensors","b":"s1.safetensors")"), "IDX_ABSENT_TENSOR IDX_DUP_TENSOR ");
  ASSERT_EQ(artifact_->tensors().size(), 1U);
  EXPECT_EQ(artifact_->files()[static_cast<std::size_t>(artifact_->tensors().front().file)].path,
            "s2.safetensors");
}

TEST_F(Indexed, EveryDisagreementIsTold) {
  folder_.put("s1.safetensors", one("a"));
  folder_.put("s2.safetensors", one("b"));
  EXPECT_EQ(open_ids(R"("a":"s2.safetensors","c":"s1.safetensors")"),
            "IDX_ABSENT_TENSOR IDX_WRONG_SHARD IDX_UNLISTED_TENSOR ");
  EXPECT_EQ(artifact_->tensors().size(), 2U);
}

TEST_F(Indexed, TheLastOfRepeatedKeysIsBelieved) {
  folder_.put("s1.safetensors", one("a"));
  folder_.put("s2.safetensors", one("b"));
  EXPECT_EQ(open_ids(R"("a":"s2.safetensors","b":"s2.safetensors","a":"s1.safetensors")"), "IDX_DUP_KEY ");
}

TEST(Variants, ShardsOfAVariantWithoutIndex) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("model-00001-of-00002.fp16.safetensors", one("a"));
  folder.put("model-00002-of-00002.fp16.safetensors", one("b"));
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  EXPECT_EQ(ids((*artifact)->findings()), "IDX_MISSING ");
  EXPECT_EQ((*artifact)->tensors().size(), 2U);
}

TEST(Variants, TheModelComesBeforeItsAdapter) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("adapter_model.safetensors", one("lora"));
  folder.put("model.fp16.safetensors", one("a"));
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  ASSERT_EQ((*artifact)->tensors().size(), 1U);
  EXPECT_EQ((*artifact)->tensors().front().name, "a");
  EXPECT_EQ(ids((*artifact)->findings()), "WEIGHTS_NAME ADAPTER_PRESENT ");
}

// A save of one file may have an index of that file.
TEST(Variants, AnIndexOfTheSingleFileIsNoSecondSet) {
  const auto told = [](const std::string& shard, bool is_here) {
    const MadeFolder folder;
    folder.put("config.json", "{}");
    folder.put("model.safetensors", one("a"));
    if (is_here) folder.put(shard, one("a"));
    folder.put("model.safetensors.index.json",
               R"({"metadata":{"total_size":4},"weight_map":{"a":")" + shard + "\"}}");
    const auto artifact = open(folder.path().string());
    std::string text;
    if (artifact)
      for (const Finding& finding : (*artifact)->findings())
        text += finding.id + ":" + std::string(to_string(finding.level)) + " ";
    return text;
  };
  EXPECT_EQ(told("model.safetensors", true), "");
  EXPECT_EQ(told("model-00001-of-00001.safetensors", true), "WEIGHTS_AMBIGUOUS:warning ");
  EXPECT_EQ(told("model-00001-of-00001.safetensors", false), "WEIGHTS_AMBIGUOUS:info ");
}

TEST(Variants, FilesInAFolderThatTheIndexNamesAreNoSecondSet) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("w/a.safetensors", one("a"));
  folder.put("model.safetensors.index.json",
             R"({"metadata":{"total_size":4},"weight_map":{"a":"w/a.safetensors"}})");
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  EXPECT_EQ(ids((*artifact)->findings()), "");
}

TEST(Variants, OddNamesAreAllReadAndTold) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("a.safetensors", one("a"));
  folder.put("b.safetensors", one("b"));
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  EXPECT_EQ((*artifact)->tensors().size(), 2U);
  EXPECT_EQ(ids((*artifact)->findings()), "WEIGHTS_NAME ");
  folder.put("model.safetensors", one("c"));
  const auto other = open(folder.path().string());
  ASSERT_TRUE(other);
  EXPECT_EQ((*other)->tensors().size(), 1U);
  EXPECT_EQ(ids((*other)->findings()), "WEIGHTS_EXTRA ");
}

TEST(Variants, AnAdapterIsNoModel) {
  const MadeFolder folder;
  folder.put("adapter_config.json", R"({"peft_type":"LORA","base_model_name_or_path":"org/base"})");
  folder.put("adapter_model.safetensors", one("lora"));
  for (const bool has_config : {false, true}) {
    if (has_config) folder.put("config.json", "{}");
    const auto artifact = open(folder.path().string());
    ASSERT_TRUE(artifact);
    EXPECT_EQ((*artifact)->tensors().size(), 0U);
    ASSERT_EQ(ids((*artifact)->findings()), "ADAPTER_ONLY ");
    const Finding& told = (*artifact)->findings().front();
    EXPECT_EQ(told.kind, FindingKind::kUnsupported);
    EXPECT_NE(told.message.find("(LORA) for org/base"), std::string::npos) << told.message;
  }
}

}  // namespace
}  // namespace plimsoll::artifact
