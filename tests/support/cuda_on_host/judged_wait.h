// What a program would be without one of its waits (trace.h).
#pragma once

#include <string>

namespace cuda_on_host {

enum class WithoutWait : int {
  races = 0,  // two operations touch the same memory, one of them writes, and nothing orders them
  is_covered = 1,  // all that touch the same memory are ordered by other waits; others are not
  is_same = 2,     // the same operations happen before the same
};
struct JudgedWait {
  WithoutWait without = WithoutWait::is_same;
  std::string what = {};  // "stream 2 of device 0 waits for Fill"
};

}  // namespace cuda_on_host
