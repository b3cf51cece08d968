#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

class Hwmon : public testing::Test {
 protected:
  void put(int chip, const std::string& file, const std::string& text) {
    tree_.write("sys/class/hwmon/hwmon" + std::to_string(chip) + "/" + file, text + "\n");
  }
  Meter& find() {
    found_ = find_meters(tree_.root(), clock_.clock());
    return *found_.meters.at(0);
  }
  const Domain& domain(const std::string& name) {
    const Meter& m = *found_.meters.at(0);
    return m.domains()[index_of(m, name)];
  }
  FakeTree tree_;
  FakeClock clock_;
  FoundMeters found_;
};

TEST_F(Hwmon, AmdEnergyNestsCoresInSockets) {
  put(0, "name", "amd_energy");
  put(0, "energy1_label", "Ecore000");
  put(0, "energy1_input", "1");
  put(0, "energy2_label", "Esocket0");
  put(0, "energy2_input", "1");
  put(0, "energy3_label", "Esocket1");
  put(0, "energy3_input", "1");
  const Meter& m = find();
  EXPECT_EQ(m.domains().size(), 3U);
  EXPECT_EQ(domain("amd_energy/Ecore000").kind, DomainKind::core);
  EXPECT_TRUE(domain("amd_energy/Ecore000").inside);
  EXPECT_EQ(domain("amd_energy/Esocket1").kind, DomainKind::package);
  EXPECT_EQ(m.description().max_period.value, 60);
}

TEST_F(Hwmon, GraceNestsByDevice) {
  const char* names[] = {"Module Power Socket 0", "Grace Power Socket 0", "CPU Power Socket 0", "Module Power Socket 1",
                         "Grace Power Socket 1"};
  for (int i = 0; i < 5; ++i) {
    put(i, "name", "power_meter");
    put(i, "device/power1_oem_info", names[i]);
    put(i, "power1_average", "100000000");
  }
  find();
  EXPECT_EQ(domain("power_meter/Module Power Socket 1").kind, DomainKind::module);
  EXPECT_EQ(domain("power_meter/CPU Power Socket 0").kind, DomainKind::core);
  EXPECT_EQ(domain("power_meter/Grace Power Socket 1").kind, DomainKind::package);
}

TEST_F(Hwmon, PrefersCountersToSamplesAndMeansToInstants) {
  put(0, "name", "ibmpowernv");
  put(0, "energy1_input", "5000000");
  put(0, "energy1_label", "System");
  put(0, "power1_input", "1");
  put(0, "power1_label", "System");
  put(0, "power2_input", "7000000");
  put(0, "power2_average", "9000000");
  put(0, "power2_label", "Proc 0");
  Meter& m = find();
  ASSERT_EQ(m.domains().size(), 2U);
  EXPECT_EQ(domain("ibmpowernv/Proc 0").inside, index_of(m, "ibmpowernv/System"));
  m.read();
  clock_.advance(Seconds(1));
  EXPECT_DOUBLE_EQ(m.read()[index_of(m, "ibmpowernv/Proc 0")].energy.value, 9.0);
}

TEST_F(Hwmon, IntegratesAChangingPower) {
  put(0, "name", "power_meter");
  put(0, "power1_average", "100000000");
  Meter& m = find();
  EXPECT_EQ(m.description().resolution.value, 0);
  m.read();
  clock_.advance(Seconds(2));
  put(0, "power1_average", "300000000");
  EXPECT_DOUBLE_EQ(m.read()[0].energy.value, 400);
  put(0, "power1_average", "-5");  // a sensor near zero
  clock_.advance(Seconds(2));
  EXPECT_DOUBLE_EQ(m.read()[0].energy.value, 700);
}

TEST_F(Hwmon, TellsTwoChipsOfAKindApart) {
  for (int chip : {1, 2}) {
    put(chip, "name", "amdgpu");
    put(chip, "power1_average", "30000000");
    put(chip, "power1_label", "PPT");
  }
  find();
  EXPECT_EQ(domain("amdgpu/PPT").kind, DomainKind::accelerator);
  EXPECT_EQ(domain("amdgpu/PPT#2").kind, DomainKind::accelerator);
}

TEST_F(Hwmon, TemperaturesAndFansAreNoMeters) {
  put(0, "name", "coretemp");
  put(0, "temp1_input", "45000");
  put(0, "fan1_input", "1200");
  put(0, "power1_cap", "5");
  EXPECT_TRUE(find_meters(tree_.root(), clock_.clock()).meters.empty());
}

TEST_F(Hwmon, AChipWithoutANameGoesByItsDirectory) {
  put(7, "power1_input", "5");
  find();
  EXPECT_EQ(domain("hwmon7/power").kind, DomainKind::other);
}

}  // namespace
}  // namespace fallow::power
