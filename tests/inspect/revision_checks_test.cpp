// SPDX-License-Identifier: Apache-2.0
#include "inspect/revision_checks.h"

#include <gtest/gtest.h>

#include "tests/inspect/model_folder.h"

namespace plimsoll::inspect {
namespace {

const std::string kCommit = "0123456789abcdef0123456789abcdef01234567";
const std::string kOther = "fedcba9876543210fedcba9876543210fedcba98";

ModelFolder& with_config(ModelFolder& folder) {
  return folder.write("config.json", kSmallLlama);
}
void record(ModelFolder& folder, const std::string& file, const std::string& commit) {
  folder.write(".cache/huggingface/download/" + file + ".metadata", commit + "\nabcdef\n1700000000.5\n");
}

TEST(RevisionChecks, ADownloadRemembersItsCommit) {
  ModelFolder folder;
  with_config(folder);
  record(folder, "config.json", kCommit);
  const Report report = folder.inspected();
  EXPECT_EQ(report.commit, kCommit);
  EXPECT_EQ(to_json(report)["model"]["commit"], Json(kCommit));
}

TEST(RevisionChecks, FilesOfTwoCommits) {
  ModelFolder folder;
  with_config(folder).write("generation_config.json", "{}");
  record(folder, "config.json", kCommit);
  record(folder, "generation_config.json", kOther);
  const Report report = folder.inspected();
  const auto* finding = finding_of(report, "REVISION_MIXED");
  ASSERT_NE(finding, nullptr);
  EXPECT_NE(finding->message.find(kCommit), std::string::npos);
  EXPECT_NE(finding->message.find(kOther), std::string::npos);
  EXPECT_TRUE(report.commit.empty());
}

TEST(RevisionChecks, AClone) {
  ModelFolder loose;
  with_config(loose)
      .write(".git/HEAD", "ref: refs/heads/main\n")
      .write(".git/refs/heads/main", kCommit + "\n");
  EXPECT_EQ(loose.inspected().commit, kCommit);
  ModelFolder packed;
  with_config(packed).write(".git/HEAD", "ref: refs/heads/main\n");
  packed.write(".git/packed-refs", "# pack-refs with: peeled\n" + kOther + " refs/heads/main\n");
  EXPECT_EQ(packed.inspected().commit, kOther);
  ModelFolder detached;
  with_config(detached).write(".git/HEAD", kCommit);
  EXPECT_EQ(detached.inspected().commit, kCommit);
  ModelFolder hostile;
  with_config(hostile).write(".git/HEAD", "ref: ../../../etc/passwd\n");
  EXPECT_TRUE(hostile.inspected().commit.empty());
}

TEST(RevisionChecks, ABareFolderHasNoFinding) {
  ModelFolder folder;
  with_config(folder);
  const Report report = folder.inspected();
  EXPECT_EQ(finding_of(report, "REVISION_UNKNOWN"), nullptr);
  EXPECT_TRUE(to_json(report)["model"]["commit"].is_null());
}

}  // namespace
}  // namespace plimsoll::inspect
