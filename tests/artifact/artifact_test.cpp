// SPDX-License-Identifier: Apache-2.0
// Opening what users point at: folders, shards, GGUF parts, lone files, and what is none of these.
#include "artifact/artifact.h"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "artifact/folder.h"
#include "artifact/given_path.h"
#include "artifact/json_place.h"
#include "artifact/shard_name.h"
#include "tests/testing/golden.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;
using testing::golden_path;

class Folder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "plimsoll_artifact_XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }
  void put(const std::string& name, const std::string& text) const {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
  }
  Result<std::shared_ptr<const Artifact>> open_it() const { return open(folder_.string()); }

  fs::path folder_;
};

const Finding* finding_of(const Artifact& artifact, std::string_view id) {
  for (const Finding& finding : artifact.findings())
    if (finding.id == id) return &finding;
  return nullptr;
}

std::string safetensors(const std::string& header, const std::string& data = "") {
  std::string length(8, '\0');
  const auto size = static_cast<std::uint64_t>(header.size());
  std::memcpy(length.data(), &size, 8);
  return length + header + data;
}

// Looking each of them up again would take hours.
TEST_F(Folder, ThousandsOfRepeatedKeysAreToldByTheFirst) {
  std::string config = R"({"model_type":"llama")";
  for (int i = 0; i < 60'000; ++i) {
    const std::string key = ",\"" + std::to_string(i) + "\":";
    config += key + "0" + key + "1,\"a\":2";
  }
  put("config.json", config + "}");
  const auto artifact = open_it();
  ASSERT_TRUE(artifact) << artifact.error().describe();
  std::size_t told = 0;
  for (const Finding& finding : (*artifact)->findings()) told += finding.id == "CFG_DUP_KEY";
  EXPECT_EQ(told, kMaxDuplicates);
  const Finding* first = finding_of(**artifact, "CFG_DUP_KEY");
  EXPECT_EQ(first->where, "config.json: /0");
  EXPECT_NE(first->message.find("the last, 1"), std::string::npos) << first->message;
}

TEST(Open, ShardedFolderReadsAsOneModel) {
  const auto artifact = open(golden_path("models/llama_sharded"));
  ASSERT_TRUE(artifact) << artifact.error().describe();
  EXPECT_EQ((*artifact)->form(), Form::kSafetensors);
  // expected_logits.safetensors lies beside the shards of some copies.
  for (const Finding& finding : (*artifact)->findings()) EXPECT_EQ(finding.id, "WEIGHTS_EXTRA");
  const Tensor* tensor = (*artifact)->find("model.norm.weight");
  ASSERT_NE(tensor, nullptr);
  const auto data = (*artifact)->data(*tensor);
  ASSERT_TRUE(data) << data.error().describe();
  EXPECT_EQ(static_cast<std::int64_t>(data->size()), tensor->elements() * 2);
  EXPECT_EQ((*artifact)->find("model.norm"), nullptr);
}

TEST(Open, AnyPartNamesASplitGguf) {
  for (const char* part : {"tiny-00001-of-00003.gguf", "tiny-00003-of-00003.gguf"}) {
    const auto artifact = open(golden_path(std::string("artifacts/gguf_split_ok/") + part));
    ASSERT_TRUE(artifact) << artifact.error().describe();
    EXPECT_EQ((*artifact)->tensors().size(), 12U);
    EXPECT_EQ((*artifact)->files().size(), 3U);
    EXPECT_TRUE((*artifact)->findings().empty());
    for (const Tensor& tensor : (*artifact)->tensors()) EXPECT_TRUE((*artifact)->data(tensor)) << tensor.name;
  }
}

TEST(Open, GgufMetadataIsAJsonObject) {
  const auto artifact = open(golden_path("gguf/llama_plain-bf16.gguf"));
  ASSERT_TRUE(artifact) << artifact.error().describe();
  const Json& config = (*artifact)->config();
  EXPECT_EQ(config["general.architecture"], Json("llama"));
  EXPECT_EQ(config["llama.block_count"], Json(4));
  EXPECT_EQ(config["tokenizer.ggml.tokens"].size(), 512U);
  const Tensor* embedding = (*artifact)->find("token_embd.weight");
  ASSERT_NE(embedding, nullptr);
  EXPECT_EQ(embedding->shape, (Shape{512, 64}));  // rows first, as safetensors has them
}

