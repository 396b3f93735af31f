// One communicator's rules, and the answers to NCCL's questions. It reads the file that
// PACELINE_NCCL_TUNER_FILE names. Whatever is wrong is one line in NCCL's log, and NCCL then decides
// by itself: nothing here fails, for any failure would end the job.
//
// A decision depends on the function, the bytes, the ranks, the nodes and the file's bytes only, so
// that all ranks with the same file decide alike. The digest of the file is in the log, for people to
// compare. No two calls share state that changes: NCCL may call from any thread.
#pragma once

#include <cstddef>
#include <cstdint>

#include "runtime/nccl_tuner/tuner_api.h"
#include "runtime/nccl_tuner/tuner_file.h"

namespace paceline::nccl_tuner {

struct Tuner {
  int first[functions + 1];  // of each function in `rules`; those of the last end at [functions]
  Rule rules[1];             // as many as there are
};

// Null where there are no rules for the communicator; then NCCL decides. `log` may be null.
// `constants`, where not null, get the file's for this communicator.
[[nodiscard]] Tuner* make_tuner(std::size_t ranks, std::size_t nodes, Logger log,
                                Constants* constants) noexcept;
void destroy(Tuner* tuner) noexcept;

// Sets the cost of what the rule says to 0, by which NCCL takes it, and its channels. Nothing
// changes where there is no rule, or where NCCL has not got what the rule says (a negative cost).
void decide(const Tuner* tuner, int function, std::size_t bytes, float* costs, int cost_algorithms,
            int cost_protocols, int* channels) noexcept;

}  // namespace paceline::nccl_tuner
