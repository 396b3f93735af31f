// Reads the tables that OSU micro-benchmarks print: osu_allreduce and other collectives, osu_latency and
// osu_bw.
//
// Versions 3 to 7 are read: "Latency (us)", "Avg Latency(us)" and "Bandwidth (MB/s)"; with -f the
// columns of least, most and iterations; percentiles and "Validation" of 7.x; the line "#
// Datatype:" before or after the header; and the variants for devices (MPI-CUDA, MPI-ROCM) and for
// NCCL (osu_xccl_allreduce). If there are several columns, the average is taken. Tables of other
// benchmarks are left out, as long as there is one of these.
//
// osu_latency is a curve point to point (half of a round trip, as it prints). osu_bw has windows of
// messages in flight: its time by message is that of a stream, which tells the bandwidth and not the
// latency. 1 MB/s is 1e6 bytes/s. osu_latency and osu_bw run on two ranks. Collectives do not say
// on how many ranks they ran, and none says on how many nodes. Sizes may be of a rank's part
// (mpi_collectives.h). The format is that of
// mvapich.cse.ohio-state.edu/benchmarks, c/util/osu_util.c.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_osu(std::string_view text);

// Returns one curve for each table. Throws InputError (with the line) if there is no table of these,
// a row does not have the columns of its header, a cell is no number, or there are more than
// 100,000 rows. O(text).
[[nodiscard]] Imported parse_osu(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
