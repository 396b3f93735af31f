// Questions to libraries and programs that may hang or crash, asked in a child process with a time
// limit.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <string>

namespace paceline::doctor {

// What a child answered, or why there is no answer.
struct Answer {
  bool is_there = false;
  bool is_silent = false;  // the child hung or crashed
  std::string text;        // what was answered, or why not: "it did not answer within 5 s"
};

// Runs a question in a forked child, whose standard streams lead nowhere. Start all children before
// the first answer is asked for: they run at the same time. Call it before there are threads.
class BoundedChild {
 public:
  // The question returns its answer as text. An exception from it is no answer, and its message
  // says why.
  explicit BoundedChild(const std::function<std::string()>& question);
  // Kills the child and all that it started. It does not wait for a child that cannot die, as one
  // that a driver holds.
  ~BoundedChild();
  BoundedChild(const BoundedChild&) = delete;
  BoundedChild& operator=(const BoundedChild&) = delete;

  // Waits for the answer until the deadline. `limit` is what the message says of it.
  [[nodiscard]] Answer answer(std::chrono::steady_clock::time_point deadline,
                              std::chrono::milliseconds limit);

 private:
  pid_t process_ = -1;
  int pipe_ = -1;
};

}  // namespace paceline::doctor
