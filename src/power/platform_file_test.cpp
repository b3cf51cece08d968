#include <map>

#include "power/fake_tree.hpp"
#include "power/platform.hpp"

namespace fallow::power {
namespace {

const std::vector<std::filesystem::path> kPlatforms{FALLOW_PLATFORMS};

// A platform file in parts, so that a test can spoil one.
std::map<std::string, std::string> parts() {
  return {{"0", "name = \"x\"\ndescription = \"y\"\n"},
          {"base", "[base]\nnode_w = 70\nsource = \"s\"\n"},
          {"core", "[core]\nnominal_ghz = 2\ncompute_w = 10\nspin_w = 8\nyield_w = 7\nsleep_w = 1\nsource = \"s\"\n"},
          {"cpu", "[cpu]\nmodel = \"m\"\nsockets = 2\ncores_per_socket = 4\nsource = \"s\"\n"},
          {"link", "[link]\ngbit_s = 40\nlanes = 4\nlow_power_fraction = 0.43\nreact_us = 10\nport_w = 2\nsource = \"s\"\n"},
          {"memory", "[memory]\nidle_w = 4\nactive_w = 6\nsource = \"s\"\n"},
          {"nic", "[nic]\nidle_w = 9\nactive_w = 10\nsource = \"s\"\n"},
          {"switch", "[switch]\nshare_w = 4\nsource = \"s\"\n"}};
}

std::string join(const std::map<std::string, std::string>& p) {
  std::string text;
  for (const auto& [name, part] : p) text += part;
  return text;
}

std::string with(const std::string& name, const std::string& part) {
  auto p = parts();
  p[name] = part;
  return join(p);
}

std::string error_of(const std::string& text) {
  try {
    parse_platform(text, "f.toml");
  } catch (const PlatformError& e) {
    return e.what();
  }
  return "";
}

TEST(PlatformFile, ReadsEveryValue) {
  const Platform p = parse_platform(join(parts()), "f.toml");
  EXPECT_EQ(p.name, "x");
  EXPECT_EQ(p.cpu_model, "m");
  EXPECT_EQ(p.cores(), 8U);
  EXPECT_EQ(p.core.nominal, Hertz(2e9));
  EXPECT_EQ(p.core.compute, Watts(10));
  EXPECT_EQ(p.memory.active, Watts(6));
  EXPECT_EQ(p.link.rate, GigabitsPerSecond(40));
  EXPECT_EQ(p.link.lanes, 4U);
  EXPECT_EQ(p.link.react, Nanoseconds(10000));
  EXPECT_EQ(p.sources.size(), 7U);
}

TEST(PlatformFile, LeavesToTheSimulatorWhatIsIts) {
  auto p = parts();
  p["0"] += "ranks_per_node = 2\ncollectives = \"mpich\"\n";
  for (const char* table : {"message", "network", "node", "storage"}) p[table] = "[" + std::string(table) + "]\nx = 1\n";
  EXPECT_EQ(error_of(join(p)), "");
}

TEST(PlatformFile, TakesEscapedCharacters) {
  EXPECT_EQ(parse_platform(with("0", "name = \"\\u00fc\"\ndescription = \"y\"\n"), "f.toml").name, "\xc3\xbc");
}

TEST(PlatformFile, TakesAByteOrderMark) { EXPECT_EQ(parse_platform("\xef\xbb\xbf" + join(parts()), "f.toml").name, "x"); }

TEST(PlatformFile, SortsFrequencies) {
  const Platform p = parse_platform(
      with("core", parts().at("core") + "[[core.at]]\nghz=1\ncompute_w=4\nspin_w=3\n[[core.at]]\nghz=1.5\ncompute_w=6\nspin_w=5\n"),
      "f.toml");
  ASSERT_EQ(p.core.at.size(), 3U);
  EXPECT_EQ(p.core.at[0].frequency, Hertz(1e9));
  EXPECT_EQ(p.core.at[2].frequency, p.core.nominal);
  EXPECT_EQ(p.core.compute_at({}), Watts(10));
  EXPECT_DOUBLE_EQ(p.core.compute_at(Hertz(1.25e9)).value, 5);
  EXPECT_DOUBLE_EQ(p.core.spin_at(Hertz(1.75e9)).value, 6.5);
  EXPECT_EQ(p.core.compute_at(Hertz(0.1e9)), Watts(4));
  EXPECT_EQ(p.core.compute_at(Hertz(9e9)), Watts(10));
  EXPECT_DOUBLE_EQ(p.core.yield_at(Hertz(1e9)).value, 7.0 * 3 / 8);
}

TEST(PlatformFile, ErrorsNameFileLineAndWhat) {
  struct Case {
    std::string part, text, expected;
  };
  const std::vector<Case> cases{
      {"base", "[base]\nnode_w = 70\nnode_watts = 3\nsource = \"s\"\n", "f.toml:5: unknown key base.node_watts; did you mean node_w?"},
      {"base", "[base]\nsource = \"s\"\nnode_watts = 3\n",
       "f.toml:3: base.node_w is missing: watts between 0 and 100000; is node_watts in line 5 meant for it?"},
      {"base", "[base]\nsource = \"s\"\n", "f.toml:3: base.node_w is missing: watts between 0 and 100000"},
      {"base", "[base]\nnode_w = \"70\"\nsource = \"s\"\n", "f.toml:4: base.node_w must be watts between 0 and 100000"},
      {"base", "[base]\nnode_w = -1\nsource = \"s\"\n", "f.toml:4: base.node_w must be watts between 0 and 100000"},
      {"base", "[base]\nnode_w = nan\nsource = \"s\"\n", "f.toml:4: base.node_w must be watts between 0 and 100000"},
      {"base", "[base]\nnode_w = true\nsource = \"s\"\n", "f.toml:4: base.node_w must be watts between 0 and 100000"},
      {"base", "[base]\nnode_w = 70\n",
       "f.toml:3: base.source is missing: where the values come from, or 'assumption: ' and the reasoning"},
      {"base", "[base]\nnode_w = 70\nsource = {}\n", "f.toml:5: base.source.node_w is missing: a text"},
      {"base", "[base]\nnode_w = 70\nsource = {node_w = \"a\", x = \"b\"}\n", "f.toml:5: unknown key base.source.x"},
      {"base", "[base]\nnode_w = 70\nsource = 3\n",
       "f.toml:5: base.source must be a text, or a table with a text for each value"},
      {"base", "base = 3\n", "f.toml:3: base must be a table"},
      {"base", "", "f.toml:1: base is missing: a table"},
      {"0", "name = \"\"\ndescription = \"y\"\n", "f.toml:1: name must be a text, and not empty"},
      {"0", "name = \"x\"\ndescription = \"y\"\nwatts = 1\n", "f.toml:3: unknown key watts"},
      {"0", "name = \"x\"\ndescription = \n", "f.toml:2: "},
      {"0", "name = \"x\"\ndescription = \"\xc3\xbc\"\n", "f.toml:2: a character beyond ASCII"},
      {"0", "name = \"x\"\n\xcc\xaa = 1\n", "f.toml:2: a character beyond ASCII"},
      {"memory", "[memory]\nidle_w = 7\nactive_w = 6\nsource = \"s\"\n", "memory.idle_w is more than active_w"},
      {"cpu", "[cpu]\nmodel = \"m\"\nsockets = 2.5\ncores_per_socket = 4\nsource = \"s\"\n",
       "cpu.sockets must be a whole number"},
      {"cpu", "[cpu]\nmodel = \"m\"\nsockets = 0\ncores_per_socket = 4\nsource = \"s\"\n",
       "cpu.sockets must be a number between 1 and 1024"},
      {"core", parts().at("core") + "[[core.at]]\nghz = 2\ncompute_w = 1\nspin_w = 1\n", "lists a frequency twice"},
      {"core", parts().at("core") + "[[core.at]]\nghz = 1\ncompute_w = 1\nspin_w = 1\nmhz = 3\n", "unknown key core.at.mhz"},
      {"core", parts().at("core") + "at = 3\n", "core.at must be written [[core.at]]"},
      {"core", "[core]\nnominal_ghz = 2\ncompute_w = 10\nspin_w = 8\nyield_w = 7\nsleep_w = 9\nsource = \"s\"\n",
       "core.sleep_w is more than a core awake draws"},
  };
  for (const Case& c : cases) {
    const std::string error = error_of(with(c.part, c.text));
    EXPECT_NE(error.find(c.expected), std::string::npos) << "got:  " << error << "\nwant: " << c.expected;
    EXPECT_EQ(error.rfind("f.toml:", 0), 0U) << error;
  }
}

TEST(PlatformFile, AMissingKeyIsNotTakenForOneOfTheSimulators) {
  const std::string core = "[core]\nnominal_ghz = 2\ncompute_w = 10\nspin_w = 8\nyield_us = 1\nsleep_w = 1\nsource = \"s\"\n";
  EXPECT_EQ(error_of(with("core", core)), "f.toml:6: core.yield_w is missing: watts between 0 and 100000");
}

TEST(PlatformFile, EveryPresetReadsAndSaysWhereItsValuesComeFrom) {
  for (const char* name : {"generic", "zamani2007", "pascol2011", "kandalla2010", "minotauro", "hoefler2009", "marenostrum5", "perlmutter"}) {
    const Platform p = load_platform(name, kPlatforms);
    EXPECT_EQ(p.name, name);
    EXPECT_FALSE(p.description.empty());
    EXPECT_GE(p.sources.size(), 7U) << name;
    EXPECT_GT(p.assumptions().size(), 9U) << name;
    for (const ValueSource& s : p.sources) EXPECT_GT(s.source.size(), 10U) << name << " " << s.value;
  }
}

TEST(LoadPlatform, SearchesInOrderAndTakesPaths) {
  FakeTree tree;
  tree.write("a/x.toml", with("0", "name = \"from a\"\ndescription = \"y\"\n"));
  tree.write("b/x.toml", with("0", "name = \"from b\"\ndescription = \"y\"\n"));
  const std::vector<std::filesystem::path> dirs{tree.root() / "none", tree.root() / "b", tree.root() / "a"};
  EXPECT_EQ(load_platform("x", dirs).name, "from b");
  EXPECT_EQ(load_platform((tree.root() / "a/x.toml").string(), dirs).name, "from a");
}

TEST(LoadPlatform, SaysWhatThereIs) {
  try {
    load_platform("zamani", kPlatforms);
    FAIL();
  } catch (const PlatformError& e) {
    const std::string what = e.what();
    EXPECT_NE(what.find("no platform 'zamani' in " FALLOW_PLATFORMS), std::string::npos) << what;
    EXPECT_NE(what.find("minotauro"), std::string::npos) << what;
  }
  EXPECT_THROW(load_platform("zamani", {}), PlatformError);
  EXPECT_THROW(load_platform("/nonexistent/x.toml"), PlatformError);
  EXPECT_THROW(load_platform("/tmp/"), PlatformError);
  EXPECT_THROW(load_platform(""), PlatformError);
}

TEST(LoadPlatform, TakesNoFileThatIsTooLarge) {
  FakeTree tree;
  tree.write("x.toml", std::string((1 << 20) + 1, '#'));
  EXPECT_THROW(load_platform((tree.root() / "x.toml").string()), PlatformError);
}

TEST(PlatformDirectories, AreNotEmpty) { EXPECT_FALSE(platform_directories().empty()); }

}  // namespace
}  // namespace fallow::power
