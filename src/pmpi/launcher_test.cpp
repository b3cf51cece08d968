#include "pmpi/launcher.hpp"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace fallow::pmpi {
namespace {

bool is_set(const std::string& name) {
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (std::string_view(*entry).substr(0, name.size() + 1) == name + "=") return true;
  }
  return false;
}

TEST(Launcher, SlurmListsTasksByNode) {
  EXPECT_EQ(slurm_tasks("2", 0), 2);
  EXPECT_EQ(slurm_tasks("2", 1), 0);
  EXPECT_EQ(slurm_tasks("4(x2),3", 0), 4);
  EXPECT_EQ(slurm_tasks("4(x2),3", 1), 4);
  EXPECT_EQ(slurm_tasks("4(x2),3", 2), 3);
  EXPECT_EQ(slurm_tasks("1,2,16(x100)", 101), 16);
  EXPECT_EQ(slurm_tasks("1,2,16(x100)", 102), 0);
}

TEST(Launcher, AListThatIsNoneSaysNothing) {
  for (const char* list : {"", "x", "0", "-1", "2(x", "2(x3", "2(x0)", "2(y3)", "2;3", "99999999999", "2(x99999999999)", ","}) {
    EXPECT_EQ(slurm_tasks(list, 5), 0) << list;
  }
}

TEST(Launcher, MpisOwnWordCountsMoreThanSlurms) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"}) unsetenv(name);
  setenv("SLURM_STEP_TASKS_PER_NODE", "3,5", 1);
  setenv("SLURM_NODEID", "1", 1);
  EXPECT_EQ(launch_info().local_size, 5);
  unsetenv("SLURM_NODEID");
  EXPECT_EQ(launch_info().local_size, 3);
  setenv("MPI_LOCALNRANKS", "7", 1);
  EXPECT_EQ(launch_info().local_size, 7);
  unsetenv("MPI_LOCALNRANKS");
  unsetenv("SLURM_STEP_TASKS_PER_NODE");
  EXPECT_EQ(launch_info().local_size, 0);
}

TEST(Launcher, RanksAreNumbersFromZeroOn) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "MV2_COMM_WORLD_RANK", "PALS_RANKID", "SLURM_PROCID"}) unsetenv(name);
  unsetenv("PMI_RANK");
  setenv("PMI_RANK_OF_ANOTHER", "5", 1);
  EXPECT_EQ(launch_info().world_rank, -1);
  setenv("PMI_RANK", "0", 1);
  setenv("SLURM_PROCID", "3", 1);
  EXPECT_EQ(launch_info().world_rank, 0);
  for (const char* wrong : {"-1", "", "first"}) {
    setenv("PMI_RANK", wrong, 1);
    EXPECT_EQ(launch_info().world_rank, 3) << wrong;
  }
  for (const char* name : {"PMI_RANK", "PMI_RANK_OF_ANOTHER", "SLURM_PROCID"}) unsetenv(name);
}

TEST(Launcher, OtherLaunchersSayHowManyRanksANodeHas) {
  for (const char* name : {"MV2_COMM_WORLD_LOCAL_SIZE", "PMI_LOCAL_SIZE", "PALS_LOCAL_SIZE"}) {
    setenv(name, "6", 1);
    EXPECT_EQ(launch_info().local_size, 6) << name;
    unsetenv(name);
  }
}

TEST(Launcher, TheProgramsChildrenSeeNothingOfOurs) {
  setenv("FALLOW_DIR", "/somewhere", 1);
  setenv("OMPI_MCA_orte_launch_agent", "env FALLOW_RUN_ID=1 orted", 1);
  setenv("PRTE_MCA_prte_launch_agent", "env FALLOW_RUN_ID=1 prted", 1);
  setenv("PRTE_MCA_plm_base_verbose", "1", 1);
  setenv("LD_PRELOAD", "/somewhere/libfallow.so", 1);
  restore_environment();
  EXPECT_FALSE(is_set("LD_PRELOAD"));
  EXPECT_FALSE(is_set("FALLOW_DIR"));
  EXPECT_FALSE(is_set("OMPI_MCA_orte_launch_agent"));
  EXPECT_FALSE(is_set("PRTE_MCA_prte_launch_agent"));
  EXPECT_TRUE(is_set("PRTE_MCA_plm_base_verbose"));
}

TEST(Launcher, VariablesOfTheProgramStay) {
  for (const char* ours : {"FALLOW_MODE", "FALLOW_TEST_GAP", "FALLOW_DIR", "FALLOW_RUN_ID"}) setenv(ours, "1", 1);
  for (const char* theirs : {"FALLOW_LAND", "FALLOW_", "FALLOW_MODES", "FALLOW_mode"}) setenv(theirs, "1", 1);
  restore_environment();
  for (const char* ours : {"FALLOW_MODE", "FALLOW_TEST_GAP", "FALLOW_DIR", "FALLOW_RUN_ID"}) EXPECT_FALSE(is_set(ours)) << ours;
  for (const char* theirs : {"FALLOW_LAND", "FALLOW_", "FALLOW_MODES", "FALLOW_mode"}) {
    EXPECT_TRUE(is_set(theirs)) << theirs;
    unsetenv(theirs);
  }
}

TEST(Launcher, WhatElseIsPreloadedStays) {
  EXPECT_EQ(without_ours(""), "");
  EXPECT_EQ(without_ours("/lib/libfallow.so"), "");
  EXPECT_EQ(without_ours("/lib/libfallow.so:/lib/a.so b.so"), "/lib/a.so b.so");
  EXPECT_EQ(without_ours("/lib/a.so /lib/libfallow.so"), "/lib/a.so");
  EXPECT_EQ(without_ours("a.so:/lib/libfallow.so:b.so"), "a.so:b.so");
  EXPECT_EQ(without_ours("/lib/libfallow.so:/other/libfallow.so"), "");
  EXPECT_EQ(without_ours("/lib/libfallow.so.1:/lib/libmpi.so"), "/lib/libfallow.so.1:/lib/libmpi.so");
}

TEST(Launcher, WhatTheUserSetIsNotLent) {
  setenv("FALLOW_TEST_THEIRS", "3", 1);
  EXPECT_FALSE(lend("FALLOW_TEST_THEIRS", "2"));
  EXPECT_TRUE(lend("FALLOW_TEST_OURS", "2"));
  EXPECT_TRUE(is_set("FALLOW_TEST_OURS"));
  take_back("FALLOW_TEST_OURS");
  EXPECT_FALSE(is_set("FALLOW_TEST_OURS"));
  EXPECT_TRUE(is_set("FALLOW_TEST_THEIRS"));
  unsetenv("FALLOW_TEST_THEIRS");
}

}  // namespace
}  // namespace fallow::pmpi
