// What every meter must do, on a tree of its own: here, gone, closed, nonsense, wrapping, vanishing, out of range.
#include <algorithm>
#include <cmath>
#include <functional>

#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

// A back end's tree. `set(watt_seconds)` moves its sources so that by the clock that much has been used since set(0).
struct Fake {
  std::string back_end;
  std::function<void(const FakeTree&)> build;
  std::vector<std::string> files;  // the first belongs to `domain`
  std::string domain;
  std::function<void(const FakeTree&)> step;  // ten seconds later, 1000 J later
  std::string garbage_survivor;               // a domain that stays on when the first file breaks; may be empty
};

constexpr Seconds kStep{10};
constexpr double kStepJoules = 1000;

const char* const kPackage = "sys/class/powercap/intel-rapl:0/energy_uj";
const char* const kDram = "sys/class/powercap/intel-rapl:0:1/energy_uj";

const char* const kNvml = "usr/lib/libnvidia-ml.so.1";

std::vector<Fake> fakes() {
  return {
      {"powercap",
       [](const FakeTree& t) {
         t.write("sys/class/powercap/intel-rapl/enabled", "1\n");
         t.write("sys/class/powercap/intel-rapl:0/name", "package-0\n");
         t.write("sys/class/powercap/intel-rapl:0/max_energy_range_uj", "262143328850\n");
         t.write(kPackage, "262143000000\n");
         t.write("sys/class/powercap/intel-rapl:0:1/name", "dram\n");
         t.write("sys/class/powercap/intel-rapl:0:1/max_energy_range_uj", "65712999613\n");
         t.write(kDram, "5\n");
       },
       {kPackage, kDram},
       "package-0",
       [](const FakeTree& t) { t.write(kPackage, "999671149\n"); },  // through the wrap: 1000 J
       "package-0/dram"},
      {"cray_pm",
       [](const FakeTree& t) {
         t.write("sys/cray/pm_counters/energy", "500000 J 1516739293 us\n");
         t.write("sys/cray/pm_counters/cpu_energy", "300000 J 1516739293 us\n");
         t.write("sys/cray/pm_counters/freshness", "77\n");
       },
       {"sys/cray/pm_counters/energy", "sys/cray/pm_counters/cpu_energy"},
       "node",
       [](const FakeTree& t) {
         t.write("sys/cray/pm_counters/energy", "501000 J 1526739293 us\n");
         t.write("sys/cray/pm_counters/freshness", "177\n");
       },
       "cpu"},
      {"hwmon",
       [](const FakeTree& t) {
         t.write("sys/class/hwmon/hwmon3/name", "power_meter\n");
         t.write("sys/class/hwmon/hwmon3/power1_average", "100000000\n");
         t.write("sys/class/hwmon/hwmon4/name", "amd_energy\n");
         t.write("sys/class/hwmon/hwmon4/energy1_input", "12\n");
         t.write("sys/class/hwmon/hwmon4/energy1_label", "Esocket0\n");
       },
       {"sys/class/hwmon/hwmon3/power1_average", "sys/class/hwmon/hwmon4/energy1_input"},
       "power_meter/power",
       [](const FakeTree&) {},  // 100 W all the time
       "amd_energy/Esocket0"},
      {"nvml",
       [](const FakeTree& t) {
         if (!std::filesystem::exists(t.root() / kNvml)) t.copy(kNvml, FALLOW_FAKE_NVML_NEW);
         t.write("sys/fake-nvml/card0/energy", "81000000\n");
         t.write("sys/fake-nvml/card0/uuid", "GPU-0a1b2c3d-0000-0000-0000-000000000000\n");
         t.write("sys/fake-nvml/card1/power", "55000\n");  // an older one
         t.write("sys/fake-nvml/card1/uuid", "GPU-9f8e7d6c-0000-0000-0000-000000000000\n");
       },
       {"sys/fake-nvml/card0/energy", "sys/fake-nvml/card1/power"},
       "gpu0 GPU-0a1b2c3d",
       [](const FakeTree& t) { t.write("sys/fake-nvml/card0/energy", "82000000\n"); },
       "gpu1 GPU-9f8e7d6c"},
  };
}

const MeterBackEnd& back_end(const std::string& name) {
  for (const MeterBackEnd& b : meter_back_ends()) {
    if (b.name == name) return b;
  }
  std::abort();
}

class MeterConformance : public testing::TestWithParam<Fake> {
 protected:
  Probe probe() { return back_end(GetParam().back_end).find(tree_.root(), clock_.clock()); }
  std::unique_ptr<Meter> built() {
    GetParam().build(tree_);
    Probe p = probe();
    EXPECT_TRUE(p.meter) << p.reason;
    return std::move(p.meter);
  }
  DomainReading read(Meter& meter, const std::string& domain) { return meter.read()[index_of(meter, domain)]; }

  FakeTree tree_;
  FakeClock clock_;
};

TEST_P(MeterConformance, DescribesItself) {
  const auto meter = built();
  EXPECT_EQ(meter->name(), GetParam().back_end);
  EXPECT_FALSE(meter->domains().empty());
  EXPECT_FALSE(meter->description().measures.empty());
  EXPECT_GT(meter->description().min_period.value, 0);
  EXPECT_GE(meter->description().max_period.value, meter->description().min_period.value);
  for (const Domain& d : meter->domains()) {
    EXPECT_FALSE(d.name.empty());
    if (d.inside) {
      EXPECT_LT(*d.inside, meter->domains().size());
      EXPECT_NE(&meter->domains()[*d.inside], &d);
    }
  }
  EXPECT_EQ(meter->read().size(), meter->domains().size());
}