TEST(Open, RefusesWhatIsNoModel) {
  for (const char* model : {"/nowhere/at/all", "no-name", "/dev/null"}) {
    const auto artifact = open(model);
    ASSERT_FALSE(artifact) << model;
    EXPECT_EQ(artifact.error().code, ErrorCode::kMalformed);
    EXPECT_EQ(artifact.error().where, model);
    EXPECT_FALSE(artifact.error().fix.empty());
  }
}

TEST_F(Folder, EmptyFolderIsNoModel) {
  EXPECT_FALSE(open_it());
  put("notes.txt", "nothing");
  EXPECT_FALSE(open_it());
}

TEST_F(Folder, OnlyAConfigSaysThatWeightsAreAbsent) {
  put("config.json", R"({"model_type":"llama"})");
  const auto artifact = open_it();
  ASSERT_TRUE(artifact) << artifact.error().describe();
  EXPECT_EQ((*artifact)->form(), Form::kConfigOnly);
  ASSERT_NE(finding_of(**artifact, "WEIGHTS_ABSENT"), nullptr);
  EXPECT_EQ(worst_level((*artifact)->findings()), FindingLevel::kInfo);
}

TEST_F(Folder, LoneFilesOfAnyName) {
  put("org--name_config.json", R"({"model_type":"llama"})");
  put("tokenizer.json", R"({"model":{"type":"BPE","vocab":{"a":0}}})");
  put("list.json", "[1]");
  const auto config = open((folder_ / "org--name_config.json").string());
  ASSERT_TRUE(config);
  EXPECT_EQ((*config)->form(), Form::kConfigOnly);
  EXPECT_TRUE((*config)->findings().empty());
  EXPECT_EQ((*config)->config()["model_type"], Json("llama"));
  const auto tokenizer = open((folder_ / "tokenizer.json").string());
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ((*tokenizer)->form(), Form::kTokenizerOnly);
  EXPECT_FALSE(open((folder_ / "list.json").string()));
}

TEST_F(Folder, NamesNeverLeadOut) {
  put("config.json", "{}");
  put("inner/a.json", R"({"a":1})");
  const auto artifact = open_it();
  ASSERT_TRUE(artifact);
  EXPECT_EQ((*artifact)->json_file("inner/a.json")["a"], Json(1));
  for (const char* name : {"../secret", "/etc/hostname", "inner/../../x", "..", ""}) {
    EXPECT_FALSE(is_inside(name)) << name;
    EXPECT_FALSE((*artifact)->text_file(name)) << name;
    EXPECT_TRUE((*artifact)->json_file(name).is_null()) << name;
  }
  EXPECT_TRUE(is_inside("a..b/c"));
}

TEST_F(Folder, IndexWithParentPathIsRefused) {
  put("config.json", "{}");
  put("model.safetensors.index.json",
      R"({"metadata":{"total_size":4},"weight_map":{"t":"../other.safetensors"}})");
  const auto artifact = open_it();
  ASSERT_TRUE(artifact);
  ASSERT_NE(finding_of(**artifact, "IDX_PATH"), nullptr);
  EXPECT_TRUE((*artifact)->tensors().empty());
}

TEST_F(Folder, AbsentShardIsNamed) {
  put("config.json", "{}");
  put("model-00001-of-00002.safetensors",
      safetensors(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "1234"));
  put("model.safetensors.index.json",
      R"({"metadata":{"total_size":8},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}})");
  const auto artifact = open_it();
  ASSERT_TRUE(artifact);
  const Finding* finding = finding_of(**artifact, "IDX_ABSENT_SHARD");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find("model-00002-of-00002.safetensors"), std::string::npos);
  EXPECT_EQ((*artifact)->tensors().size(), 1U);
  EXPECT_EQ(finding_of(**artifact, "IDX_ABSENT_TENSOR"), nullptr);  // its shard is the fault
}

TEST_F(Folder, ShardsByNameWithAGapAreAnError) {
  put("config.json", "{}");
  put("model-00001-of-00002.safetensors", safetensors("{}"));
  const auto artifact = open_it();
  ASSERT_TRUE(artifact);
  const Finding* finding = finding_of(**artifact, "IDX_MISSING");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kError);
}

