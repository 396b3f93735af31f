// A test's handle on the double of libnccl, beside control.h. On the toolkit's library all of it does
// nothing.
#pragma once

#include <cstddef>

namespace cuda_on_host::nccl {

// Whether the double was loaded, and not the toolkit's library.
[[nodiscard]] bool present();
// Whether each rank is a process of its own (CUDA_ON_HOST_RANKS).
[[nodiscard]] bool ranks_are_processes();
// Forgets communicators and what follows. Call it beside cuda_on_host::reset().
void reset();
// A send of at most this many bytes completes before its receive begins. 0, as after reset(), lets no
// send but an empty one do so.
void buffer_sends(std::size_t bytes);
// After ncclCommAbort of one rank, the others see no asynchronous error.
void hide_aborts(bool hides);
// All communicators of the rank have the asynchronous error (an ncclResult_t) from now on.
void fail_rank(int rank, int error);
// Communicators that were not given back since reset().
[[nodiscard]] int live_communicators();

}  // namespace cuda_on_host::nccl
