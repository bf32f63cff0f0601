// SPDX-License-Identifier: Apache-2.0
#include "base/file_lock.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/mapped_file.h"
#include "tests/testing/made_files.h"

namespace plimsoll {
namespace {

TEST(FileLock, IsHeldByOneAtATimeAndLeavesTheContent) {
  const testing::MadeFolder folder;
  const std::string path = (folder.path() / "answers.jsonl").string();
  {
    const auto first = FileLock::take(path);
    ASSERT_TRUE(first);
    EXPECT_TRUE(std::filesystem::exists(path));
    const auto second = FileLock::take(path);
    ASSERT_FALSE(second);
    EXPECT_EQ(second.error().code, ErrorCode::kUsage);
    EXPECT_EQ(second.error().where, path);
    ASSERT_TRUE(write_file(path, "kept"));
  }
  EXPECT_TRUE(FileLock::take(path));
  EXPECT_EQ(*read_file(path), "kept");
}

TEST(FileLock, OfADeviceHoldsNothing) {
  const auto first = FileLock::take("/dev/null"), second = FileLock::take("/dev/null");
  EXPECT_TRUE(first && second);
}

TEST(FileLock, WhereNothingCanBeWrittenSaysSo) {
  const testing::MadeFolder folder;
  const auto lock = FileLock::take((folder.path() / "absent" / "file").string());
  ASSERT_FALSE(lock);
  EXPECT_EQ(lock.error().code, ErrorCode::kUsage);
}

}  // namespace
}  // namespace plimsoll
