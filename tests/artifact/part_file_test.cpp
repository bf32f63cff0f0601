// SPDX-License-Identifier: Apache-2.0
#include "artifact/hub/part_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <optional>

#include "tests/testing/made_files.h"

namespace plimsoll::artifact {
namespace {

using testing::MadeFolder;

struct Blob {
  MadeFolder folder;
  std::string path = (folder.path() / "4cdb").string(),
              lock = (folder.path() / "locks" / "4cdb.lock").string();
  Result<PartFile> open() const { return PartFile::open(path, lock, 1 << 20); }
};

TEST(PartFile, WhatAnEarlierRunLeftIsGoneOnWith) {
  const Blob blob;
  {
    auto first = blob.open();
    ASSERT_TRUE(first && first->append("half"));
  }
  auto second = blob.open();
  ASSERT_TRUE(second);
  EXPECT_EQ(second->size(), 4);
  ASSERT_TRUE(second->append(" whole") && second->finish(blob.path));
  EXPECT_EQ(std::filesystem::file_size(blob.path), 10U);
}

// The first run ends and leaves the blob's lock; the second one, which did not wait, still writes its part.
TEST(PartFile, APartThatSomebodyWritesIsNotTakenOver) {
  const Blob blob;
  std::optional<PartFile> first(std::move(*blob.open()));
  auto second = blob.open();
  ASSERT_TRUE(second);
  ASSERT_TRUE(first->append("a") && second->append("longer than the other"));
  first->discard();
  first.reset();
  auto third = blob.open();
  ASSERT_TRUE(third);
  EXPECT_EQ(third->size(), 0);
  EXPECT_TRUE(second->finish(blob.path));
  EXPECT_EQ(std::filesystem::file_size(blob.path), 21U);
}

TEST(PartFile, TooLongAPartIsLeft) {
  const Blob blob;
  {
    auto first = blob.open();
    ASSERT_TRUE(first && first->append("too long"));
  }
  const auto second = PartFile::open(blob.path, blob.lock, 4);
  ASSERT_TRUE(second);
  EXPECT_EQ(second->size(), 0);
}

}  // namespace
}  // namespace plimsoll::artifact
