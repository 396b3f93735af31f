#include "simulator/engine/child_process.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

void nothing(ProcessPipe&) {}

// What a parent that waits for a number hears.
std::string failure_of(const ChildProcess::Body& body) {
  ChildProcess child("count", body);
  try {
    static_cast<void>(child.receive<int>());
  } catch (const RunError& error) {
    return error.what();
  }
  return "no failure";
}

bool has_children() {
  return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD;
}

TEST(ChildProcess, AnswersWhatItIsSent) {
  ChildProcess child("double", [](ProcessPipe& parent) {
    int value = 0;
    while (parent.read(&value, sizeof value) && value != 0) {
      value *= 2;
      if (!parent.write(&value, sizeof value)) return;
    }
  });
  for (const int value : {1, 21, -3}) {
    child.send(value);
    EXPECT_EQ(child.receive<int>(), 2 * value);
  }
  child.send(0);
  child.join();
  EXPECT_FALSE(has_children());
}

TEST(ChildProcess, ChangesNothingOfTheParents) {
  int value = 1;
  ChildProcess child("change", [&](ProcessPipe& parent) {
    value = 2;
    static_cast<void>(parent.write(&value, sizeof value));
  });
  EXPECT_EQ(child.receive<int>(), 2);
  child.join();
  EXPECT_EQ(value, 1);
}

TEST(ChildProcess, SaysHowItDied) {
  EXPECT_EQ(failure_of([](ProcessPipe&) { std::raise(SIGKILL); }),
            "cannot count: its process was killed by signal 9 (Killed)");
  EXPECT_EQ(failure_of([](ProcessPipe&) {
              std::fputs("\nno\tmore fingers\nand toes\n", stderr);
              std::raise(SIGKILL);
            }),
            "cannot count: its process was killed by signal 9 (Killed): no?more fingers");
  EXPECT_EQ(failure_of([](ProcessPipe&) { _exit(3); }),
            "cannot count: its process ended early, with status 3");
  EXPECT_EQ(failure_of(nothing), "cannot count: its process ended early, with status 0");
  EXPECT_EQ(failure_of([](ProcessPipe&) { throw std::runtime_error("too high"); }),
            "cannot count: too high");
  EXPECT_FALSE(has_children());
}

TEST(ChildProcess, JoinThrowsIfTheBodyDid) {
  ChildProcess child("count", [](ProcessPipe&) { throw std::runtime_error("too high"); });
  EXPECT_THROW(child.join(), RunError);
}

TEST(ChildProcess, SendingToTheDeadIsAnError) {
  ChildProcess child("count", [](ProcessPipe&) { std::raise(SIGKILL); });
  EXPECT_THROW(
      {
        for (;;) child.send(1);
      },
      RunError);
}

TEST(ChildProcess, IsKilledWhenNobodyWaits) {
  {
    const ChildProcess child("wait", [](ProcessPipe&) {
      for (;;) pause();
    });
    EXPECT_TRUE(has_children());
  }
  EXPECT_FALSE(has_children());
}

TEST(ChildProcess, LeavesTheParentsStandardStreamsAlone) {
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  std::fputs("written once", stdout);
  {
    ChildProcess child("chat", [](ProcessPipe&) {
      std::puts("to stdout");
      std::fflush(stdout);
      std::fputs("to stderr", stderr);
    });
    child.join();
  }
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "written once");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

void ignore(int) {}

TEST(ChildProcess, GoesOnAfterSignals) {
  struct sigaction action {};
  struct sigaction before {};
  action.sa_handler = ignore;
  ASSERT_EQ(sigaction(SIGUSR1, &action, &before), 0);
  const pid_t parent = getpid();
  ChildProcess child("interrupt", [parent](ProcessPipe& channel) {
    for (int i = 0; i < 20; ++i) {
      kill(parent, SIGUSR1);
      usleep(1000);
    }
    const int value = 7;
    static_cast<void>(channel.write(&value, sizeof value));
    for (int i = 0; i < 20; ++i) {
      kill(parent, SIGUSR1);
      usleep(1000);
    }
  });
  EXPECT_EQ(child.receive<int>(), 7);
  child.join();
  sigaction(SIGUSR1, &before, nullptr);
}

}  // namespace
}  // namespace paceline::simulator
