// SPDX-License-Identifier: Apache-2.0
#include "base/mapped_file.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>
#include <vector>

namespace plimsoll {
namespace {

class Folder : public ::testing::Test {
 protected:
  void SetUp() override { std::filesystem::create_directories(path_); }
  void TearDown() override { std::filesystem::remove_all(path_); }
  std::string at(const std::string& name) const { return path_ + "/" + name; }

  std::string path_ = ::testing::TempDir() + "plimsoll_files_" + std::to_string(::getpid());
};

TEST_F(Folder, WritesAndReadsBack) {
  ASSERT_TRUE(write_file(at("a"), "one"));
  ASSERT_TRUE(write_file(at("a"), "two"));
  EXPECT_EQ(read_file(at("a")).value(), "two");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), {}), 1);  // no temporary is left
}

TEST_F(Folder, AFileThatIsThereKeepsItsMode) {
  ASSERT_TRUE(write_file(at("secret"), "one"));
  ASSERT_EQ(::chmod(at("secret").c_str(), 0600), 0);
  ASSERT_TRUE(write_file(at("secret"), "two"));
  struct stat status{};
  ASSERT_EQ(::stat(at("secret").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777, 0600u);
}

// What another user of a shared folder puts in the place of the temporary file is not written through.
TEST_F(Folder, ALinkThatWaitsForTheTemporaryFileIsNotFollowed) {
  ASSERT_TRUE(write_file(at("victim"), "precious"));
  std::filesystem::create_symlink(at("victim"), at("a.partial." + std::to_string(::getpid())));
  ASSERT_TRUE(write_file(at("a"), "x"));
  EXPECT_EQ(read_file(at("victim")).value(), "precious");
}

TEST_F(Folder, SeveralMayWriteOneFileAtOnce) {
  std::vector<std::thread> writers;
  std::atomic<int> failed = 0;
  for (int i = 0; i < 8; ++i)
    writers.emplace_back([&] {
      for (int j = 0; j < 50; ++j) failed += write_file(at("tag"), std::string(100, 'x')) ? 0 : 1;
    });
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(failed, 0);
  EXPECT_EQ(read_file(at("tag")).value(), std::string(100, 'x'));
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(path_), {}), 1);
}

TEST_F(Folder, ThePlaceThatWasGivenIsNamed) {
  const auto written = write_file("/nope/x", "");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().where, "/nope/x");
}

TEST_F(Folder, ALinkIsFollowedNotReplaced) {
  ASSERT_TRUE(write_file(at("real"), "old"));
  std::filesystem::create_symlink(at("real"), at("link"));
  ASSERT_TRUE(write_file(at("link"), "new"));
  EXPECT_TRUE(std::filesystem::is_symlink(at("link")));
  EXPECT_EQ(read_file(at("real")).value(), "new");
}

// `-o /dev/null` once left a plain file where the device had been.
TEST_F(Folder, WhatIsNoRegularFileIsWrittenInPlace) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  std::string heard;
  std::thread reader([&] {
    const int fd = ::open(at("pipe").c_str(), O_RDONLY);
    char buffer[16];
    for (ssize_t got = 0; (got = ::read(fd, buffer, sizeof buffer)) > 0;)
      heard.append(buffer, static_cast<std::size_t>(got));
    ::close(fd);
  });
  EXPECT_TRUE(write_file(at("pipe"), "through"));
  reader.join();
  EXPECT_EQ(heard, "through");
  EXPECT_TRUE(std::filesystem::is_fifo(at("pipe")));
}

TEST_F(Folder, WhatCannotBeReadOrWrittenIsAnError) {
  EXPECT_EQ(read_file(at("absent")).error().code, ErrorCode::kMalformed);
  EXPECT_EQ(read_file(path_).error().code, ErrorCode::kMalformed);
  EXPECT_EQ(write_file(at("no/such/folder"), "x").error().code, ErrorCode::kUsage);
  EXPECT_EQ(write_file(path_, "x").error().code, ErrorCode::kUsage);
  ASSERT_TRUE(write_file(at("long"), std::string(100, 'x')));
  EXPECT_EQ(read_file(at("long"), 99).error().code, ErrorCode::kMalformed);
  EXPECT_EQ(MappedFile::open(at("absent")).error().code, ErrorCode::kMalformed);
  ASSERT_TRUE(write_file(at("empty"), ""));
  EXPECT_TRUE(MappedFile::open(at("empty"))->bytes().empty());
}

