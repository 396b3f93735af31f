// The old checkpoint is whole when writing the new one fails: by a full disk, a limit, or a kill.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <functional>
#include <random>

#include "models/base/error.h"
#include "runtime/training/checkpoint.h"
#include "tests/runtime/training/checkpoint_samples.h"
#include "tests/support/error_of.h"

namespace paceline::runtime {
namespace {

using test::large_checkpoint;
using test::run_error_of;
using test::TemporaryFolder;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

// The exit code of a child that runs `body`.
int exit_of(const std::function<int()>& body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body());
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST(CheckpointFaults, ALimitLeavesTheOldOneAndNoTemporaryFile) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", large_checkpoint(1, 1000));
  // Sizes at which the limit is met in the header, in the first array, in the second.
  for (const rlim_t limit : {16, 100, 1000, 100'000, 3'000'000, 4'000'000 - 1}) {
    const int code = exit_of([&] {
      std::signal(SIGXFSZ, SIG_IGN);
      const rlimit most{limit, limit};
      if (::setrlimit(RLIMIT_FSIZE, &most) != 0) return 3;
      const std::string error =
          run_error_of([&] { write_checkpoint(folder / "c", large_checkpoint(2, 500'000)); });
      return error == "cannot write " + folder / "c" + ": File too large" ? 0 : 1;
    });
    EXPECT_EQ(code, 0) << limit;
    EXPECT_THAT(folder.names(), ElementsAre("c"));
    EXPECT_EQ(read_checkpoint(folder / "c").iteration, 1);
  }
}

// Runs in a name space of its own, with a file system of 1 MiB.
int fill_a_disk(const std::string& folder) {
  if (::unshare(CLONE_NEWNS) != 0) return 77;
  if (::mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
  if (::mount("tmpfs", folder.c_str(), "tmpfs", 0, "size=1m") != 0) return 77;
  const std::string path = folder + "/c";
  write_checkpoint(path, large_checkpoint(1, 50'000));
  const std::string error =
      run_error_of([&] { write_checkpoint(path, large_checkpoint(2, 100'000)); });
  if (error != "cannot write " + path + ": No space left on device") return 1;
  if (std::filesystem::exists(path + ".partial")) return 2;
  if (read_checkpoint(path).iteration != 1) return 3;
  write_checkpoint(path, large_checkpoint(3, 50'000));  // what failed left its space
  return read_checkpoint(path).iteration == 3 ? 0 : 4;
}

TEST(CheckpointFaults, AFullDiskLeavesTheOldOneAndNoTemporaryFile) {
  const TemporaryFolder folder;
  const int code = exit_of([&] { return fill_a_disk(folder.path()); });
  if (code == 77) GTEST_SKIP() << "mounting a small tmpfs needs root";
  EXPECT_EQ(code, 0);
}

// Killed at any moment, many times: the path always holds a whole checkpoint.
TEST(CheckpointFaults, AKillLeavesTheOldOne) {
  const TemporaryFolder folder;
  const std::string path = folder / "c";
  constexpr std::size_t elements = 200'000;
  std::int64_t iteration = 1;
  write_checkpoint(path, large_checkpoint(iteration, elements));
  std::mt19937 generator(20181028);
  int killed_while_writing = 0;
  // 100 rounds, and more where a busy machine lets few of them be killed in time. A child says when
  // it begins to write, so that it does not matter how long it takes to start.
  for (int round = 0; round < 100 || (killed_while_writing < 20 && round < 2000); ++round) {
    int begins[2];
    ASSERT_EQ(::pipe(begins), 0);
    const pid_t child = ::fork();
    if (child == 0) {
      for (;;) {
        const Checkpoint next = large_checkpoint(++iteration, elements);
        if (::write(begins[1], "w", 1) != 1) ::_exit(1);
        write_checkpoint(path, next);
      }
    }
    char said = 0;
    ASSERT_EQ(::read(begins[0], &said, 1), 1);
    ::close(begins[0]);
    ::close(begins[1]);
    ::usleep(std::uniform_int_distribution<useconds_t>(0, 10'000)(generator));
    ::kill(child, SIGKILL);
    ASSERT_EQ(::waitpid(child, nullptr, 0), child);
    killed_while_writing += std::filesystem::exists(path + ".partial") ? 1 : 0;
    const Checkpoint checkpoint = read_checkpoint(path);
    ASSERT_GE(checkpoint.iteration, iteration);
    iteration = checkpoint.iteration;
    ASSERT_EQ(checkpoint.array("weights", elements),
              std::vector<float>(elements, static_cast<float>(iteration)));
    ASSERT_EQ(checkpoint.array("momentum", elements),
              std::vector<float>(elements, -static_cast<float>(iteration)));
  }
  RecordProperty("killed_while_writing", killed_while_writing);
  EXPECT_GE(killed_while_writing, 20);
  // The next write takes over what a killed one left.
  write_checkpoint(path, large_checkpoint(iteration + 1, 10));
  EXPECT_THAT(folder.names(), ElementsAre("c"));
  EXPECT_EQ(read_checkpoint(path).iteration, iteration + 1);
}

TEST(CheckpointFaults, TwoAtATimeOnOnePathAreNotMixed) {
  const TemporaryFolder folder;
  write_checkpoint(folder / "c", large_checkpoint(1, 10));
  const int other = ::open((folder / "c.partial").c_str(), O_RDWR | O_CREAT, 0666);
  ASSERT_EQ(::flock(other, LOCK_EX), 0);
  EXPECT_THAT(run_error_of([&] { write_checkpoint(folder / "c", large_checkpoint(2, 10)); }),
              HasSubstr("another process is writing it"));
  EXPECT_THAT(folder.names(), UnorderedElementsAre("c", "c.partial"));
  ::close(other);
  write_checkpoint(folder / "c", large_checkpoint(3, 10));
  EXPECT_EQ(read_checkpoint(folder / "c").iteration, 3);
}

TEST(CheckpointFaults, WhatCannotBeWrittenIsNamed) {
  const TemporaryFolder folder;
  const auto error_at = [](const std::string& path) {
    return run_error_of([&] { write_checkpoint(path, large_checkpoint(1, 1)); });
  };
  EXPECT_EQ(error_at(folder.path()), "cannot write " + folder.path() + ": it is no file");
  EXPECT_EQ(error_at("/dev/full"), "cannot write /dev/full: it is no file");
  EXPECT_THAT(error_at(folder / "none/c"), HasSubstr("none/c: No such file or directory"));
  std::ofstream(folder / "file");
  EXPECT_THAT(error_at(folder / "file/c"), HasSubstr("file/c: Not a directory"));
  Checkpoint checkpoint = large_checkpoint(1, 1);
  checkpoint.job = "\xff";
  EXPECT_THAT(run_error_of([&] { write_checkpoint(folder / "c", checkpoint); }),
              HasSubstr("no UTF-8"));
  EXPECT_THAT(folder.names(), ElementsAre("file"));
}

}  // namespace
}  // namespace paceline::runtime
