// A test's handle on the doubles of libcudart and libnccl. On the toolkit's own libraries all of it
// does nothing, so that the same test runs on a GPU.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace cuda_on_host {

// Which of the operations that can run runs next: the oldest at once (eager); the one that is
// waited for, as late as possible (latest); or any, by the seed (random).
enum class Order : int { eager = 0, latest = 1, random = 2 };

// Whether the doubles are there: they, and not the toolkit's libraries, were loaded.
[[nodiscard]] bool present();

// Forgets streams, memory, faults and races of earlier tests, and draws what follows from the seed.
void reset(Order order, std::uint64_t seed);
// The number-th call of the function from now on (1 is the next) returns `error`.
void fail(const std::string& function, int number, int error);
// From its number-th operation on, the device has a sticky error that calls return late.
void fail_device(int device, int number, int error);
// Bytes of each device; cudaMalloc fails beyond. 0 is without a limit.
void limit_memory(std::size_t bytes);
[[nodiscard]] long calls(const std::string& function);
// The number of calls of all functions since reset().
[[nodiscard]] long all_calls();
// Accesses that nothing orders: "race: A writes what B reads, not ordered".
[[nodiscard]] std::vector<std::string> races();
// Of the operations that ran, in their order: the same seed gives the same number.
[[nodiscard]] std::uint64_t schedule_hash();
// Handles, streams and memory that were not given back since reset(), in words.
[[nodiscard]] std::vector<std::string> leaks();
// Misuse throws std::logic_error in the thread that finds it, in place of aborting.
void throw_on_misuse(bool on);

}  // namespace cuda_on_host
