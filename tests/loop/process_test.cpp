// SPDX-License-Identifier: Apache-2.0
#include "loop/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <thread>

#include "base/mapped_file.h"
#include "loop/server_process.h"

namespace plimsoll::loop {
namespace {

std::string log_path(const char* name) {
  return ::testing::TempDir() + "plimsoll_" + name + std::to_string(::getpid());
}

TEST(Process, TellsItsExitStatusAndKeepsStderr) {
  auto process = Process::start({"/bin/sh", "-c", "echo spoken >&2; exit 7"}, log_path("exit"));
  ASSERT_TRUE(process);
  while (!process->exit_status()) std::this_thread::yield();
  EXPECT_EQ(process->exit_status(), 7);
  EXPECT_EQ(read_file(log_path("exit")).value(), "spoken\n");
  std::filesystem::remove(log_path("exit"));
}

TEST(Process, StopEndsAProgramThatWouldRunOn) {
  auto process = Process::start({"/bin/sleep", "1000"}, log_path("stop"));
  ASSERT_TRUE(process);
  EXPECT_FALSE(process->exit_status());
  EXPECT_EQ(process->stop(std::chrono::seconds(60)), 128 + SIGTERM);
  std::filesystem::remove(log_path("stop"));
}

TEST(Process, AProgramThatIsNotThereIsAnError) {
  EXPECT_EQ(Process::start({"/no/such/program"}, log_path("absent")).error().code, ErrorCode::kUsage);
  std::filesystem::remove(log_path("absent"));
}

TEST(ServerProcess, AServerThatDiesIsReportedWithItsLastWords) {
  const auto server = start_server("/bin/false", "model", {}, log_path("dies"), std::chrono::seconds(60));
  ASSERT_FALSE(server);
  EXPECT_NE(server.error().message.find("ended with status 1"), std::string::npos) << server.error().message;
  std::filesystem::remove(log_path("dies"));
}

TEST(ProcessMemory, SeesResidentPagesOfTheMappingWithoutHugePages) {
  EXPECT_GT(peak_memory(::getpid())->value, 0);
  constexpr std::size_t kSize = 1 << 20;
  EXPECT_FALSE(kv_pool_mapping(::getpid()));
  void* data =
      ::mmap(nullptr, kSize, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(data, MAP_FAILED);
  ASSERT_EQ(::madvise(data, kSize, MADV_NOHUGEPAGE), 0);
  std::memset(data, 1, 10 * 4096);
  const auto mapping = kv_pool_mapping(::getpid());
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->size.value, static_cast<std::int64_t>(kSize));
  EXPECT_EQ(mapping->resident.value, 10 * 4096);
  ::munmap(data, kSize);
}

}  // namespace
}  // namespace plimsoll::loop
