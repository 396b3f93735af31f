// The switch carries frames between the TAP devices of hosts, and delivers each when the fabric says
// that it arrives. It is one thread, which sleeps until a host sends or a frame is due.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "experiments/lab/switch/fabric.h"
#include "experiments/lab/switch/lateness.h"
#include "experiments/lab/switch/tap.h"

namespace paceline::lab {

struct SwitchReport {
  std::int64_t wire_bytes = 0;
  std::int64_t refused = 0;  // frames that a host's device did not take
  Nanoseconds held_up = 0;   // time for which frames were due and nothing was delivered
  // How much the emulation adds to the latency of each frame that was delivered.
  Lateness lateness;
};

class Switch {
 public:
  // One device for each host of the fabric. Frames that are later than `late_after` are held up.
  // Throws std::system_error.
  Switch(Fabric fabric, std::vector<Tap> taps, Nanoseconds late_after);
  Switch(const Switch&) = delete;
  Switch& operator=(const Switch&) = delete;
  ~Switch();

  // Carries frames until `stopped` says so, which is asked after each wake-up; a signal wakes it.
  SwitchReport run(const std::function<bool()>& stopped);

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace paceline::lab
