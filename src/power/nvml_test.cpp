#include <algorithm>
#include <set>

#include "power/fake_tree.hpp"

namespace fallow::power {
namespace {

constexpr const char* kLibrary = "usr/lib/libnvidia-ml.so.1";

class Nvml : public testing::Test {
 protected:
  void install(const char* library = FALLOW_FAKE_NVML_NEW) { tree_.copy(kLibrary, library); }
  void put(const std::string& file, const std::string& text) { tree_.write("sys/fake-nvml/" + file, text + "\n"); }
  void put_card(int n, const std::string& uuid) {
    const std::string card = "card" + std::to_string(n);
    put(card + "/energy", "1000");
    put(card + "/power", "60000");
    put(card + "/uuid", uuid);
    put(card + "/name", "NVIDIA Example");
  }
  Probe probe() {
    const auto all = meter_back_ends();
    const auto nvml = std::find_if(all.begin(), all.end(), [](const MeterBackEnd& b) { return b.name == "nvml"; });
    return nvml->find(tree_.root(), clock_.clock());
  }
  std::unique_ptr<Meter> find() {
    Probe p = probe();
    EXPECT_TRUE(p.meter) << p.reason;
    return std::move(p.meter);
  }
  int uses() { return std::stoi("0" + tree_.read("sys/fake-nvml/uses")); }
  FakeTree tree_;
  FakeClock clock_;
};

TEST_F(Nvml, CountsEachCardAsAWhole) {
  install();
  put_card(0, "GPU-0a1b2c3d-1111-2222-3333-444455556666");
  put_card(1, "GPU-9f8e7d6c-1111-2222-3333-444455556666");
  put("card1/name", "NVIDIA Other");
  const auto meter = find();
  ASSERT_EQ(meter->domains().size(), 2U);
  EXPECT_EQ(meter->domains()[0].name, "gpu0 GPU-0a1b2c3d");
  EXPECT_EQ(meter->domains()[1].name, "gpu1 GPU-9f8e7d6c");
  for (const Domain& d : meter->domains()) EXPECT_EQ(d.kind, DomainKind::accelerator);
  EXPECT_DOUBLE_EQ(meter->description().resolution.value, 1e-3);
  EXPECT_EQ(meter->description().max_period.value, 60);
  EXPECT_NE(meter->description().measures.find("(1 x NVIDIA Example, 1 x NVIDIA Other)"), std::string::npos);
  EXPECT_NE(meter->description().measures.find("the rest of the node are not in it"), std::string::npos);
  EXPECT_EQ(meter->description().measures.find("summed"), std::string::npos);
  meter->read();
  put("card1/energy", "251000");
  clock_.advance(Seconds(1));
  const auto readings = meter->read();
  EXPECT_DOUBLE_EQ(readings[0].energy.value, 0);
  EXPECT_DOUBLE_EQ(readings[1].energy.value, 250);
}

TEST_F(Nvml, NamesAreUniqueAndNeedNoUuid) {
  install();
  put_card(0, "GPU-0a1b2c3d");
  put_card(1, "GPU-0a1b2c3d");
  put_card(2, std::string(500, 'x'));
  tree_.remove("sys/fake-nvml/card1/uuid");
  const auto meter = find();
  std::set<std::string> names;
  for (const Domain& d : meter->domains()) names.insert(d.name);
  EXPECT_EQ(names.size(), 3U);
  EXPECT_EQ(meter->domains()[1].name, "gpu1");
}

TEST_F(Nvml, SumsPowerWhereThereIsNoCounter) {
  for (const char* library : {FALLOW_FAKE_NVML_NEW, FALLOW_FAKE_NVML_OLD}) {
    FakeTree fresh;
    fresh.copy(kLibrary, library);
    fresh.write("sys/fake-nvml/card0/power", "100000");
    if (library == std::string(FALLOW_FAKE_NVML_OLD)) fresh.write("sys/fake-nvml/card0/energy", "5");  // nobody can ask
    const FoundMeters found = find_meters(fresh.root(), clock_.clock());
    ASSERT_EQ(found.meters.size(), 1U);
    Meter& meter = *found.meters[0];
    EXPECT_EQ(meter.description().resolution.value, 0);
    EXPECT_LE(meter.description().max_period.value, 1);
    EXPECT_NE(meter.description().measures.find("means of a second on Ampere"), std::string::npos);
    meter.read();
    clock_.advance(Seconds(2));
    fresh.write("sys/fake-nvml/card0/power", "300000");
    EXPECT_DOUBLE_EQ(meter.read()[0].energy.value, 400);
  }
}

TEST_F(Nvml, ALostCardTurnsOffAndTheOthersGoOn) {
  install();
  put_card(0, "GPU-00000000");
  put_card(1, "GPU-11111111");
  const auto meter = find();
  meter->read();
  put("card0/energy", "error 15");
  put("card1/energy", "3000");
  clock_.advance(Seconds(1));
  auto readings = meter->read();
  EXPECT_EQ(readings[0].state, DomainState::turning_off);
  EXPECT_NE(readings[0].why_off.find("the card is lost"), std::string::npos) << readings[0].why_off;
  EXPECT_NE(readings[0].why_off.find("NVML error 15"), std::string::npos) << readings[0].why_off;
  EXPECT_DOUBLE_EQ(readings[1].energy.value, 2);
  put("card0/energy", "9000");  // back after a reset: what it used meanwhile is not known
  put("card1/energy", "4000");
  readings = meter->read();
  EXPECT_EQ(readings[0].state, DomainState::off);
  EXPECT_DOUBLE_EQ(readings[1].energy.value, 3);
}

TEST_F(Nvml, ACallThatCeasesToBeSupportedTurnsItsCardOff) {
  install();
  put_card(0, "GPU-00000000");
  const auto meter = find();
  meter->read();
  put("card0/energy", "error 3");
  EXPECT_EQ(meter->read()[0].state, DomainState::turning_off);
}

TEST_F(Nvml, LeavesOutACounterThatBeginsAnew) {
  install();
  put_card(0, "GPU-00000000");
  put("card0/energy", "900000000");
  const auto meter = find();
  meter->read();
  put("card0/energy", "4000");
  clock_.advance(Seconds(1));
  DomainReading r = meter->read()[0];
  EXPECT_EQ(r.state, DomainState::on);
  EXPECT_EQ(r.energy.value, 0);
  EXPECT_EQ(r.lost_intervals, 1U);
  put("card0/energy", "5000");
  clock_.advance(Seconds(1));
  r = meter->read()[0];
  EXPECT_DOUBLE_EQ(r.energy.value, 1);
  EXPECT_EQ(r.lost_intervals, 1U);
}

TEST_F(Nvml, SaysWhatCouldNotBeReadOfOthers) {
  install();
  put_card(0, "GPU-00000000");
  put_card(1, "GPU-11111111");
  put("card1/handle", "error 4");
  const auto meter = find();
  ASSERT_EQ(meter->domains().size(), 1U);
  EXPECT_NE(meter->description().measures.find("nor is what could not be read: gpu1: permission denied (NVML error 4)"), std::string::npos)
      << meter->description().measures;
}

struct Fault {
  const char* file;
  const char* text;
  const char* reason;
  const char* remedy;
};

TEST_F(Nvml, SaysWhyThereIsNoCard) {
  const Fault faults[] = {
      {"init", "error 9", "the NVIDIA driver is not loaded (NVML error 9)", "load their driver"},
      {"init", "error 4", "permission denied (NVML error 4)", "readable"},
      {"init", "error 18", "another version than the loaded driver (NVML error 18)", "load the driver again"},
      {"init", "error 999", "Unknown Error (NVML error 999)", "nvidia-smi"},
      {"count", "error 17", "keeps the card's device from this process (NVML error 17)", "ask for the cards"},
      {"card0/handle", "error 15", "gpu0: the card is lost", "dmesg"},
      {"card0/energy", "error 16", "gpu0: the card needs a reset", "nvidia-smi --gpu-reset"},
  };
  for (const Fault& fault : faults) {
    SCOPED_TRACE(fault.reason);
    tree_.remove("sys");
    install();
    put_card(0, "GPU-00000000");
    put(fault.file, fault.text);
    const Probe p = probe();
    EXPECT_FALSE(p.meter);
    EXPECT_NE(p.reason.find(fault.reason), std::string::npos) << p.reason;
    EXPECT_NE(p.remedy.find(fault.remedy), std::string::npos) << p.remedy;
    EXPECT_EQ(uses(), 0);
  }
}

TEST_F(Nvml, SaysThatThereIsNoCard) {
  install();
  const Probe none = probe();
  EXPECT_FALSE(none.meter);
  EXPECT_NE(none.reason.find("no card"), std::string::npos) << none.reason;
  tree_.make_dir("sys/fake-nvml/card0");  // one that tells neither energy nor power
  const Probe silent = probe();
  EXPECT_FALSE(silent.meter);
  EXPECT_NE(silent.reason.find("gpu0: not supported by this card"), std::string::npos) << silent.reason;
  EXPECT_FALSE(silent.remedy.empty());
  EXPECT_EQ(uses(), 0);
}

TEST_F(Nvml, SaysThatTheLibraryIsTooOldOrNone) {
  install(FALLOW_FAKE_NVML_ANCIENT);
  put_card(0, "GPU-00000000");
  const Probe old = probe();
  EXPECT_FALSE(old.meter);
  EXPECT_NE(old.reason.find("has no nvmlInit_v2"), std::string::npos) << old.reason;
  EXPECT_NE(old.remedy.find("update"), std::string::npos) << old.remedy;
  FakeTree other;
  other.write(kLibrary, "not a library at all, but long enough to be looked at as if it were one: "
                        "the header of such a file has 64 bytes");
  const FoundMeters found = find_meters(other.root(), clock_.clock());
  const auto nvml = std::find_if(found.missing.begin(), found.missing.end(), [](const MissingMeter& m) { return m.name == "nvml"; });
  ASSERT_NE(nvml, found.missing.end());
  EXPECT_NE(nvml->reason.find((other.root() / kLibrary).string()), std::string::npos) << nvml->reason;
}

TEST_F(Nvml, EndsWhatItBegins) {
  install();
  put_card(0, "GPU-00000000");
  auto first = find();
  EXPECT_EQ(uses(), 1);
  auto second = find();
  EXPECT_EQ(uses(), 2);
  first.reset();
  EXPECT_EQ(uses(), 1);
  second->read();
  second.reset();
  EXPECT_EQ(uses(), 0);
}

TEST_F(Nvml, SurvivesTheDriverGoing) {
  install();
  put_card(0, "GPU-00000000");
  put_card(1, "GPU-11111111");
  const auto meter = find();
  meter->read();
  for (const char* card : {"card0", "card1"}) put(std::string(card) + "/energy", "error 1");
  for (const DomainReading& r : meter->read()) EXPECT_EQ(r.state, DomainState::turning_off);
  tree_.remove("usr");
  for (const DomainReading& r : meter->read()) EXPECT_EQ(r.state, DomainState::off);
}

}  // namespace
}  // namespace fallow::power
