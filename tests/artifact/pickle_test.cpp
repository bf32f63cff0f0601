// SPDX-License-Identifier: Apache-2.0
// Weights that are pickles: listed from their archives, never opened.
#include <gtest/gtest.h>

#include "artifact/artifact.h"
#include "artifact/pickle_files.h"
#include "artifact/zip_listing.h"
#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using testing::MadeFolder;
using testing::zip_file;

std::string torch_file() {
  return zip_file({{"archive/data.pkl", "\x80\x02."},
                   {"archive/data/0", std::string(64, 'x')},
                   {"archive/data/1", std::string(36, 'y')},
                   {"archive/version", "3\n"}});
}

const Finding* finding_of(const Artifact& artifact, std::string_view id) {
  for (const Finding& finding : artifact.findings())
    if (finding.id == id) return &finding;
  return nullptr;
}

TEST(Zip, ListsMembers) {
  const std::string file = torch_file();
  std::vector<std::pair<std::string, std::int64_t>> members;
  const Status listed =
      for_each_zip_member(std::as_bytes(std::span(file)), "f", [&](const ZipMember& member) {
        members.emplace_back(member.name, member.bytes);
        EXPECT_FALSE(member.is_packed);
      });
  ASSERT_TRUE(listed) << listed.error().describe();
  ASSERT_EQ(members.size(), 4U);
  EXPECT_EQ(members[1], (std::pair<std::string, std::int64_t>("archive/data/0", 64)));
}

TEST(Zip, EveryCutAndDamageEndsWell) {
  const std::string file = torch_file();
  const auto list = [](const std::string& bytes) {
    return for_each_zip_member(std::as_bytes(std::span(bytes)), "f", [](const ZipMember&) {}).has_value();
  };
  for (std::size_t size = 0; size < file.size(); ++size) EXPECT_FALSE(list(file.substr(0, size))) << size;
  std::string damaged = file;
  for (std::size_t at = 0; at < file.size(); ++at)
    for (const char value : {'\0', '\x7f', '\xff'}) {
      damaged[at] = value;
      list(damaged);
      damaged[at] = file[at];
    }
}

// Of a file on a hub only the end is here: it says the same as the whole file.
TEST(Zip, TheEndAloneSaysWhereTheDirectoryIs) {
  using testing::le32;
  using testing::le64;
  const std::string ones(4, '\xff');
  const std::string before(100'000, 'x'), directory(92, 'd');
  const std::string wide = "PK\x06\x06" + le64(44) + le32(0) + le32(0) + le32(0) + le64(2) + le64(2) +
                           le64(directory.size()) + le64(before.size());
  const std::string locator = "PK\x06\x07" + le32(0) + le64(before.size() + directory.size()) + le32(1);
  const std::string end = "PK\x05\x06" + ones + ones + ones + ones + std::string(2, '\0');
  const std::string plain_end = std::string("PK\x05\x06\0\0\0\0\2\0\2\0", 12) +
                                le32(static_cast<std::uint32_t>(directory.size())) +
                                le32(static_cast<std::uint32_t>(before.size())) + std::string(2, '\0');
  const auto from = [](const std::string& file, std::size_t tail) {
    return find_zip_directory(std::as_bytes(std::span(file).last(std::min(tail, file.size()))), file.size());
  };
  for (const std::string& file : {before + directory + wide + locator + end, before + directory + plain_end})
    for (const std::size_t tail : {file.size(), kZipTail, std::size_t{120}}) {
      const auto found = from(file, tail);
      ASSERT_TRUE(found) << tail;
      EXPECT_EQ(found->offset, before.size());
      EXPECT_EQ(found->bytes, directory.size());
      EXPECT_EQ(found->count, 2U);
    }
  EXPECT_EQ(from(before + directory + wide + locator + end, 50)->offset,
            0xFFFFFFFF);  // the wide one is not in it
  EXPECT_FALSE(from(before, kZipTail));
}

TEST(Pickle, OnlyWeightsAreListedNotLoaded) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("pytorch_model.bin", torch_file());
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  const Finding* finding = finding_of(**artifact, "PICKLE_ONLY");
  ASSERT_NE(finding, nullptr);
  EXPECT_EQ(finding->where, "pytorch_model.bin");
  EXPECT_NE(finding->message.find("2 tensor storages with 100 bytes"), std::string::npos) << finding->message;
  EXPECT_EQ(finding->kind, FindingKind::kUnsupported);
}

// A trainer's settings and moments are no weights, beside weights or without.
TEST(Pickle, WhatATrainerLeavesIsNone) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  for (const char* name : {"training_args.bin", "optimizer.pt", "scheduler.pt", "rng_state.pth"})
    folder.put(name, torch_file());
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  for (const char* id : {"PICKLE_ONLY", "PICKLE_PRESENT"})
    EXPECT_EQ(finding_of(**artifact, id), nullptr) << id;
  EXPECT_NE(finding_of(**artifact, "WEIGHTS_ABSENT"), nullptr);
  for (const File& file : (*artifact)->files()) EXPECT_NE(file.role, FileRole::kWeights) << file.path;
}

TEST(Pickle, OneOfAListingIsToldByItsName) {
  const std::vector<std::string_view> none = {"model.safetensors", "optimizer.pt",
                                              "original/consolidated.00.pth"};
  EXPECT_FALSE(pickle_beside(none));
  const std::vector<std::string_view> one = {"model.safetensors", "pytorch_model.bin"};
  ASSERT_TRUE(pickle_beside(one));
  EXPECT_EQ(pickle_beside(one)->id, "PICKLE_PRESENT");
  EXPECT_EQ(pickle_beside(one)->where, "pytorch_model.bin");
}

TEST(Pickle, ShardedSetIsHeldAgainstItsIndex) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("pytorch_model-00001-of-00002.bin", torch_file());
  folder.put(
      "pytorch_model.bin.index.json",
      R"({"metadata":{"total_size":200},"weight_map":{"a":"pytorch_model-00001-of-00002.bin","b":"pytorch_model-00002-of-00002.bin"}})");
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  ASSERT_NE(finding_of(**artifact, "PICKLE_ONLY"), nullptr);
  const Finding* absent = finding_of(**artifact, "IDX_ABSENT_SHARD");
  ASSERT_NE(absent, nullptr);
  EXPECT_NE(absent->message.find("pytorch_model-00002-of-00002.bin"), std::string::npos);
  EXPECT_EQ((*artifact)->index_total_size_bytes(), 200);
}

TEST(Pickle, ACutArchiveIsDamaged) {
  const MadeFolder folder;
  folder.put("config.json", "{}");
  folder.put("model.pt", torch_file().substr(0, 200));
  const auto artifact = open(folder.path().string());
  ASSERT_TRUE(artifact);
  ASSERT_NE(finding_of(**artifact, "PICKLE_DAMAGED"), nullptr);
  EXPECT_NE(finding_of(**artifact, "PICKLE_ONLY"), nullptr);
}

}  // namespace
}  // namespace plimsoll::artifact
