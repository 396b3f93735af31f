// Reads the topology that NCCL writes (NCCL_TOPO_DUMP_FILE) or is given (NCCL_TOPO_FILE): XML.
//
// Versions 1 and 2 of <system> are read, of NCCL 2.5 to 2.30 and RCCL. Of <gpu>: sm, the number of
// its PCI device, the speed and width of its PCI link, <nvlink> with target, count and tclass
// (0x0680.. is an NVSwitch). Of <net>: name, speed in Mbit/s, gdr; whether it is InfiniBand or
// Ethernet is told by the class of the PCI device around it. A dump is of one node, and of several
// where host_hash differs, as with NVLink between nodes. A file that is given to NCCL on virtual
// machines may list PCI devices only: GPUs are then those of class 0x0302 or 0x0300, and NICs those
// of class 0x0207, InfiniBand, at a rate that is not told. The facts of the
// format are from NVIDIA/nccl src/graph/xml.cc and topo.cc.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_nccl_topology(std::string_view text);

// Throws InputError (with line and column) if the text is no XML, nests more than 64 deep or has a
// document type, there is no <system> or no GPU in it, or a number is none.
[[nodiscard]] Imported parse_nccl_topology(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
