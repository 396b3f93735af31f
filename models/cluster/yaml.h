// Clusters as people write them (docs/formats.md, "Cluster").
//
//   cluster: my-lab
//   description: what it is             # optional, as are source, storage ... profile
//   nodes: 16
//   ranks_per_node: 8
//   device: v100                        # a name, or {base: v100, memory: 32 GB}, or all figures
//   intra: nvlink2                      # a name, or {base: nvlink2, topology: ring, latency: 2 us}
//   nic: {base: roce-25g, count: 2, latency: 3 us, use: striped}
//   fabric: flat                        # or a mapping: fat-tree, torus, rail, platform
//   placement: node-major               # or round-robin, or [slot of rank 0, slot of rank 1, ...]
//   host_link: pcie3-x16
//   storage: 2 GB/s                     # read bandwidth of a node
//   decode: 12000 images/s              # of a node
//   host: {peer_to_peer: false}         # what ranks of a node share
//   power: {host_share: 0.3}            # of what is drawn in training; or {node: 8 kW}
//   price: 24.48 USD/h                  # of a node; or the name of an offer in the catalogue
//   profile: my-profile.json
//
// A figure is a value with its unit, or {value, low, high, provenance, source}. Figures of a user's
// file are `datasheet` with source FILE:LINE unless they say otherwise.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "models/cluster/cluster.h"

namespace paceline::models {

// The text of a file that a cluster names. Throws InputError if it cannot be read.
using FileReader = std::function<std::string(const std::string& path)>;

// `file` names the text in errors. Throws InputError with file, line and column. A platform that
// the fabric names is read with `read`, its path relative to that of `file`; without one it is
// refused.
[[nodiscard]] Cluster parse_cluster_yaml(std::string_view text, const std::string& file,
                                         const FileReader& read = {});

}  // namespace paceline::models
