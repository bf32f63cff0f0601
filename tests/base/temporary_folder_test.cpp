// SPDX-License-Identifier: Apache-2.0
#include "base/temporary_folder.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <fstream>

namespace plimsoll {
namespace {

namespace fs = std::filesystem;

void fill(const std::string& path) {
  fs::create_directories(path + "/snapshots/commit/sub");
  for (int i = 0; i < 300; ++i)  // more names than the kernel gives at once
    std::ofstream(path + "/snapshots/commit/" + std::string(40, 'n') + std::to_string(i)) << "x";
  std::ofstream(path + "/snapshots/commit/sub/file") << "x";
}

TEST(TemporaryFolder, GoesWithItsOwner) {
  std::string path;
  {
    auto made = TemporaryFolder::make();
    ASSERT_TRUE(made);
    const TemporaryFolder folder = std::move(*made);
    path = folder.path();
    fill(path);
  }
  EXPECT_FALSE(fs::exists(path));
}

class Ended : public ::testing::TestWithParam<int> {};

TEST_P(Ended, BySignalItIsRemovedTooAndWhatItLinksToStays) {
  const std::string kept = ::testing::TempDir() + "plimsoll_kept_" + std::to_string(::getpid());
  fs::create_directories(kept);
  std::ofstream(kept + "/precious") << "x";
  std::array<int, 2> pipe{};
  ASSERT_EQ(::pipe(pipe.data()), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto folder = TemporaryFolder::make();
    if (!folder) ::_exit(1);
    fill(folder->path());
    fs::create_directory_symlink(kept, folder->path() + "/link");
    const bool is_told = ::write(pipe[1], folder->path().data(), folder->path().size()) > 0;
    ::raise(GetParam());
    ::_exit(is_told ? 2 : 3);
  }
  ::close(pipe[1]);
  std::string path(512, '\0');
  const ssize_t got = ::read(pipe[0], path.data(), path.size());
  ::close(pipe[0]);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_GT(got, 0);
  path.resize(static_cast<std::size_t>(got));
  EXPECT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), GetParam());
  EXPECT_FALSE(fs::exists(path)) << path;
  EXPECT_TRUE(fs::exists(kept + "/precious"));
  fs::remove_all(kept);
}

INSTANTIATE_TEST_SUITE_P(TemporaryFolder, Ended, ::testing::Values(SIGINT, SIGTERM, SIGHUP, SIGPIPE));

}  // namespace
}  // namespace plimsoll
