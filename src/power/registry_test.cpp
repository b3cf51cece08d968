#include <set>

#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

class FixedMeter final : public Meter {
 public:
  explicit FixedMeter(std::vector<Domain> domains, bool whole_node = false)
      : domains_(std::move(domains)), readings_(domains_.size()) {
    description_.whole_node = whole_node;
  }
  std::string_view name() const noexcept override { return "fixed"; }
  std::span<const Domain> domains() const noexcept override { return domains_; }
  std::span<const DomainReading> read() noexcept override { return readings_; }
  const MeterDescription& description() const noexcept override { return description_; }

 private:
  std::vector<Domain> domains_;
  std::vector<DomainReading> readings_;
  MeterDescription description_;
};

using K = DomainKind;
std::vector<Domain> rapl() {
  return {{"package-0", K::package, {}}, {"core-0", K::core, 0U}, {"dram-0", K::dram, {}},
          {"package-1", K::package, {}}, {"dram-1", K::dram, {}}};
}

std::vector<std::string> names(const std::vector<const Meter*>& meters) {
  std::vector<std::string> out;
  for (const DomainRef& r : additive_domains(meters)) out.push_back(meters[r.meter]->domains()[r.domain].name);
  return out;
}

TEST(Registry, NamesAreUnique) {
  std::set<std::string_view> seen;
  for (const MeterBackEnd& b : meter_back_ends()) EXPECT_TRUE(seen.insert(b.name).second);
}

TEST(Registry, AnEmptyRootHasNoMeterAndAReasonForEach) {
  FakeTree tree;
  const FoundMeters found = find_meters(tree.root());
  EXPECT_TRUE(found.meters.empty());
  ASSERT_EQ(found.missing.size(), meter_back_ends().size());
  for (const MissingMeter& m : found.missing) {
    EXPECT_FALSE(m.reason.empty());
    EXPECT_FALSE(m.remedy.empty());
  }
}

TEST(Registry, ThisMachineCanBeAsked) {
  const FoundMeters found = find_meters();
  EXPECT_EQ(found.meters.size() + found.missing.size(), meter_back_ends().size());
  for (const auto& m : found.meters) m->read();
}

TEST(Registry, TheClockMoves) {
  const Clock clock = monotonic_clock();
  const Nanoseconds before = clock();
  EXPECT_GE(clock(), before);
}

TEST(AdditiveDomains, NodeStandsForAll) {
  const FixedMeter node({{"node", K::node, {}}, {"cpu", K::cpu, 0U}, {"accel0", K::accelerator, 0U}});
  const FixedMeter packages(rapl());
  const FixedMeter board({{"board", K::node, {}}});
  EXPECT_EQ(names({&packages, &node, &board}), (std::vector<std::string>{"node"}));
  const FixedMeter twice({{"input", K::node, {}}, {"output", K::node, {}}});
  EXPECT_EQ(names({&twice}), (std::vector<std::string>{"input"}));
}

TEST(AdditiveDomains, PackagesAndMemoryOnceEach) {
  const FixedMeter first(rapl());
  const FixedMeter again({{"Esocket0", K::package, {}}, {"Ecore0", K::core, 0U}, {"disk", K::other, {}}});
  EXPECT_EQ(names({&first, &again}), (std::vector<std::string>{"package-0", "package-1", "dram-0", "dram-1"}));
}

TEST(AdditiveDomains, PlatformStandsForPackagesAndMemory) {
  const FixedMeter m({{"psys", K::platform, {}}, {"package-0", K::package, 0U}, {"dram", K::dram, 0U}});
  const FixedMeter gpu({{"gpu0", K::accelerator, {}}, {"gpu1", K::accelerator, {}}, {"chip", K::accelerator, 0U}});
  EXPECT_EQ(names({&m, &gpu}), (std::vector<std::string>{"psys", "gpu0", "gpu1"}));
}

TEST(AdditiveDomains, CardsOfAllMakers) {
  const FixedMeter packages(rapl());
  const FixedMeter some({{"amdgpu/PPT", K::accelerator, {}}, {"xe/card", K::accelerator, {}}, {"xe/pkg", K::accelerator, 1U}});
  const FixedMeter others({{"gpu0", K::accelerator, {}}, {"gpu1", K::accelerator, {}}});
  EXPECT_EQ(names({&some, &others}), (std::vector<std::string>{"amdgpu/PPT", "xe/card", "gpu0", "gpu1"}));
  EXPECT_EQ(names({&packages, &some, &others}),
            (std::vector<std::string>{"package-0", "package-1", "dram-0", "dram-1", "amdgpu/PPT", "xe/card", "gpu0", "gpu1"}));
}

TEST(AdditiveDomains, CardsOnceWhereTheBoardCountsThem) {
  const FixedMeter whole({{"node", K::node, {}}, {"accel0", K::accelerator, 0U}}, true);
  const FixedMeter parts({{"cpu", K::cpu, {}}, {"accel0", K::accelerator, {}}}, true);  // its figure of the node is closed
  const FixedMeter cards({{"gpu0", K::accelerator, {}}});
  EXPECT_EQ(names({&whole, &cards}), (std::vector<std::string>{"node"}));
  EXPECT_EQ(names({&parts, &cards}), (std::vector<std::string>{"cpu", "accel0"}));
  EXPECT_EQ(names({&cards, &parts}), (std::vector<std::string>{"cpu", "accel0"}));
  const FixedMeter processors({{"cpu", K::cpu, {}}}, true);
  EXPECT_EQ(names({&processors, &cards}), (std::vector<std::string>{"cpu", "gpu0"}));
}

TEST(AdditiveDomains, ModulesHaveTheirAcceleratorsInThem) {
  const FixedMeter grace({{"module 0", K::module, {}}, {"grace 0", K::package, 0U}, {"module 1", K::module, {}}});
  const FixedMeter cards({{"gpu0", K::accelerator, {}}, {"gpu1", K::accelerator, {}}});
  EXPECT_EQ(names({&grace, &cards}), (std::vector<std::string>{"module 0", "module 1"}));
}

TEST(AdditiveDomains, CardsThatTheKernelAndNvmlShow) {
  FakeTree tree;
  tree.copy("usr/lib/libnvidia-ml.so.1", FALLOW_FAKE_NVML_NEW);
  tree.write("sys/fake-nvml/card0/energy", "5");
  tree.write("sys/class/hwmon/hwmon0/name", "amdgpu");
  tree.write("sys/class/hwmon/hwmon0/power1_average", "30000000");
  tree.write("sys/class/hwmon/hwmon1/name", "nvidia");  // no driver registers it so far; if one did, it would be the same card
  tree.write("sys/class/hwmon/hwmon1/power1_input", "30000000");
  const FoundMeters found = find_meters(tree.root());
  std::vector<const Meter*> meters;
  for (const auto& m : found.meters) meters.push_back(m.get());
  EXPECT_EQ(names(meters), (std::vector<std::string>{"amdgpu/power", "gpu0"}));
  tree.write("sys/cray/pm_counters/accel0_energy", "5 J");
  const FoundMeters cray = find_meters(tree.root());
  meters.clear();
  for (const auto& m : cray.meters) meters.push_back(m.get());
  EXPECT_EQ(names(meters), (std::vector<std::string>{"accel0"}));
}

TEST(AdditiveDomains, NothingFromNothing) {
  const FixedMeter rails({{"12V", K::other, {}}});
  EXPECT_TRUE(names({&rails}).empty());
  EXPECT_TRUE(names({}).empty());
}

}  // namespace
}  // namespace fallow::power
