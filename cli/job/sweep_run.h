// Computes a sweep: blocks over the threads of this process, and over the ranks of a job where there
// is one. Rows come out in the order of cells on rank 0, whoever computed them.
//
// Blocks go to ranks in turn, a unit of some blocks each, and within a rank to the thread that is
// free. A rank runs ahead of the rows that rank 0 has taken by a fixed number of units, so that memory
// does not grow with the sweep.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "cli/job/sweep_rows.h"
#include "runtime/channel/channel.h"

namespace paceline::job {

struct SweepRun {
  const Sweep& sweep;
  SweepFormat format = SweepFormat::csv;
  int threads = 1;
  std::int64_t first_block = 0;         // those before it are there already; rank 0 says it
  runtime::Channel* channel = nullptr;  // of all ranks; null for a process by itself
};

// Called on rank 0 with the rows up to a cell.
using SweepSink = std::function<void(const std::string& rows, std::int64_t cells)>;

// All ranks call it. Throws InputError on a rank whose sweep is not rank 0's; RunError that names a
// rank that is gone; whatever sweep_rows() and the sink throw.
void run_sweep(const SweepRun& run, const SweepSink& sink);

}  // namespace paceline::job
