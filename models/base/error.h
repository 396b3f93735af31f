// The kinds of error, by who can correct them.
//
//  - InputError: what the user gave is wrong. Only parsers and factories throw it. Exit code 2.
//  - RunError: the work failed (disk, peer, timeout). Exit code 1.
//  - UnavailableError: a part was not built in. The message says how to get it. Exit code 2.
//  - PACELINE_ASSERT: an invariant is broken, a defect of Paceline. It aborts; no input reaches it.
//
// Expected outcomes (a schedule that is no all-reduce) are return values, not errors.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

namespace paceline {

// Text of a user, made fit for a message: in quotes, on one line, cut after 60 bytes. Control
// characters and bytes that are not UTF-8 become '?'.
[[nodiscard]] std::string in_quotes(std::string_view text);

// Where in an input something is wrong. Line and column count from 1; 0 means unknown.
struct InputPlace {
  std::string file;  // a path, or an option as the user wrote it ("--ranks"); may be empty
  int line = 0;
  int column = 0;
};

class InputError : public std::runtime_error {
 public:
  // `problem` says what was found, `remedy` what would be right (may be empty). Whatever they
  // quote, the message is one line: control characters become '?'.
  InputError(InputPlace place, const std::string& problem, const std::string& remedy);
  InputError(const std::string& problem, const std::string& remedy)
      : InputError(InputPlace{}, problem, remedy) {}

  [[nodiscard]] const InputPlace& place() const { return place_; }
  [[nodiscard]] const std::string& problem() const { return problem_; }
  [[nodiscard]] const std::string& remedy() const { return remedy_; }
  // The same error with `place`, unless it has a place already.
  [[nodiscard]] InputError at(const InputPlace& place) const;

 private:
  InputPlace place_;
  std::string problem_;
  std::string remedy_;
};

class RunError : public std::runtime_error {
 public:
  // `operation` is what was tried ("write timeline.json"), `cause` why it failed.
  RunError(const std::string& operation, const std::string& cause)
      : std::runtime_error("cannot " + operation + ": " + cause) {}
};

class UnavailableError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

[[noreturn]] void assertion_failed(const char* condition, const char* meaning, const char* file,
                                   int line);

}  // namespace paceline

#define PACELINE_ASSERT(condition, meaning) \
  ((condition) ? static_cast<void>(0)       \
               : ::paceline::assertion_failed(#condition, meaning, __FILE__, __LINE__))