TEST_F(Folder, DataBeyondTheFileIsAnErrorNotACrash) {
  put("config.json", "{}");
  put("model.safetensors",
      safetensors(R"({"a":{"dtype":"F32","shape":[1000],"data_offsets":[0,4000]}})", "1234"));
  const auto artifact = open_it();
  ASSERT_TRUE(artifact);
  ASSERT_EQ((*artifact)->tensors().size(), 1U);
  const auto data = (*artifact)->data((*artifact)->tensors().front());
  ASSERT_FALSE(data);
  EXPECT_EQ(data.error().code, ErrorCode::kMalformed);
  const auto error = first_error((*artifact)->findings());
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code, ErrorCode::kMalformed);
}

TEST_F(Folder, LinkOutOfTheFolderIsReadAndTold) {
  put("config.json", "{}");
  const fs::path target = fs::absolute(golden_path("models/llama_tied/model.safetensors"));
  fs::create_symlink(target, folder_ / "model.safetensors");
  const auto artifact = open_it();
  ASSERT_TRUE(artifact);
  EXPECT_FALSE((*artifact)->tensors().empty());
  const Finding* finding = finding_of(**artifact, "LINK_OUTSIDE");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->level, FindingLevel::kInfo);
}

TEST_F(Folder, HugeHeaderLengthIsRefusedBeforeReading) {
  put("config.json", "{}");
  std::string file(64, ' ');
  const std::uint64_t length = std::uint64_t{1} << 62;
  std::memcpy(file.data(), &length, 8);
  put("model.safetensors", file);
  const auto artifact = open_it();
  ASSERT_TRUE(artifact);
  EXPECT_NE(finding_of(**artifact, "ST_HEADER_LEN"), nullptr);
}

TEST(ShardName, PartsOfSplitNames) {
  const auto shard = shard_name("model-00002-of-00010.safetensors");
  ASSERT_TRUE(shard);
  EXPECT_EQ(shard->prefix, "model");
  EXPECT_EQ(shard->number, 2);
  EXPECT_EQ(shard->count, 10);
  EXPECT_EQ(shard->of_number(10), "model-00010-of-00010.safetensors");
  for (const char* name : {"model.safetensors", "model-00003-of-00002.safetensors", "-of-.gguf",
                           "a-00000-of-00002.gguf", "a-1-of-99999999.gguf"})
    EXPECT_FALSE(shard_name(name)) << name;
}

TEST_F(Folder, ALoneFileIsGivenByItsOwnPath) {
  put("config.json", R"({"model_type":"llama"})");
  const auto folder = open_it();
  ASSERT_TRUE(folder);
  EXPECT_FALSE(is_lone_file(**folder));
  const auto lone = open((folder_ / "." / "config.json").string());
  ASSERT_TRUE(lone);
  EXPECT_TRUE(is_lone_file(**lone));
  // A folder that is called as its file is.
  fs::create_directories(folder_ / "tokenizer.json");
  put("tokenizer.json/tokenizer.json", R"({"model":{"type":"BPE","vocab":{},"merges":[]}})");
  const auto alike = open((folder_ / "tokenizer.json").string());
  ASSERT_TRUE(alike);
  EXPECT_FALSE(is_lone_file(**alike));
}

TEST(Snapshot, IsNamedByItsRepository) {
  EXPECT_EQ(repository_of_snapshot("/c/models--org--some-name/snapshots/abc"), "org/some-name");
  EXPECT_EQ(repository_of_snapshot("/c/models--org--some-name/snapshots/abc/"), "org/some-name");
  EXPECT_EQ(repository_of_snapshot("c/models--gpt2/snapshots/abc"), "gpt2");
  EXPECT_EQ(repository_of_snapshot("c/mine/snapshots/abc"), "mine");
  EXPECT_EQ(repository_of_snapshot("c/models--org--name/abc"), std::nullopt);
}

TEST(JsonPlace, FindsTheFault) {
  const auto place = json_fault("{\n \"a\": 1, // no\n}");
  ASSERT_TRUE(place);
  EXPECT_EQ(place->line, 2U);
  EXPECT_EQ(place->column, 10U);
  EXPECT_EQ(json_fault("[1,]")->offset, 3U);
  EXPECT_EQ(json_fault("{\"a\":[1,2}")->offset, 9U);
  EXPECT_EQ(json_fault("{\"a\"")->offset, 4U);
  EXPECT_FALSE(json_fault(" {\"a\":[1,-2.5e3,true,null,\"x\\\"y\"],\"b\":{}} "));
}

}  // namespace
}  // namespace plimsoll::artifact
