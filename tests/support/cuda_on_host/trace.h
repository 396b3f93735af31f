// A trace of a run, and what the run would be without any one of its waits. From the trace follows which
// operations happen before which, with and without a wait, for all waits at once; the check for races
// (happens_before.h) sees one program at a time.
//
// Which operations touch the same memory is compared over the whole trace. To give memory back is no
// touch: it waits for the device. The host's touches of pinned memory are noted too: while waits are recorded, pinned
// memory that operations use is closed to the host after every wait, and its first touch of a page then
// counts from there to the page's end. What it may touch in the run beside operations that it has not
// waited for is no matter of any wait.
//
// The host is one thread here, as in happens_before.h: all of its threads have waited for what one of
// them has.
#pragma once

#include <string>
#include <vector>

#include "tests/support/cuda_on_host/judged_wait.h"
#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host {

// Counts a wait of the device, and returns its number, from 1. 0 is no wait: the device's are not counted.
[[nodiscard]] int count_wait(int device);
[[nodiscard]] bool is_overlooked(int device, int wait);
// Whether the host's touches of this allocation are noted.
[[nodiscard]] bool records_touches(const std::byte* first);

// What is issued next comes after `earlier`; by the wait, unless that is 0.
void record_order(const Operation& earlier, int wait = 0);
void record_issue(const Operation& operation);
void record_host_wait(const Operation& operation, int wait);
// The host touches the memory.
void record_touch(const Access& access);
void forget_trace();

// The functions of control.h.
void record_waits(int device);
[[nodiscard]] std::vector<JudgedWait> judged_waits();
void overlook_wait(int device, int number);

}  // namespace cuda_on_host
