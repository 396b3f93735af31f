// Reads the matrix that nvidia-smi topo -m prints: how GPUs and NICs of one node reach each other.
//
// Drivers from 375 (2017, "SOC") to 580 (2025, "NIC Legend", "GPU NUMA ID") are read. Cells are X,
// NV# (this many NVLinks), PIX, PXB, PHB, NODE, SYS or SOC. Rows of NICs and columns of affinities are
// not needed. The matrix names neither the GPU, which lines of nvidia-smi -L or of a report around it
// may do ("GPU 0: NVIDIA A100-SXM4-40GB"), nor the rate of a NIC nor the generation of PCI
// Express. It tells no switch of NVLinks from direct ones: machine_cluster.h does, by their number.
#pragma once

#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_nvidia_topology(std::string_view text);

// Throws InputError (with the line) if there is no matrix, a row of a GPU is missing or has fewer
// cells than the header, a cell is no path, or the matrix is not symmetric.
[[nodiscard]] Imported parse_nvidia_topology(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
