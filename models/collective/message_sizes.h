// The sizes of the messages that a transport carries well.
//
// A schedule says what a rank sends to another in one step: a transfer. The executor
// (runtime/collective/executor.h) cuts a transfer into messages, so that the first can be sent on
// while the others are still to come. The runtime's transports say which sizes suit them, a profile
// carries the sizes to the simulator, and the executor engine cuts alike.
#pragma once

#include <cstdint>

#include "models/collective/schedule.h"

namespace paceline::models {

struct MessageSizes {
  // Messages smaller than this gain nothing by travelling earlier. In bytes, at least 1.
  std::int64_t smallest_bytes = 1;
  // Messages larger than this gain nothing by being fewer. In bytes, at least smallest_bytes.
  std::int64_t largest_bytes = 1;
  // A rank's sends may run this many bytes ahead of what it has received; 0 means without limit.
  // Between hosts, what runs ahead fills the queue of the host's link, and acknowledgements
  // of what comes in wait behind it: peers then run out of their TCP window, and links idle.
  std::int64_t ahead_bytes = 0;
};

// No message is larger: MPI counts its bytes in an int.
inline constexpr std::int64_t most_message_bytes = std::int64_t{1} << 30;

// The largest message, in bytes, that a collective on a bucket of `bucket_bytes` is cut into: a
// quarter of a rank's part of the bucket, within the transport's sizes. A part that is cut in four
// travels on while three quarters of it are still to come. Where nothing is added or sent on, in a
// schedule of one step that adds nothing, a transfer is one message, unless sends are held back.
[[nodiscard]] std::int64_t largest_message_bytes(const Schedule& schedule,
                                                 std::int64_t bucket_bytes,
                                                 const MessageSizes& sizes);

}  // namespace paceline::models
