// The orders in which the doubles run operations, and what a test makes calls do.
#pragma once

namespace cuda_on_host {

// Which of the operations that can run runs next: the oldest at once (eager); the one that is
// waited for, as late as possible (latest); or any, by the seed (random).
enum class Order : int { eager = 0, latest = 1, random = 2 };

// In place of the error of an injected fault (control.h).
inline constexpr int does_nothing = -1;

}  // namespace cuda_on_host
