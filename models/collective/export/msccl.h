// A schedule as an algorithm file of MSCCL, which microsoft/msccl and Azure/msccl-executor-nccl run
// in place of NCCL's own algorithms (docs/formats.md).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "models/collective/catalogue.h"
#include "models/collective/schedule.h"

namespace paceline::models {

// The limits of MSCCL's fields (src/include/msccl.h; the XML parser of msccl-executor-nccl,
// msccl_parser.h). A schedule that needs more is refused.
struct MscclLimits {
  static constexpr int steps = 256;               // steps of a threadblock, "nop" included
  static constexpr int peers = 32;                // peers of a channel, in each direction
  static constexpr std::int64_t chunks = 32'767;  // an offset is an int16
  static constexpr std::int64_t count = 71;       // chunks of one instruction
  static constexpr std::size_t name = 63;
  // The size of a call up to which a file is chosen, as an int64. microsoft/msccl chooses below it
  // (so never with 0), msccl-executor-nccl up to it.
  static constexpr std::int64_t bytes = std::int64_t{1} << 50;
  // XML elements that one GPU reads: its own steps and threadblocks, all gpus, and algo.
  static constexpr std::size_t elements = 4095;
};

// The sizes of a call, in bytes, for which a runtime chooses a file: from `least_bytes` on, below
// `below_bytes`.
struct MscclChoice {
  std::int64_t least_bytes = 0;
  std::int64_t below_bytes = MscclLimits::bytes;
};

// One threadblock for each rank that a rank sends to and one for each that it receives from, all on
// one channel; none does both, so that no send waits for a receive that stands behind it.
//  - A step of the schedule becomes "s" here and "r" or "rrc" there, for at most 71 chunks each.
//  - Chunks are the least number that no message cuts; a GPU's instructions wait ("depid", "deps",
//    after "nop" where there are several) for those that wrote what they read, and for those that
//    read or wrote what they write. A send of a step reads before what arrives in that step.
//  - All but all-to-all is in place: all-reduce and reduce-scatter in the input buffer, all-gather
//    and broadcast (root 0) in the output buffer. What reduce-scatter leaves in the other parts of
//    the input is undefined. All-to-all is from the input to the output buffer.
// Every connection must hold one instruction's chunks; NCCL's hold at least two.
// Throws InputError for one rank, and for what MSCCL cannot express; the message says what.
[[nodiscard]] std::string msccl(Collective collective, const Schedule& schedule,
                                std::string_view name, const MscclChoice& choice = {});

// How many chunks that cuts a bucket into; the elements of a call must be a multiple of them. Throws
// InputError where they are too many.
[[nodiscard]] std::int64_t msccl_chunks(Collective collective, const Schedule& schedule);

}  // namespace paceline::models
