#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

const std::string kDir = "sys/class/powercap/";

void zone(const FakeTree& t, const std::string& directory, const std::string& name, std::uint64_t uj,
          const std::string& range = "262143328850") {
  t.write(kDir + directory + "/name", name + "\n");
  t.write(kDir + directory + "/energy_uj", std::to_string(uj) + "\n");
  if (!range.empty()) t.write(kDir + directory + "/max_energy_range_uj", range + "\n");
}

// A two-socket machine with everything that RAPL lists.
void two_sockets(const FakeTree& t) {
  t.write(kDir + "intel-rapl/enabled", "1");
  for (const std::string s : {"0", "1"}) {
    zone(t, "intel-rapl:" + s, "package-" + s, 1000);
    zone(t, "intel-rapl:" + s + ":0", "core", 1000);
    zone(t, "intel-rapl:" + s + ":1", "uncore", 1000);
    zone(t, "intel-rapl:" + s + ":2", "dram", 1000, "65712999613");
    zone(t, "intel-rapl-mmio:" + s, "package-" + s, 1000);
  }
}

FoundMeters find(const FakeTree& t) {
  return find_meters(t.root(), [] { return Nanoseconds(0); });
}

const Domain& domain(const Meter& m, const std::string& name) { return m.domains()[index_of(m, name)]; }

TEST(Powercap, NamesZonesBySocketAndDropsTheirSecondView) {
  FakeTree tree;
  two_sockets(tree);
  const auto found = find(tree);
  ASSERT_EQ(found.meters.size(), 1U);
  const Meter& m = *found.meters[0];
  EXPECT_EQ(m.domains().size(), 8U);
  EXPECT_EQ(domain(m, "package-1").kind, DomainKind::package);
  EXPECT_EQ(domain(m, "package-1/core").kind, DomainKind::core);
  EXPECT_EQ(domain(m, "package-1/core").inside, index_of(m, "package-1"));
  EXPECT_EQ(domain(m, "package-0/uncore").inside, index_of(m, "package-0"));
  EXPECT_EQ(domain(m, "package-0/dram").inside, std::nullopt);  // listed below the package, but not counted by it
}

TEST(Powercap, PlatformIncludesPackagesAndMemory) {
  FakeTree tree;
  two_sockets(tree);
  zone(tree, "intel-rapl:2", "psys", 0);
  const auto found = find(tree);
  const Meter& m = *found.meters.at(0);
  EXPECT_EQ(domain(m, "psys").kind, DomainKind::platform);
  EXPECT_EQ(domain(m, "package-0").inside, index_of(m, "psys"));
  EXPECT_EQ(domain(m, "package-0/dram").inside, index_of(m, "psys"));
  EXPECT_EQ(domain(m, "package-0/core").inside, index_of(m, "package-0"));
}

TEST(Powercap, PeriodIsShorterThanAnyWrap) {
  FakeTree tree;
  two_sockets(tree);
  const auto found = find(tree);
  const Seconds period = found.meters.at(0)->description().max_period;
  EXPECT_LT(period.value * 2000, 65712.999613 + 1e-6);  // the smallest range, at 2 kW
  EXPECT_GT(period.value, 10);
}

TEST(Powercap, ReadsOneZoneWhereTheOtherIsClosed) {
  FakeTree tree;
  zone(tree, "intel-rapl:0", "package-0", 1);
  zone(tree, "intel-rapl:1", "package-1", 1);
  tree.forbid(kDir + "intel-rapl:1/energy_uj");
  const Unprivileged user;
  const auto found = find(tree);
  ASSERT_EQ(found.meters.size(), 1U);
  EXPECT_EQ(found.meters[0]->domains().size(), 1U);
  const std::string& measures = found.meters[0]->description().measures;  // a sum without it is not the machine's
  EXPECT_NE(measures.find("intel-rapl:1/energy_uj"), std::string::npos) << measures;
}

TEST(Powercap, ExplainsClosedCounters) {
  FakeTree tree;
  zone(tree, "intel-rapl:0", "package-0", 1);
  tree.forbid(kDir + "intel-rapl:0/energy_uj");
  const Unprivileged user;
  const auto found = find(tree);
  const auto& missing = *std::find_if(found.missing.begin(), found.missing.end(),
                                      [](const MissingMeter& m) { return m.name == "powercap"; });
  EXPECT_NE(missing.reason.find("intel-rapl:0/energy_uj"), std::string::npos);
  EXPECT_NE(missing.remedy.find("chmod a+r"), std::string::npos);
}

TEST(Powercap, CountsWithoutARange) {
  FakeTree tree;
  for (const std::string range : {"", "0", "much"}) {
    tree.remove("sys");
    zone(tree, "intel-rapl:0", "package-0", 1'000'000, range);
    FakeClock clock;
    auto found = find_meters(tree.root(), clock.clock());
    Meter& m = *found.meters.at(0);
    m.read();
    zone(tree, "intel-rapl:0", "package-0", 4'000'000, range);
    clock.advance(Seconds(1));
    EXPECT_NEAR(m.read()[0].energy.value, 3.0, 1e-9);
  }
}

TEST(Powercap, AValueBeyondItsRangeIsGarbage) {
  FakeTree tree;
  zone(tree, "intel-rapl:0", "package-0", 5, "1000");
  auto found = find(tree);
  Meter& m = *found.meters.at(0);
  EXPECT_EQ(m.read()[0].state, DomainState::on);
  zone(tree, "intel-rapl:0", "package-0", 1001, "1000");
  EXPECT_EQ(m.read()[0].state, DomainState::turning_off);
}

TEST(Powercap, AControlTypeAloneIsNoMeter) {
  FakeTree tree;
  tree.write(kDir + "intel-rapl/enabled", "1");
  tree.write(kDir + "dtpm/enabled", "1");
  EXPECT_TRUE(find(tree).meters.empty());
}

}  // namespace
}  // namespace fallow::power
