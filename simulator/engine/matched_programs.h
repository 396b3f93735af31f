// The programs of all ranks for one bucket, and which receive takes each send: what the executor
// engine plays.
#pragma once

#include <cstdint>
#include <vector>

#include "models/collective/message_sizes.h"
#include "models/collective/rank_program.h"
#include "models/collective/schedule.h"

namespace paceline::simulator {

struct MatchedPrograms {
  std::vector<models::RankProgram> programs;  // of each rank
  // receives[rank][i] takes send i of the rank: an index into the receives of that send's receiver.
  std::vector<std::vector<std::uint32_t>> receives;
};

// Compiles each rank's part as the executor does (runtime/collective/executor.h), for a bucket of
// `bytes` in elements of `element_bytes` each, on a transport that carries messages of `sizes`.
[[nodiscard]] MatchedPrograms match_programs(const models::Schedule& schedule, std::int64_t bytes,
                                             std::int64_t element_bytes,
                                             const models::MessageSizes& sizes);

}  // namespace paceline::simulator
