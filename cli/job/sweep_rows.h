// The rows of a sweep, block by block.
//
// A block is some cells in a row that share a predictor, which is made for the block alone: timers
// remember what they were asked, and may answer in the last bits by it. So a block has the same bytes
// whoever computes it, and whatever was computed before.
#pragma once

#include <cstdint>
#include <string>

#include "cli/job/sweep.h"

namespace paceline::job {

enum class SweepFormat { csv, json_lines };

inline constexpr std::int64_t most_block_cells = 64;

// Blocks are numbered in the order of their cells.
class SweepBlocks {
 public:
  explicit SweepBlocks(const Sweep& sweep);

  [[nodiscard]] std::int64_t count() const { return count_; }
  // The number of the first cell of a block, or for count() of all cells.
  [[nodiscard]] std::int64_t first_cell(std::int64_t block) const;
  // The block that begins with this cell, or ends before it. -1 if none does.
  [[nodiscard]] std::int64_t block_at(std::int64_t cell) const;

 private:
  std::int64_t inner_ = 1;      // cells that may share a predictor
  std::int64_t per_inner_ = 1;  // blocks of these
  std::int64_t count_ = 0;
};

// The line of titles of a CSV; empty for JSON lines.
[[nodiscard]] std::string sweep_header(SweepFormat format);

// The rows of a block, each with a line feed. A cell that cannot be (ranks that do not fit, a batch
// that does not fit into memory, an option that does not fit the ranks, what has too many messages to
// follow) has a row that says why. Throws UnavailableError where an engine is not built in.
[[nodiscard]] std::string sweep_rows(const Sweep& sweep, const SweepBlocks& blocks,
                                     std::int64_t block, SweepFormat format);

}  // namespace paceline::job
