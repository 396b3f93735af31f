#include "runtime/transport/launcher.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace paceline::runtime {
namespace {

class Launcher : public testing::Test {
 protected:
  Launcher() {
    for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMIX_RANK",
                             "SLURM_PROCID", "SLURM_STEP_NUM_TASKS"})
      unsetenv(name);
  }
};

TEST_F(Launcher, IsNotThereForAProcessOfItsOwn) {
  EXPECT_FALSE(started_by_launcher());
  EXPECT_FALSE(launched_rank().has_value());
  // The script of a batch job is no task of a step.
  setenv("SLURM_PROCID", "0", 1);
  EXPECT_FALSE(started_by_launcher());
}

TEST_F(Launcher, SaysWhichRankItStarted) {
  setenv("SLURM_PROCID", "3", 1);
  setenv("SLURM_STEP_NUM_TASKS", "8", 1);
  ASSERT_TRUE(launched_rank().has_value());
  EXPECT_EQ(launched_rank()->rank, 3);
  EXPECT_EQ(launched_rank()->ranks, 8);
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_EQ(launched_rank()->rank, 1);
  EXPECT_EQ(launched_rank()->ranks, 2);
  EXPECT_TRUE(started_by_launcher());
}

TEST_F(Launcher, MayNotSayWhichRank) {
  setenv("PMIX_RANK", "0", 1);
  EXPECT_TRUE(started_by_launcher());
  EXPECT_FALSE(launched_rank().has_value());
}

TEST_F(Launcher, IsNotReadFromWhatIsNoRank) {
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_FALSE(started_by_launcher());
  setenv("OMPI_COMM_WORLD_RANK", "one", 1);
  EXPECT_FALSE(started_by_launcher());
}

}  // namespace
}  // namespace paceline::runtime
