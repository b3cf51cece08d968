// The reader of platform files on thousands of damaged ones: it reads them or throws PlatformError, and nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "power/platform.hpp"

namespace fallow::power {
namespace {

constexpr unsigned kMutantsPerFile = 2500;
constexpr unsigned kSeed = 20250101;

std::vector<std::string> originals() {
  std::vector<std::string> texts;
  for (const auto& entry : std::filesystem::directory_iterator(FALLOW_PLATFORMS)) {
    std::ifstream in(entry.path(), std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    texts.push_back(text.str());
  }
  std::sort(texts.begin(), texts.end());  // the order of a directory is not the same everywhere
  return texts;
}

class Mutator {
 public:
  std::string operator()(std::string text) {
    const unsigned times = 1 + below(6);
    for (unsigned i = 0; i < times; ++i) once(text);
    return text;
  }
  unsigned below(std::size_t n) { return n == 0 ? 0 : static_cast<unsigned>(random_() % n); }

 private:
  void once(std::string& t) {
    static const std::vector<std::string> kTokens{
        "[", "]", "[[", "]]", "{", "}", "\"", "\"\"\"", "'", "=", ",", ".", "#", "\n", "\r", "nan", "-inf", "1e999",
        "-1", "99999999999999999999", "0x7fffffffffffffff", "1979-05-27T07:32:00Z", "true", "\xff\xfe", "\xef\xbb\xbf",
        "\\u0000", "\\UFFFFFFFF", "source", "core.at", "a.b.c.d", "[core]", "[[core.at]]", "[[[[[[[[[[", "{x={x={x={"};
    const std::size_t at = below(t.size() + 1);
    switch (below(7)) {
      case 0: t.insert(at, kTokens[below(kTokens.size())]); break;
      case 1: t.erase(at, below(40)); break;
      case 2: t.insert(at, 1, static_cast<char>(below(130))); break;
      case 3: if (at < t.size()) t[at] = static_cast<char>(t[at] ^ (1 << below(7))); break;
      case 4: t.resize(at); break;
      case 5: t.insert(at, t.substr(below(t.size() + 1), below(200))); break;
      default: swap_lines(t); break;
    }
  }
  void swap_lines(std::string& t) {
    const std::size_t a = t.find('\n', below(t.size() + 1));
    const std::size_t b = t.find('\n', below(t.size() + 1));
    if (a == std::string::npos || b == std::string::npos || a >= b) return;
    const std::string line = t.substr(a, t.find('\n', a + 1) - a);
    t.insert(b, line);
    t.erase(a, line.size());
  }
  std::mt19937 random_{kSeed};  // its sequence is fixed by the standard
};

void expect_sane(const Platform& p) {
  EXPECT_GE(p.cores(), 1U);
  EXPECT_FALSE(p.sources.empty());
  for (const Watts w : {p.core.compute, p.core.spin, p.core.sleep, p.memory.active, p.nic.active, p.base, p.switch_share}) {
    EXPECT_TRUE(std::isfinite(w.value) && w.value >= 0);
  }
  const Residency r{Seconds(1), Seconds(1), Seconds(1), Seconds(1), Seconds(1), Hertz(1.3e9), Hertz(9e9)};
  const PlatformEnergy e = platform_energy(p, Usage{std::span(&r, 1), 1, Seconds(5)});
  EXPECT_TRUE(std::isfinite(e.actual.total().value));
}

TEST(PlatformFuzz, ReadsOrRefusesAndNeverCrashes) {
  Mutator mutate;
  unsigned read = 0, refused = 0;
  for (const std::string& text : originals()) {
    for (unsigned i = 0; i < kMutantsPerFile; ++i) {
      const std::string mutant = mutate(text);
      try {
        expect_sane(parse_platform(mutant, "mutant.toml"));
        ++read;
      } catch (const PlatformError& e) {
        EXPECT_EQ(std::string(e.what()).rfind("mutant.toml", 0), 0U) << e.what();
        ++refused;
      }
    }
  }
  EXPECT_GE(read + refused, 6 * kMutantsPerFile);
  RecordProperty("read", static_cast<int>(read));
  RecordProperty("refused", static_cast<int>(refused));
  EXPECT_GT(refused, read / 10);  // both paths were taken, often
  EXPECT_GT(read, refused / 20);
}

TEST(PlatformFuzz, DeepNestingIsRefused) {
  for (const char* open : {"[", "{a="}) {
    std::string text = "x = ";
    for (int i = 0; i < 100000; ++i) text += open;
    EXPECT_THROW(parse_platform(text, "deep.toml"), PlatformError);
  }
}

TEST(PlatformFuzz, RandomBytesAreRefused) {
  std::mt19937 random(kSeed);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes(random() % 200, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    EXPECT_THROW(parse_platform(bytes, "bytes.toml"), PlatformError);
    for (char& c : bytes) c = static_cast<char>(c & 0x7f);
    EXPECT_THROW(parse_platform(bytes, "bytes.toml"), PlatformError);
  }
}

}  // namespace
}  // namespace fallow::power
