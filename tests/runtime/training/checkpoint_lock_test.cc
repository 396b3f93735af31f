// One job writes the checkpoints of a path at a time, and what a killed one leaves keeps nobody out.
#include "runtime/training/checkpoint_lock.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>

#include "models/base/error.h"
#include "tests/support/error_of.h"
#include "tests/support/temporary_folder.h"

namespace paceline::runtime {
namespace {

using test::error_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

std::string text_of(const std::string& path) {
  std::ifstream in(path);
  return {std::istreambuf_iterator<char>(in), {}};
}

TEST(CheckpointLock, KeepsASecondJobOutAndSaysWhoHasIt) {
  const TemporaryFolder folder;
  {
    const CheckpointLock lock(folder / "c");
    EXPECT_THAT(folder.names(), ElementsAre("c.lock"));
    const std::string error = error_of([&] { CheckpointLock(folder / "c"); });
    EXPECT_THAT(error, HasSubstr(fmt::format("{}: process {} on ", folder / "c", ::getpid())));
    EXPECT_THAT(error, HasSubstr("writes its checkpoints there; give another path, or wait"));
    const CheckpointLock of_another_path(folder / "d");
  }
  EXPECT_THAT(folder.names(), IsEmpty());
  const CheckpointLock again(folder / "c");
}

// Two names of one file are one path.
TEST(CheckpointLock, FollowsLinks) {
  const TemporaryFolder folder;
  std::filesystem::create_symlink("c", folder / "link");
  const CheckpointLock lock(folder / "c");
  EXPECT_THAT(error_of([&] { CheckpointLock(folder / "link"); }), HasSubstr("process"));
}

TEST(CheckpointLock, WhatAKilledJobLeavesKeepsNobodyOut) {
  const TemporaryFolder folder;
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const CheckpointLock lock(folder / "c");
    if (::write(ready[1], "r", 1) != 1) ::_exit(1);
    ::pause();
    ::_exit(0);
  }
  char said = 0;
  ASSERT_EQ(::read(ready[0], &said, 1), 1);
  EXPECT_THAT(error_of([&] { CheckpointLock(folder / "c"); }),
              HasSubstr(fmt::format("process {} on", child)));
  ::kill(child, SIGKILL);
  ASSERT_EQ(::waitpid(child, nullptr, 0), child);
  EXPECT_THAT(folder.names(), ElementsAre("c.lock"));
  const CheckpointLock lock(folder / "c");
  EXPECT_THAT(text_of(folder / "c.lock"), HasSubstr(fmt::format("process {} on", ::getpid())));
}

TEST(CheckpointLock, LeavesTheFilesOfOthersAlone) {
  const TemporaryFolder folder;
  std::ofstream(folder / "c.lock") << "precious\n";
  EXPECT_THAT(error_of([&] { CheckpointLock(folder / "c"); }),
              HasSubstr("which is no lock of paceline; give another path, or move that file away"));
  EXPECT_EQ(text_of(folder / "c.lock"), "precious\n");
}

}  // namespace
}  // namespace paceline::runtime
