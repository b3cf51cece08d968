#include "power/cpu_quota.hpp"

#include <string>

#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

const std::string kV2 = "31 23 0:28 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n";
const std::string kV1 =
    "24 31 0:22 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
    "25 31 0:23 / /sys/fs/cgroup/cpu,cpuacct rw shared:9 master:1 - cgroup cgroup rw,cpu,cpuacct\n"
    "26 31 0:24 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

/// A machine whose process is in `groups`, with such `mounts`.
FakeTree& in(FakeTree& tree, const std::string& mounts, const std::string& groups) {
  tree.write("proc/self/mountinfo", "22 1 254:0 / / rw - ext4 /dev/root rw\nnonsense\n\n" + mounts);
  tree.write("proc/self/cgroup", groups);
  return tree;
}

CpuQuota of(const FakeTree& tree) { return CpuQuota(tree.root().string()); }

TEST(CpuQuota, WithoutControlGroupsThereIsNone) {
  FakeTree tree;
  EXPECT_FALSE(of(tree).limited());
  EXPECT_EQ(of(tree).processors(), 0);
  EXPECT_EQ(of(tree).throttled_ns(), CpuQuota::kUnknown);
  EXPECT_FALSE(of(in(tree, "", "0::/job\n")).limited());
  EXPECT_FALSE(of(in(tree, kV2, "")).limited());
  EXPECT_FALSE(CpuQuota().limited());
}

TEST(CpuQuota, OfVersion2) {
  FakeTree tree;
  in(tree, kV2, "0::/job/step\n");
  tree.write("sys/fs/cgroup/job/step/cpu.max", "150000 100000\n");
  tree.write("sys/fs/cgroup/job/step/cpu.stat", "usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 2500\n");
  const CpuQuota quota = of(tree);
  EXPECT_TRUE(quota.limited());
  EXPECT_EQ(quota.processors(), 1.5);
  EXPECT_EQ(quota.throttled_ns(), 2'500'000U);
  tree.write("sys/fs/cgroup/job/step/cpu.stat", "throttled_usec 4000\n");
  EXPECT_EQ(quota.throttled_ns(), 4'000'000U) << "it is read anew";
  tree.write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_FALSE(of(tree).limited());
}

TEST(CpuQuota, OfVersion1) {
  FakeTree tree;
  in(tree, kV1, "12:cpuset:/other\n4:cpu,cpuacct:/job\n1:name=systemd:/x\n0::/y\nbroken\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "25000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_period_us", "100000\n");
  tree.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.stat", "nr_periods 4\nnr_throttled 3\nthrottled_time 123456789\nnr_bursts 0\n");
  EXPECT_EQ(of(tree).processors(), 0.25);
  EXPECT_EQ(of(tree).throttled_ns(), 123'456'789U);
  tree.write("sys/fs/cgroup/cpu,cpuacct/job/cpu.cfs_quota_us", "-1\n");
  EXPECT_FALSE(of(tree).limited());
}

TEST(CpuQuota, TheLeastOfAllGroupsAboveCountsAndAllThatWereThrottled) {
  FakeTree tree;
  in(tree, kV2, "0::/pod/job/step\n");
  tree.write("sys/fs/cgroup/pod/cpu.max", "200000 100000\n");
  tree.write("sys/fs/cgroup/pod/cpu.stat", "throttled_usec 5\n");
  tree.write("sys/fs/cgroup/pod/job/cpu.max", "max 100000\n");
  tree.write("sys/fs/cgroup/pod/job/step/cpu.max", "400000 100000\n");
  tree.write("sys/fs/cgroup/pod/job/step/cpu.stat", "throttled_usec 70\n");
  tree.write("sys/fs/cgroup/pod/job/step/deeper/cpu.max", "1000 100000\n");
  EXPECT_EQ(of(tree).processors(), 2);
  EXPECT_EQ(of(tree).throttled_ns(), 75'000U);
}

TEST(CpuQuota, ContainersSeeTheirOwnGroupAsTheMountsRoot) {
  for (const std::string groups : {"0::/\n", "0::/../..\n", "0::/docker/7f\n"}) {
    FakeTree tree;
    in(tree, "31 23 0:28 /docker/7f /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", groups);
    tree.write("sys/fs/cgroup/cpu.max", "50000 100000\n");
    EXPECT_EQ(of(tree).processors(), 0.5) << groups;
  }
  FakeTree tree;
  in(tree, "31 23 0:28 /docker/7f /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/docker/7f/step\n");
  tree.write("sys/fs/cgroup/step/cpu.max", "75000 100000\n");
  EXPECT_EQ(of(tree).processors(), 0.75);
  in(tree, "31 23 0:28 /docker/7f /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "0::/docker/7fe/step\n");
  EXPECT_FALSE(of(tree).limited()) << "another container's";
}

TEST(CpuQuota, WhatIsNotUnderstoodLimitsNothing) {
  FakeTree tree;
  in(tree, kV2, "0::/job\n");
  for (const std::string text : {"", "max", "x y", "0 100000", "100000", "100000 0", "-5 100000", "100000\n100000"}) {
    tree.write("sys/fs/cgroup/job/cpu.max", text);
    EXPECT_FALSE(of(tree).limited()) << text;
  }
  tree.write("sys/fs/cgroup/job/cpu.max", "100000 100000\n");
  for (const std::string text : {"", "throttled_usec", "throttled_usec x\n", "not_throttled_usec 7\n"}) {
    tree.write("sys/fs/cgroup/job/cpu.stat", text);
    EXPECT_EQ(of(tree).throttled_ns(), CpuQuota::kUnknown) << text;
  }
}

TEST(CpuQuota, ReadsThisMachine) {
  const CpuQuota quota{std::string()};
  EXPECT_EQ(quota.limited(), quota.processors() > 0);
  EXPECT_TRUE(quota.limited() || quota.throttled_ns() == CpuQuota::kUnknown);
}

}  // namespace
}  // namespace fallow::power