TEST_P(MeterConformance, CountsFromTheFirstRead) {
  const auto meter = built();
  for (const DomainReading& r : meter->read()) {
    EXPECT_EQ(r.energy.value, 0);
    EXPECT_EQ(r.state, DomainState::on) << r.why_off;
  }
  clock_.advance(kStep);
  GetParam().step(tree_);
  const DomainReading after = read(*meter, GetParam().domain);
  EXPECT_EQ(after.state, DomainState::on) << after.why_off;
  EXPECT_NEAR(after.energy.value, kStepJoules, 1e-3);
}

TEST_P(MeterConformance, SaysWhatIsMissing) {
  const Probe p = probe();
  EXPECT_FALSE(p.meter);
  EXPECT_NE(p.reason.find(tree_.root().string()), std::string::npos) << p.reason;
  EXPECT_FALSE(p.remedy.empty());
}

TEST_P(MeterConformance, SaysThatItIsClosed) {
  GetParam().build(tree_);
  for (const std::string& file : GetParam().files) tree_.forbid(file);
  const Unprivileged user;
  const Probe p = probe();
  EXPECT_FALSE(p.meter);
  EXPECT_NE(p.reason.find("ermission denied"), std::string::npos) << p.reason;
  EXPECT_NE(p.remedy.find("readable"), std::string::npos) << p.remedy;
}

TEST_P(MeterConformance, LooksThroughGarbageBeforehand) {
  for (const std::string garbage : {"", "\n", "zwölf", "-", "0x11", "\x01\xff\xfe", "99999999999999999999999999"}) {
    GetParam().build(tree_);
    for (const std::string& file : GetParam().files) tree_.write(file, garbage);
    const Probe p = probe();
    if (!p.meter) {
      EXPECT_FALSE(p.reason.empty());
      continue;
    }
    for (const DomainReading& r : p.meter->read()) EXPECT_EQ(r.state, DomainState::turning_off) << garbage;
  }
}

TEST_P(MeterConformance, TurnsOffOnceAndTheOthersGoOn) {
  const auto break_it = [&](int how) {
    const std::string& file = GetParam().files.front();
    if (how == 0) tree_.remove(file);
    if (how == 1) tree_.write(file, "garbage");
    if (how == 2) tree_.write(file, "9999999999999999999999999999999");
    if (how == 3) tree_.write(file, "");
  };
  for (int how = 0; how < 4; ++how) {
    const auto meter = built();
    meter->read();
    clock_.advance(kStep);
    GetParam().step(tree_);
    const double before = read(*meter, GetParam().domain).energy.value;
    break_it(how);
    clock_.advance(Seconds(1));
    DomainReading r = read(*meter, GetParam().domain);
    EXPECT_EQ(r.state, DomainState::turning_off);
    EXPECT_FALSE(r.why_off.empty());
    EXPECT_EQ(r.energy.value, before);
    GetParam().build(tree_);  // mended, but off stays off: what it missed is not known
    clock_.advance(Seconds(1));
    r = read(*meter, GetParam().domain);
    EXPECT_EQ(r.state, DomainState::off);
    EXPECT_EQ(r.energy.value, before);
    EXPECT_EQ(read(*meter, GetParam().garbage_survivor).state, DomainState::on);
  }
}

TEST_P(MeterConformance, SurvivesTheWholeTreeVanishing) {
  const auto meter = built();
  meter->read();
  tree_.remove("sys");
  for (int i = 0; i < 3; ++i) {
    clock_.advance(kStep);
    for (const DomainReading& r : meter->read()) {
      EXPECT_EQ(r.state, i == 0 ? DomainState::turning_off : DomainState::off);
    }
  }
}

TEST_P(MeterConformance, NeverCountsWhatCannotBe) {
  const auto meter = built();
  meter->read();
  for (const char* huge : {"18446744073709551615", "9223372036854775807", "0", "4294967296"}) {
    for (const std::string& file : GetParam().files) tree_.write(file, huge);
    clock_.advance(Seconds(1));
    for (const DomainReading& r : meter->read()) {
      EXPECT_TRUE(std::isfinite(r.energy.value));
      EXPECT_GE(r.energy.value, 0);
      EXPECT_LT(r.energy.value, 1e6);
    }
  }
}

TEST_P(MeterConformance, SurvivesAClockThatThrows) {
  GetParam().build(tree_);
  const Probe p = back_end(GetParam().back_end).find(tree_.root(), []() -> Nanoseconds { throw 1; });
  ASSERT_TRUE(p.meter);
  for (const DomainReading& r : p.meter->read()) EXPECT_EQ(r.state, DomainState::turning_off);
  for (const DomainReading& r : p.meter->read()) EXPECT_NE(r.state, DomainState::on);
}

INSTANTIATE_TEST_SUITE_P(All, MeterConformance, testing::ValuesIn(fakes()),
                         [](const auto& param_info) { return param_info.param.back_end; });

TEST(MeterConformanceCoverage, EveryBackEndHasAFake) {
  const auto all = fakes();
  for (const MeterBackEnd& b : meter_back_ends()) {
    EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Fake& f) { return f.back_end == b.name; })) << b.name;
  }
}

}  // namespace
}  // namespace fallow::power