// A beginning is as long as its first bytes say, and the whole comes from the same file or not at all.
TEST_F(Folder, TheBeginningOfAFileAndThenTheWhole) {
  ASSERT_TRUE(write_file(at("weights"), std::string("\x10") + std::string(99, 'x')));
  ASSERT_TRUE(write_file(at("short"), "ab"));
  const auto by_first = [](std::span<const std::byte> first, std::size_t file_bytes) {
    return first.size() < 8 ? file_bytes : std::to_integer<std::size_t>(first[0]);
  };
  const auto short_file = MappedFile::open_beginning(at("short"), by_first);
  ASSERT_TRUE(short_file);
  EXPECT_EQ(short_file->bytes().size(), 2U);
  const auto beyond = MappedFile::open_beginning(
      at("short"), [](std::span<const std::byte>, std::size_t file_bytes) { return file_bytes + 5; });
  EXPECT_EQ(beyond->bytes().size(), 2U);
  const auto beginning = MappedFile::open_beginning(at("weights"), by_first);
  ASSERT_TRUE(beginning);
  EXPECT_EQ(beginning->bytes().size(), 16U);
  EXPECT_EQ(beginning->file_bytes(), 100U);
  const auto whole = beginning->open_whole(at("weights"));
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->bytes().size(), 100U);
  ASSERT_TRUE(write_file(at("weights"), std::string(100, 'y')));  // a file of the same size in its place
  EXPECT_EQ(beginning->open_whole(at("weights")).error().code, ErrorCode::kMalformed);
}

void leave_with_seven(int) {
  ::_exit(7);
}

// Mapping a file takes SIGBUS for its own mappings; every other one goes where it went before.
TEST(MappedFileSignalsDeathTest, AnotherSigbusGoesWhereItWentBefore) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a process that has mapped nothing yet
  const auto map_and_raise = [](void (*before)(int)) {
    ::signal(SIGBUS, before);
    const auto file = MappedFile::open("/proc/self/exe");
    if (file) ::raise(SIGBUS);
    ::_exit(3);
  };
  EXPECT_EXIT(map_and_raise(leave_with_seven), ::testing::ExitedWithCode(7), "");
  EXPECT_EXIT(map_and_raise(SIG_IGN), ::testing::ExitedWithCode(3), "");
  EXPECT_EXIT(map_and_raise(SIG_DFL), ::testing::KilledBySignal(SIGBUS), "");
}

TEST_F(Folder, AFileThatShrinksWhileItIsReadGivesZeros) {
  constexpr std::size_t kBytes = 1 << 20;
  ASSERT_TRUE(write_file(at("weights"), std::string(kBytes, 'x')));
  ASSERT_TRUE(write_file(at("other"), std::string(kBytes, 'x')));
  const auto weights = MappedFile::open(at("weights"));
  auto first = MappedFile::open(at("other"));
  ASSERT_TRUE(weights && first);
  const MappedFile other = std::move(*first);
  EXPECT_FALSE(weights->was_cut());
  std::filesystem::resize_file(at("weights"), 4096);
  EXPECT_EQ(weights->bytes()[0], std::byte{'x'});
  EXPECT_EQ(weights->bytes()[kBytes - 1], std::byte{0});
  EXPECT_EQ(weights->bytes()[kBytes / 2], std::byte{0});
  EXPECT_TRUE(weights->was_cut());
  EXPECT_FALSE(other.was_cut());
  EXPECT_TRUE(MappedFile::any_was_cut());
}

}  // namespace
}  // namespace plimsoll
