#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

const std::string kDir = "sys/cray/pm_counters/";

class CrayPm : public testing::Test {
 protected:
  void put(const std::string& file, const std::string& text) { tree_.write(kDir + file, text + "\n"); }
  Meter& find() {
    found_ = find_meters(tree_.root(), clock_.clock());
    return *found_.meters.at(0);
  }
  FakeTree tree_;
  FakeClock clock_;
  FoundMeters found_;
};

TEST_F(CrayPm, NestsPartsInTheNode) {
  for (const char* f : {"energy", "cpu_energy", "memory_energy", "accel0_energy", "accel1_energy"}) put(f, "10 J 1 us");
  for (const char* f : {"power", "power_cap", "cpu_power", "generation", "version", "raw_scan_hz"}) put(f, "10");
  put("freshness", "1");
  const Meter& m = find();
  ASSERT_EQ(m.domains().size(), 5U);
  EXPECT_EQ(m.domains()[index_of(m, "node")].inside, std::nullopt);
  for (const char* part : {"cpu", "memory", "accel0", "accel1"}) {
    EXPECT_EQ(m.domains()[index_of(m, part)].inside, index_of(m, "node")) << part;
  }
  EXPECT_EQ(m.domains()[index_of(m, "accel1")].kind, DomainKind::accelerator);
}

TEST_F(CrayPm, NestsOneProcessorInAll) {
  for (const char* f : {"energy", "cpu_energy", "cpu0_energy"}) put(f, "10 J");
  const Meter& m = find();
  EXPECT_EQ(m.domains()[index_of(m, "cpu0")].inside, index_of(m, "cpu"));
}

TEST_F(CrayPm, ReadsBothFormsAndRefusesOtherUnits) {
  put("energy", "10 J");
  put("cpu_energy", "5");
  put("memory_energy", "7 kJ 9 us");
  Meter& m = find();
  m.read();
  put("energy", "14 J 900 us");
  put("cpu_energy", "6");
  clock_.advance(Seconds(1));
  EXPECT_EQ(m.read()[index_of(m, "node")].energy.value, 4);
  EXPECT_EQ(m.read()[index_of(m, "cpu")].energy.value, 1);
  EXPECT_EQ(m.read()[index_of(m, "memory")].state, DomainState::off);
}

TEST_F(CrayPm, TurnsOffWhenTheCountersStandStill) {
  put("energy", "10 J");
  put("freshness", "5");
  Meter& m = find();
  m.read();
  clock_.advance(Seconds(9));
  EXPECT_EQ(m.read()[0].state, DomainState::on);
  put("freshness", "6");
  clock_.advance(Seconds(9));
  EXPECT_EQ(m.read()[0].state, DomainState::on);
  clock_.advance(Seconds(11));
  EXPECT_EQ(m.read()[0].state, DomainState::turning_off);
  EXPECT_NE(m.read()[0].why_off.find("stood still"), std::string::npos);
}

TEST_F(CrayPm, GoesWithoutFreshness) {
  put("energy", "10 J");
  Meter& m = find();
  for (int i = 0; i < 10; ++i) {
    clock_.advance(Seconds(60));
    EXPECT_EQ(m.read()[0].state, DomainState::on);
  }
}

TEST_F(CrayPm, LeavesOutARestart) {
  put("energy", "1000000 J");
  put("freshness", "5");
  Meter& m = find();
  m.read();
  put("energy", "3 J");
  put("freshness", "6");
  clock_.advance(Seconds(1));
  EXPECT_EQ(m.read()[0].energy.value, 0);
  EXPECT_EQ(m.read()[0].lost_intervals, 1U);
}

}  // namespace
}  // namespace fallow::power
