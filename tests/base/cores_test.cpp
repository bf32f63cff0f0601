// SPDX-License-Identifier: Apache-2.0
#include "base/cores.h"

#include <gtest/gtest.h>

#include "base/kernel_files.h"
#include "tests/base/fake_root.h"

namespace plimsoll {
namespace {

void allow(const FakeRoot& root, const std::string& cpus) {
  root.write("proc/self/status", "Name: x\nCpus_allowed:\tff\nCpus_allowed_list:\t" + cpus + "\n");
}

void describe_cpu(const FakeRoot& root, int cpu, const std::string& file, const std::string& text) {
  root.write("sys/devices/system/cpu/cpu" + std::to_string(cpu) + "/" + file, text + "\n");
}

TEST(Cores, WithoutTopologyEveryAllowedCpuIsACore) {
  const FakeRoot root;
  allow(root, "0-2,8");
  const Cores cores = read_cores(root.path());
  EXPECT_EQ(cores.allowed, 4);
  EXPECT_EQ(cores.physical, 4);
  EXPECT_EQ(cores.usable, 4);
  EXPECT_FALSE(cores.fast);
  EXPECT_FALSE(cores.quota);
  EXPECT_EQ(describe(cores), "4 CPUs allowed, on 4 cores");
}

TEST(Cores, TwoThreadsOfACoreAreOne) {
  const FakeRoot root;
  for (int cpu = 0; cpu < 8; ++cpu)
    describe_cpu(root, cpu, "topology/thread_siblings_list",
                 std::to_string(cpu % 4) + "," + std::to_string(cpu % 4 + 4));
  allow(root, "0-7");
  EXPECT_EQ(read_cores(root.path()).usable, 4);
  allow(root, "0,4,5");  // both of one core, and one of another
  const Cores cores = read_cores(root.path());
  EXPECT_EQ(cores.allowed, 3);
  EXPECT_EQ(cores.usable, 2);
  allow(root, "4-7");  // the other halves
  EXPECT_EQ(read_cores(root.path()).usable, 4);
}

TEST(Cores, AQuotaIsRoundedUpAndTheLeastOnTheWayToTheRootHolds) {
  const FakeRoot root;
  allow(root, "0-7");
  root.write("proc/self/cgroup", "0::/pod/box\n");
  root.write("sys/fs/cgroup/pod/box/cpu.max", "max 100000\n");
  EXPECT_EQ(read_cores(root.path()).usable, 8);
  root.write("sys/fs/cgroup/pod/cpu.max", "250000 100000\n");
  EXPECT_EQ(read_cores(root.path()).usable, 3);
  EXPECT_EQ(describe(read_cores(root.path())), "8 CPUs allowed, on 8 cores, a quota of 2.5 CPUs");
  root.write("sys/fs/cgroup/pod/box/cpu.max", "10000 100000\n");
  EXPECT_EQ(read_cores(root.path()).usable, 1);
}

TEST(Cores, AQuotaOfVersion1) {
  const FakeRoot root;
  allow(root, "0-7");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n");
  EXPECT_FALSE(read_cores(root.path()).quota);
  root.write("proc/self/cgroup", "3:cpu,cpuacct:/box\n");
  root.write("sys/fs/cgroup/cpu/box/cpu.cfs_quota_us", "400000\n");
  root.write("sys/fs/cgroup/cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(read_cores(root.path()).quota, 4.0);
  EXPECT_EQ(read_cores(root.path()).usable, 4);
}

TEST(Cores, OfAHybridMachineThePerformanceCoresCount) {
  const FakeRoot root;
  allow(root, "0-11");
  root.write("sys/devices/cpu_core/cpus", "0-3\n");
  root.write("sys/devices/cpu_atom/cpus", "4-11\n");
  for (int cpu = 0; cpu < 4; ++cpu)
    describe_cpu(root, cpu, "topology/thread_siblings_list", cpu < 2 ? "0-1" : "2-3");
  const Cores cores = read_cores(root.path());
  EXPECT_EQ(cores.fast, 4);
  EXPECT_EQ(cores.usable, 2);
  EXPECT_EQ(describe(cores), "12 CPUs allowed, 4 of them performance cores', on 2 cores");
  allow(root, "6-8");  // nothing else is allowed: these have to do
  EXPECT_EQ(read_cores(root.path()).usable, 3);
}

TEST(Cores, CapacitiesTellSmallCoresFromLargeOnes) {
  const FakeRoot root;
  allow(root, "0-7");
  for (int cpu = 0; cpu < 8; ++cpu)
    describe_cpu(root, cpu, "cpu_capacity", cpu < 4 ? "325" : cpu < 7 ? "828" : "1024");
  EXPECT_EQ(read_cores(root.path()).usable, 4);
}

TEST(Cores, WhatCannotBeReadDoesNotLimit) {
  const FakeRoot root;
  root.write("proc/self/status", "Cpus_allowed_list:\t\n");
  root.write("sys/fs/cgroup/cpu/cpu.cfs_quota_us", "many\n");
  root.write("sys/devices/cpu_core/cpus", "\n");
  EXPECT_GE(read_cores(root.path()).usable, 1);
  EXPECT_FALSE(read_cores(root.path()).quota);
  EXPECT_GE(read_cores().usable, 1);
}

TEST(KernelFiles, CpuLists) {
  EXPECT_EQ(parse_cpu_list("0-2,5,7-8\n"), (std::vector<int>{0, 1, 2, 5, 7, 8}));
  EXPECT_EQ(parse_cpu_list(""), std::vector<int>{});
  EXPECT_EQ(parse_cpu_list("3,x,4"), std::vector<int>{3});
  EXPECT_EQ(parse_cpu_list("0-99999999999"), std::vector<int>{});
}

}  // namespace
}  // namespace plimsoll
