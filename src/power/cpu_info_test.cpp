#include "power/cpu_info.hpp"

#include "power/fake_tree.hpp"
#include "power/platform.hpp"

namespace fallow::power {
namespace {

std::string x86(int sockets, int cores, int threads, const std::string& flags = "fpu") {
  std::string text;
  int n = 0;
  for (int t = 0; t < threads; ++t) {
    for (int s = 0; s < sockets; ++s) {
      for (int c = 0; c < cores; ++c) {
        text += "processor\t: " + std::to_string(n++) + "\nvendor_id\t: GenuineIntel\nmodel name\t: Some CPU @ 2 GHz\n" +
                "physical id\t: " + std::to_string(s) + "\ncore id\t\t: " + std::to_string(c * 4) + "\nflags\t: " +
                flags + "\n\n";
      }
    }
  }
  return text;
}

TEST(CpuInfo, CountsSocketsAndCoresNotThreads) {
  FakeTree tree;
  tree.write("proc/cpuinfo", x86(2, 12, 2));
  const CpuInfo cpu = read_cpu_info(tree.root());
  EXPECT_EQ(cpu.model, "Some CPU @ 2 GHz");
  EXPECT_EQ(cpu.sockets, 2U);
  EXPECT_EQ(cpu.cores, 24U);
  EXPECT_FALSE(cpu.virtual_machine);
}

TEST(CpuInfo, SeesAHypervisor) {
  FakeTree tree;
  tree.write("proc/cpuinfo", x86(1, 2, 1, "fpu hypervisor lahf_lm"));
  EXPECT_TRUE(read_cpu_info(tree.root()).virtual_machine);
  tree.write("proc/cpuinfo", x86(1, 2, 1, "fpu hypervisors"));
  EXPECT_FALSE(read_cpu_info(tree.root()).virtual_machine);
}

TEST(CpuInfo, ReadsArmAndPower) {
  FakeTree tree;
  tree.write("proc/cpuinfo", "processor\t: 0\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU part\t: 0xd0c\n");
  EXPECT_EQ(read_cpu_info(tree.root()).model, "Arm part 0xd0c");
  EXPECT_EQ(read_cpu_info(tree.root()).cores, 2U);
  tree.write("proc/cpuinfo", "processor\t: 0\ncpu\t\t: POWER9\nclock: 2\n\nprocessor\t: 4\ncpu\t\t: POWER9\n");
  EXPECT_EQ(read_cpu_info(tree.root()).model, "POWER9");
  EXPECT_EQ(read_cpu_info(tree.root()).cores, 2U);
}

TEST(CpuInfo, IsEmptyWithoutAFile) {
  FakeTree tree;
  EXPECT_EQ(read_cpu_info(tree.root()).cores, 0U);
  tree.write("proc/cpuinfo", std::string(5000, '\xff') + "\n:::\nprocessor : x\n");
  EXPECT_EQ(read_cpu_info(tree.root()).cores, 0U);
}

TEST(GenericPlatform, TakesTheProcessorFromTheMachine) {
  FakeTree tree;
  tree.write("proc/cpuinfo", x86(2, 12, 2));
  const Platform p = generic_platform(tree.root());
  EXPECT_EQ(p.name, "the machine found") << "generic is what the file describes, of another size";
  EXPECT_EQ(p.cpu_model, "Some CPU @ 2 GHz");
  EXPECT_EQ(p.sockets, 2U);
  EXPECT_EQ(p.cores_per_socket, 12U);
  for (const std::string& a : p.assumptions()) EXPECT_FALSE(a.starts_with("cpu:")) << a;
}

TEST(GenericPlatform, ChargesAVirtualMachineForItsPartOfAServer) {
  FakeTree tree;
  tree.write("proc/cpuinfo", x86(1, 2, 1, "fpu hypervisor"));
  const Platform part = generic_platform(tree.root());
  tree.write("proc/cpuinfo", x86(1, 2, 1, "fpu"));
  const Platform whole = generic_platform(tree.root());
  EXPECT_EQ(part.cores(), 2U);
  EXPECT_DOUBLE_EQ(part.base.value, whole.base.value * 2 / 64);
  EXPECT_DOUBLE_EQ(part.memory.idle.value, whole.memory.idle.value * 2 / 64);
  EXPECT_DOUBLE_EQ(part.memory.active.value, whole.memory.active.value * 2 / 64);
  EXPECT_DOUBLE_EQ(part.nic.idle.value, whole.nic.idle.value * 2 / 64);
  EXPECT_DOUBLE_EQ(part.nic.active.value, whole.nic.active.value * 2 / 64);
  EXPECT_DOUBLE_EQ(part.switch_share.value, whole.switch_share.value * 2 / 64);
  EXPECT_DOUBLE_EQ(part.core.compute.value, whole.core.compute.value);
  const auto says = [](const Platform& p) {
    const auto all = p.assumptions();
    return std::any_of(all.begin(), all.end(), [](const std::string& a) { return a.starts_with("virtual machine: ") && a.find("2 of 64") != a.npos; });
  };
  EXPECT_TRUE(says(part));
  EXPECT_FALSE(says(whole));
}

TEST(GenericPlatform, ChargesALargeVirtualMachineForTheWholeServer) {
  FakeTree tree;
  tree.write("proc/cpuinfo", x86(2, 48, 2, "fpu hypervisor"));
  const Platform large = generic_platform(tree.root());
  EXPECT_DOUBLE_EQ(large.base.value, 70.0);
}

TEST(GenericPlatform, SaysThatEveryWattIsAssumed) {
  FakeTree tree;
  const Platform p = generic_platform(tree.root());
  EXPECT_EQ(p.name, "generic");
  EXPECT_GT(p.cores(), 0U);
  const auto has = [&](const std::string& start) {
    const auto all = p.assumptions();
    return std::any_of(all.begin(), all.end(), [&](const std::string& a) { return a.starts_with(start + ": assumption"); });
  };
  for (const char* value : {"cpu", "core.compute_w", "core.spin_w", "core.yield_w", "core.sleep_w", "memory",
                            "nic.active_w", "nic.idle_w", "base", "switch.share_w", "link.port_w"}) {
    EXPECT_TRUE(has(value)) << value;
  }
}

TEST(GenericPlatform, ToleratesThisMachine) { EXPECT_GT(generic_platform().cores(), 0U); }

}  // namespace
}  // namespace fallow::power
