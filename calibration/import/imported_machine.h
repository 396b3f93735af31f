// What a file of another tool says of a machine: GPUs, what joins them, NICs. machine_cluster.h makes
// a cluster description of it. What the file does not say is 0, empty or absent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/cluster/cluster.h"

namespace paceline::calibration {

enum class NicKind { unknown, infiniband, roce, sockets, efa };

struct ImportedNic {
  std::string name;  // "mlx5_0"
  NicKind kind = NicKind::unknown;
  double gbit_per_s = 0;
  std::optional<bool> gpudirect = {};
  std::optional<models::NicDistance> distance = {};  // of the nearest GPU
  int adapter = -1;  // alike of NICs behind one PCIe bridge (PIX); -1: not told

  // Whether no host bridge stands between it and a GPU.
  [[nodiscard]] bool is_beside_gpu() const {
    return distance && *distance <= models::NicDistance::pxb;
  }
};

// How the GPUs of a node reach each other.
enum class Inside {
  unknown,
  nvlink,         // every two by NVLink, through a switch or directly
  nvlink_mesh,    // some two by NVLink, and every GPU has as many links as every other
  nvlink_partly,  // some two by NVLink
  xgmi,           // every two by a link of AMD's Infinity Fabric
  xgmi_partly,    // some two
  pcie,
  host_memory,  // through the host's memory, since they cannot reach each other
};

struct ImportedMachine {
  int nodes = 0;
  int gpus_per_node = 0;
  int hosts_per_node = 1;         // several where NVLink joins them (MNNVL)
  std::string device;             // a name of the catalogue
  std::string device_as_written;  // as the file names it
  int compute_capability = 0;     // 80: 8.0
  Inside inside = Inside::unknown;
  std::string without_nvlink;  // GPUs that have none where others have some: "GPU2"
  int nvlinks = 0;             // of each GPU
  // The fewest and the most NVLinks between two GPUs; 0 unless NVLink joins every two.
  int nvlinks_of_pair = 0;
  int most_nvlinks_of_pair = 0;
  int nvlink_generation = 0;  // where the file tells it apart from the device
  std::string farthest;  // the path between the two GPUs that are farthest apart: "PIX" to "SYS"
  int pcie_generation = 0;
  int pcie_width = 0;
  std::vector<ImportedNic> nics = {};
};

}  // namespace paceline::calibration
