// SPDX-License-Identifier: Apache-2.0
// Folders that are not what their names promise: pipes and folders in the place of files, weights without
// tensors, texts that would take a tree of gigabytes. Nothing may be passed over in silence, hang or crash.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "artifact/artifact.h"
#include "artifact/content.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

namespace fs = std::filesystem;
using testing::MadeFolder;
using testing::safetensors_file;

constexpr const char* kConfig = R"({"model_type":"llama"})";

const Finding* finding_of(const Findings& findings, std::string_view id) {
  const auto found =
      std::find_if(findings.begin(), findings.end(), [&](const Finding& f) { return f.id == id; });
  return found == findings.end() ? nullptr : &*found;
}

Findings opened(const MadeFolder& folder) {
  const auto artifact = open(folder.path().string());
  EXPECT_TRUE(artifact) << artifact.error().describe();
  return artifact ? (*artifact)->findings() : Findings{};
}

// The system refuses root nothing: another user's eyes for as long as this lives.
class AsNobody {
 public:
  AsNobody() {
    if (::geteuid() == 0) was_root_ = ::seteuid(65'534) == 0;
  }
  ~AsNobody() {
    if (was_root_ && ::seteuid(0) != 0) std::abort();
  }
  AsNobody(const AsNobody&) = delete;
  AsNobody& operator=(const AsNobody&) = delete;

 private:
  bool was_root_ = false;
};

TEST(HostileFolder, WhatMayNotBeReadIsTold) {
  const MadeFolder folder;
  folder.put("config.json", kConfig);
  folder.put("sub/x", "y");
  ASSERT_EQ(::chmod(folder.path().c_str(), 0755), 0);
  const std::string sub = (folder.path() / "sub").string();
  ASSERT_EQ(::chmod(sub.c_str(), 0), 0);
  {
    const AsNobody nobody;
    const Findings findings = opened(folder);
    const Finding* told = finding_of(findings, "FILE_UNREADABLE");
    ASSERT_NE(told, nullptr);
    EXPECT_EQ(told->where, "sub");
    EXPECT_EQ(told->level, FindingLevel::kInfo);
  }
  for (const mode_t mode : {0711, 0}) {  // its names cannot be read
    ASSERT_EQ(::chmod(folder.path().c_str(), mode), 0);
    const AsNobody nobody;
    const auto artifact = open(folder.path().string());
    ASSERT_FALSE(artifact) << mode;
    EXPECT_EQ(artifact.error().code, ErrorCode::kMalformed);
    EXPECT_NE(artifact.error().message.find("Permission denied"), std::string::npos)
        << artifact.error().message;
  }
  ASSERT_EQ(::chmod(folder.path().c_str(), 0744), 0);  // names, but not what they stand for
  {
    const AsNobody nobody;
    const Findings findings = opened(folder);
    const auto told = std::find_if(findings.begin(), findings.end(),
                                   [](const Finding& f) { return f.where == "config.json"; });
    ASSERT_NE(told, findings.end());
    EXPECT_EQ(told->id, "FILE_UNREADABLE");
    EXPECT_EQ(told->level, FindingLevel::kError);
    EXPECT_NE(told->message.find("Permission denied"), std::string::npos);
  }
  ::chmod(folder.path().c_str(), 0755);
  ::chmod(sub.c_str(), 0755);
}

TEST(HostileFolder, WhatIsNoFileUnderAFilesNameIsTold) {
  const auto make_folder = [](const std::string& path) { fs::create_directory(path); };
  const auto make_pipe = [](const std::string& path) { ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0); };
  const auto make_device = [](const std::string& path) { fs::create_symlink("/dev/zero", path); };
  const std::vector<std::pair<std::string, std::function<void(const std::string&)>>> kinds = {
      {"a folder", make_folder}, {"a named pipe", make_pipe}, {"a device", make_device}};
  for (const auto& [kind, make] : kinds)
    for (const std::string name : {"model.safetensors", "tokenizer.json", "generation_config.json"}) {
      const MadeFolder folder;
      folder.put("config.json", kConfig);
      make((folder.path() / name).string());
      const Findings findings = opened(folder);
      const Finding* told = finding_of(findings, "FILE_UNREADABLE");
      ASSERT_NE(told, nullptr) << name << " " << kind;
      EXPECT_EQ(told->where, name);
      EXPECT_EQ(told->level, FindingLevel::kError);
      EXPECT_EQ(told->kind, FindingKind::kMalformed);
      EXPECT_NE(told->message.find(kind), std::string::npos) << told->message;
      EXPECT_EQ(finding_of(findings, "WEIGHTS_ABSENT") == nullptr, name == "model.safetensors");
    }
  const MadeFolder folder;  // folders of components have such names
  folder.put("config.json", kConfig);
  folder.put("tokenizer/x.txt", "");
  EXPECT_EQ(finding_of(opened(folder), "FILE_UNREADABLE"), nullptr);
}

