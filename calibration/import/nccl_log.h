// Reads what NCCL prints with NCCL_DEBUG=INFO: the ranks and hosts of a job, its NICs, and how
// messages travel.
//
// Lines "HOST:PID:TID [DEV] NCCL INFO ..." of NCCL 2.3 to 2.30 and RCCL are read, with whatever
// stands before them, and other lines between; without HOST:PID:TID a log says nothing of nodes. Ranks and nodes are those of the
// communicator with the most ranks: "comm 0x.. rank 3 nranks 16 .. Init COMPLETE", or from 2.21 on
// "rank 3 nRanks 16 nNodes 2 localRanks 8". With NCCL_DEBUG_SUBSYS=INIT,GRAPH a log also has the
// tree of devices, with the bandwidth of NVLinks (NVL[264.0]) and NICs (NET[25.0], GB/s). The header
// of nccl-tests names the GPUs; NCCL does not. The facts of the format are from NVIDIA/nccl src/init.cc,
// src/graph/topo.cc and src/transport.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_nccl_log(std::string_view text);

// Throws InputError if no rank of a communicator is in the log, a rank is not below the number of
// ranks, or the log has more than 5 million lines.
[[nodiscard]] Imported parse_nccl_log(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
