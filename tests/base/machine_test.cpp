// SPDX-License-Identifier: Apache-2.0
#include "base/machine.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include "base/nvidia_smi.h"
#include "tests/base/fake_root.h"

namespace plimsoll {
namespace {

TEST(Machine, ReadsMemoryAndCpu) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal:       24000000 kB\nMemFree: 1 kB\nMemAvailable:   20000000 kB\n");
  root.write("proc/cpuinfo", "processor\t: 0\nmodel name\t: Some CPU @ 2.0GHz\n");
  const Machine machine = read_machine(root.path());
  EXPECT_EQ(machine.memory_total, Bytes(24'000'000 * kKiB));
  EXPECT_EQ(machine.memory_available, Bytes(20'000'000 * kKiB));
  EXPECT_EQ(machine.cpu_model, "Some CPU @ 2.0GHz");
  EXPECT_FALSE(machine.cgroup_limit);
  EXPECT_GE(machine.cores.usable, 1);
}

TEST(Machine, ALowerLimitOfTheControlGroupHolds) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal: 24000000 kB\nMemAvailable: 20000000 kB\n");
  root.write("proc/self/cgroup", "0::/a/b\n");
  root.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  root.write("sys/fs/cgroup/a/memory.max", "1000000000\n");
  root.write("sys/fs/cgroup/a/memory.current", "400000000\n");
  root.write("sys/fs/cgroup/a/memory.stat", "anon 300000000\ninactive_file 100000000\n");
  const Machine machine = read_machine(root.path());
  EXPECT_EQ(machine.cgroup_limit, Bytes(1'000'000'000));
  EXPECT_EQ(machine.memory_total, Bytes(1'000'000'000));
  EXPECT_EQ(machine.memory_available, Bytes(700'000'000));
}

TEST(Machine, TheOldControlGroupsCountToo) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal: 24000000 kB\nMemAvailable: 20000000 kB\n");
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_FALSE(read_machine(root.path()).cgroup_limit);
  root.write("sys/fs/cgroup/memory/memory.limit_in_bytes", "5000000\n");
  root.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "6000000\n");
  EXPECT_EQ(read_machine(root.path()).memory_available, Bytes(0));
}

TEST(Machine, ALimitOfAVersion1GroupOfItsOwnHoldsToo) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal: 24000000 kB\nMemAvailable: 20000000 kB\n");
  root.write("proc/self/cgroup", "5:devices:/\n4:hugetlb,memory:/a/b\n0::/\n");
  root.write("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "5000000\n");
  root.write("sys/fs/cgroup/memory/a/memory.usage_in_bytes", "1000000\n");
  EXPECT_EQ(read_machine(root.path()).cgroup_limit, Bytes(5'000'000));
  EXPECT_EQ(read_machine(root.path()).memory_available, Bytes(4'000'000));
}

TEST(Machine, NothingReadableIsAbsent) {
  const FakeRoot root;
  root.write("proc/meminfo", "MemTotal: many\nMemAvailable: 99999999999999999999 kB\n");
  const Machine machine = read_machine(root.path());
  EXPECT_FALSE(machine.memory_total);
  EXPECT_FALSE(machine.memory_available);
}

TEST(Machine, ThisProcessIsResident) {
  ASSERT_TRUE(resident_bytes());
  EXPECT_GT(resident_bytes()->value, 100 * kKiB);
}

TEST(Machine, AProcessHasItsChildrensMemoryToo) {
  const FakeRoot root;
  root.write("proc/10/status", "Name: server\nVmRSS:\t 100 kB\n");
  root.write("proc/10/task/10/children", "11 12 ");
  root.write("proc/10/task/13/children", "14");
  root.write("proc/11/status", "VmRSS: 20 kB\n");
  root.write("proc/11/task/11/children", "");
  root.write("proc/14/status", "VmRSS: 3 kB\n");
  EXPECT_EQ(resident_bytes_with_children(10, root.path()), Bytes(123 * kKiB));  // 12 has ended
  EXPECT_FALSE(resident_bytes_with_children(99, root.path()));
  EXPECT_GT(resident_bytes_with_children(::getpid()).value_or(Bytes(0)), Bytes(kMiB));
}

TEST(NvidiaSmi, MemoryInUseIsAddedUpOverTheGpus) {
  EXPECT_EQ(parse_memory_used("1024\n512\n"), Bytes(1536 * kMiB));
  EXPECT_EQ(parse_memory_used("7"), Bytes(7 * kMiB));
  EXPECT_FALSE(parse_memory_used(""));
  EXPECT_FALSE(parse_memory_used("1024\n[N/A]\n"));
  EXPECT_FALSE(parse_memory_used("-1\n"));
}

}  // namespace
}  // namespace plimsoll
