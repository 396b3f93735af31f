// A test's handle on the doubles of libcudart and libnccl. On the toolkit's own libraries all of it
// does nothing, so that the same test runs on a GPU.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/support/cuda_on_host/judged_wait.h"
#include "tests/support/cuda_on_host/order.h"

namespace cuda_on_host {

// Whether the doubles are there: they, and not the toolkit's libraries, were loaded.
[[nodiscard]] bool present();

// Forgets streams, memory, faults and races of earlier tests, and draws what follows from the seed.
void reset(Order order, std::uint64_t seed);
// The number-th call of the function from now on (1 is the next) returns `error`; with does_nothing a
// function of the CUDA runtime returns success, as if the call were not in the program.
void fail(const std::string& function, int number, int error);
// From its number-th operation on, the device has a sticky error that calls return late.
void fail_device(int device, int number, int error);
// Bytes of each device; cudaMalloc fails beyond. 0 is without a limit.
void limit_memory(std::size_t bytes);
// How many devices there are (8 after reset()); 0 is a machine without one.
void set_devices(int count);
[[nodiscard]] long calls(const std::string& function);
// The functions that were called since reset(), by name.
[[nodiscard]] std::vector<std::string> called_functions();
// The number of calls of all functions since reset().
[[nodiscard]] long all_calls();
// Accesses that nothing orders: "race: A writes what B reads, not ordered".
[[nodiscard]] std::vector<std::string> races();
// What a device's waits are for (trace.h): those of its streams for events, and those by which the host
// learns that an operation is done. The program runs as it does in every case.
// record_waits() begins to note them, numbered from 1; judged_waits() says of each what the program
// would be without it.
void record_waits(int device);
[[nodiscard]] std::vector<JudgedWait> judged_waits();
// From now on the check for races overlooks the number-th wait of the device.
void overlook_wait(int device, int number);
// For how long a thread that has its turn may be busy outside of CUDA before others go on (100 ms after
// reset()). Where the order of turns is no matter, less takes less time.
void pass_over_after(double seconds);
// A hash of the operations that ran, in their order: the same seed gives the same number.
[[nodiscard]] std::uint64_t schedule_hash();
// Handles, streams and memory that were not given back since reset(), in words.
[[nodiscard]] std::vector<std::string> leaks();
// Declares what the host does to memory, here and now; a race with operations that the host has not
// waited for is reported. Touches of memory of cudaHostAlloc are seen without it; registered memory
// and what system calls do are not.
void host_reads(const void* first, std::size_t bytes);
void host_writes(void* first, std::size_t bytes);
// Times of operations on a virtual clock, as clock.h says, until reset(). An empty text turns it off.
void set_clock(const std::string& model);
// How many accesses the check for races has to remember at present.
[[nodiscard]] std::size_t remembered_accesses();
// Misuse throws std::logic_error in the thread that finds it, in place of aborting.
void throw_on_misuse(bool on);

}  // namespace cuda_on_host
