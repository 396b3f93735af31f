// A virtual clock of the double: how long each operation would take on a device that a test describes.
// Off by default: times of events then mean nothing, but that they rise.
//
// An operation begins when its stream has come to it, when all that it waits for has ended, when the
// host has issued it, and when its copy engine has time for it (a device has one for each way between
// host and device). It takes what the first rule says whose text is part of its name: seconds, and bytes over a
// rate. Parts of one transfer or collective of NCCL begin together. Kernels of different streams run
// beside each other, and each goes on at 1 / beside of its speed for as long as what ran before it in
// other streams is under way. What is issued later does not slow down what has run, so that a test
// that wants times takes the order `eager` and issues first what runs beside.
//
// The same program has the same times. A thread of the host has a clock of its own, which goes on by
// what a call costs and by what it waits for.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host {

struct ClockRule {
  std::string what;  // part of the operation's name; "*" is part of every name
  double seconds = 0;
  double bytes_per_s = 0;  // 0: bytes take no time
};

struct ClockModel {
  bool is_on = false;
  // The time of a call that puts something into a stream. The launch of a graph counts as two calls.
  double host_s = 0;
  double event_s = 0;  // that the record of an event takes
  double beside = 1;   // at least 1
  double jitter =
      0;  // each time is off by up to this much of itself, either way, as the seed draws
  bool bodies = true;  // whether anything runs: what is only timed leaves its memory as it is
  std::vector<ClockRule> rules = {};
};

// "host=2e-6; event=1e-6; beside=1.5; jitter=0.1; bodies=0; copy host to device=5e-6+12e9; *=3e-6+1e12"
// Aborts (die) for another text. Copies are called "copy host to device" and so on, kernels as
// readable_name() has them, NCCL's operations "all-reduce", "send" and "receive". Bytes are those of a
// copy, those that a kernel reads and writes, and those of a collective or of one way of a group of
// transfers. An empty text turns the clock off.
[[nodiscard]] ClockModel parse_clock(const std::string& text);

// A stretch of time in which a stream of a device is busy.
struct Busy {
  const void* stream = nullptr;
  double begin = 0;
  double end = 0;
};

struct ClockState {
  ClockModel model;
  std::mt19937_64 random{1};  // of jitter alone
  std::vector<Busy> busy;     // of all devices, by age
  // When the copy engines of each device, to it and from it, are busy, in the order of time.
  std::vector<std::vector<Busy>> engines;
};

// Sets when the operation begins and ends. It stands at the head of its stream.
void set_times(Operation& operation);

}  // namespace cuda_on_host
