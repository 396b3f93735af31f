// Why a tuned plan is as it is, for people: what each bucket would lose by its next best choices, what
// would help the plan most, and what it is worth in bad states of the world.
#pragma once

#include <string>
#include <vector>

#include "cli/job/robust_tuning.h"
#include "cli/job/tuning.h"
#include "cli/table.h"

namespace paceline::cli {

// A change of a plan in a few words: "ring", "one gradient less", "merged with the next".
[[nodiscard]] std::string described(const simulator::PlanChange& change);

// Two cells of a bucket's row: its next best choice, and by how much longer the iteration is with it.
struct NextBest {
  std::string change;
  std::string loses;
};
// "-" twice where nothing was tried.
[[nodiscard]] NextBest next_best(const job::Tuning& tuning, std::size_t bucket);

inline constexpr std::size_t unlimited_rows = static_cast<std::size_t>(-1);

// A row for each change of each bucket of a plan with this period; and the table in at most `width`
// columns below its heading, of the changes that lose least, `most` of them.
[[nodiscard]] Table why_table(const std::vector<std::vector<simulator::Alternative>>& of_buckets,
                              Seconds period);
[[nodiscard]] std::string why_text(
    const std::vector<std::vector<simulator::Alternative>>& of_buckets, Seconds period, int width,
    std::size_t most = unlimited_rows);

// "  what would help most: NIC bandwidth, twice as good: 8.1 % (with this plan)\n", or nothing where
// nothing was asked.
[[nodiscard]] std::string help_text(const job::Tuning& tuning);

// The plans with the least 95th percentile and the least stated time, the runtime's own, and which of
// them is chosen.
[[nodiscard]] std::string robust_text(const job::RobustTuning& robust);

}  // namespace paceline::cli
