#include "pmpi/pause.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <sstream>
#include <string>

namespace fallow::pmpi {
namespace {

bool cpu_has(const std::string& flag) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("flags", 0) != 0) continue;
    std::istringstream words(line);
    for (std::string word; words >> word;) {
      if (word == flag) return true;
    }
    break;
  }
  return false;
}

TEST(Pause, TakesWhatTheKernelSeesInTheProcessor) {
  const Rest expected = cpu_has("waitpkg") ? Rest::tpause : cpu_has("mwaitx") ? Rest::mwaitx : Rest::pause;
  EXPECT_EQ(choose_rest(), expected);
}

TEST(Pause, RestsInAnInstructionThatThisProcessorHas) {
  EXPECT_EXIT(
      {
        for (int i = 0; i < 1000; ++i) rest_briefly();
        _exit(0);
      },
      testing::ExitedWithCode(0), "");  // an unknown instruction ends by SIGILL, one that does not return by the test's limit
}

}  // namespace
}  // namespace fallow::pmpi