TEST(HostileFolder, AConfigThatIsAPipeIsNotAbsent) {
  const MadeFolder folder;
  folder.put("model.safetensors",
             safetensors_file(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
  ASSERT_EQ(::mkfifo((folder.path() / "config.json").c_str(), 0600), 0);
  const Findings findings = opened(folder);
  EXPECT_NE(finding_of(findings, "FILE_UNREADABLE"), nullptr);
  EXPECT_EQ(finding_of(findings, "CFG_MISSING"), nullptr);
}

TEST(HostileFolder, WeightsWithoutTensorsAreAFault) {
  const MadeFolder folder;
  folder.put("config.json", kConfig);
  folder.put("model.safetensors", safetensors_file("{}", ""));
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  EXPECT_NE(finding_of((*artifact)->findings(), "WEIGHTS_EMPTY"), nullptr);
  EXPECT_TRUE((*artifact)->tensors().empty());
  EXPECT_EQ((*artifact)->weights_files().size(), 1U);
  const MadeFolder sharded;
  sharded.put("config.json", kConfig);
  sharded.put("model.safetensors.index.json", R"({"metadata":{},"weight_map":{}})");
  sharded.put("model-00001-of-00001.safetensors",
              safetensors_file(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
  const Findings findings = opened(sharded);
  EXPECT_TRUE(first_error(findings)) << to_json(findings).size();
}

TEST(HostileFolder, ACheckpointThatIsNoneIsTold) {
  for (const char* content : {"", "x", "PK", "neither zip nor pickle"}) {
    const MadeFolder folder;
    folder.put("config.json", kConfig);
    folder.put("pytorch_model.bin", content);
    const Findings findings = opened(folder);
    EXPECT_NE(finding_of(findings, "PICKLE_DAMAGED"), nullptr) << content;
    EXPECT_EQ(finding_of(findings, "WEIGHTS_ABSENT"), nullptr) << content;
  }
  const MadeFolder folder;
  folder.put("config.json", kConfig);
  folder.put("training_args.bin", "anything");  // no name of weights
  EXPECT_NE(finding_of(opened(folder), "WEIGHTS_ABSENT"), nullptr);
}

TEST(HostileFolder, AnIndexBesideTheSingleFileIsReadToo) {
  const MadeFolder folder;
  folder.put("config.json", kConfig);
  folder.put("model.safetensors",
             safetensors_file(R"({"t":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", "abcd"));
  folder.put("model.safetensors.index.json", "{broken");
  EXPECT_NE(finding_of(opened(folder), "IDX_JSON"), nullptr);
}

TEST(HostileFolder, TextsOfManyValuesTakeNoTree) {
  std::string many = R"({"a":[)";
  for (int i = 0; i < 600'000; ++i) many += "[],";
  many += "1]}";
  const MadeFolder folder;
  folder.put("config.json", many);
  folder.put("tokenizer_config.json", many);
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  ASSERT_NE(finding_of((*artifact)->findings(), "CFG_JSON"), nullptr);
  EXPECT_TRUE((*artifact)->json_file("tokenizer_config.json").is_null());
  const auto error = (*artifact)->json_file_error("tokenizer_config.json");
  ASSERT_TRUE(error);
  EXPECT_NE(error->message.find("values"), std::string::npos) << error->message;
  EXPECT_TRUE(error->where.starts_with("tokenizer_config.json")) << error->where;
  EXPECT_FALSE((*artifact)->json_file_error("absent.json"));
  folder.put("lone.json", many);
  EXPECT_FALSE(open((folder.path() / "lone.json").string()));
}

TEST(HostileFolder, ALoneFileIsATokenizerByItsKeys) {
  const auto is_one = [](std::string_view text) { return holds_tokenizer(std::as_bytes(std::span(text))); };
  EXPECT_TRUE(is_one(R"({"version":"1.0","model":{"type":"BPE","vocab":{"a":0}}})"));
  EXPECT_TRUE(is_one(R"( { "model" : { "vocab" : [["a", 0.0]] } })"));
  EXPECT_TRUE(is_one("\xEF\xBB\xBF{\"config\":{},\"vocab\":[]}"));
  EXPECT_FALSE(is_one(R"({"model":{"vocab":null}})"));
  EXPECT_FALSE(is_one(R"({"vocab":[]})"));
  EXPECT_FALSE(is_one(R"({"model":"llama"})"));
  EXPECT_FALSE(is_one(R"({"a":{"model":{"vocab":{}}}})"));
  for (const char* broken : {"", "{", "[]", R"({"model":{"vocab":)", R"({"model")"})
    EXPECT_FALSE(is_one(broken));
}

}  // namespace
}  // namespace plimsoll::artifact
