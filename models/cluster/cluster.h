// A cluster as a value: equal nodes of equal ranks, joined inside by an intra-node link and
// outside by NICs and a fabric. Each number is a Figure: it names its source.
//
// A slot is a place for a rank: slot s is place s mod g of node s div g, g ranks to a node.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/cluster/fabric.h"
#include "models/cluster/platform.h"

namespace paceline::models {

// A processor that runs one rank. Rates are peaks from the datasheet; the two efficiencies
// say what share of them a training step reaches on compute-bound and memory-bound layers.
struct Device {
  std::string name;
  std::string description;
  Figure<FlopsPerSecond> fp32;
  std::optional<Figure<FlopsPerSecond>> tf32;
  std::optional<Figure<FlopsPerSecond>> fp16;         // vector units
  std::optional<Figure<FlopsPerSecond>> fp16_tensor;  // matrix units
  std::optional<Figure<FlopsPerSecond>> bf16;
  Figure<BytesPerSecond> memory_bandwidth;
  Figure<Bytes> memory;
  Figure<double> compute_efficiency;
  Figure<double> memory_efficiency;
};

// A full-duplex link. In each direction, n bytes take latency + n / bandwidth.
struct Link {
  std::string name;
  std::string description;
  Figure<BytesPerSecond> line_rate;  // nominal, per direction
  Figure<BytesPerSecond> bandwidth;  // what a message gets, per direction
  Figure<Seconds> latency;           // one way, per message
};

// How messages of a node's ranks use its NICs, where the node has several.
enum class NicUse {
  striped,   // each message is spread over all NICs of its node, as NCCL's channels do
  affinity,  // a rank uses the NIC of its slot only: slot * nics / g
};

// The slot of rank r in a job of p ranks, on the ceil(p/g) nodes that the job fills.
enum class Placement {
  node_major,   // slot r: ranks fill one node after the other
  round_robin,  // node r mod ceil(p/g): one rank goes to each node, then a second to each
};

struct Cluster {
  std::string name;
  std::string description;
  int nodes = 1;
  int ranks_per_node = 1;  // g
  Device device;
  Link intra;  // one port or lane inside the node (intra_kind)
  Link nic;    // one NIC
  int nics_per_node = 1;
  NicUse nic_use = NicUse::striped;
  IntraKind intra_kind = IntraKind::switched;
  Fabric fabric;
  std::optional<Figure<Seconds>> hop_latency;  // the figure behind fabric.hop_latency
  Placement placement = Placement::node_major;
  std::vector<int> slots;            // if not empty: rank r sits in slots[r], all distinct
  std::map<int, double> slow_nodes;  // by node, the share of its NICs' bandwidth that is left
  // A platform takes the place of nodes, NICs and fabric: each host is a rank. Null if not given.
  std::shared_ptr<const Platform> platform;
  std::optional<Link> host_link;                     // for copies to the device; if absent, `intra`
  std::optional<Figure<BytesPerSecond>> storage;     // read bandwidth of one node
  std::optional<Figure<PerSecond>> decode_per_node;  // samples that a node decodes and augments
  std::string profile;  // name of the shipped profile that calibrates it; may be empty
  std::string source;   // where the description comes from

  [[nodiscard]] int ranks() const { return nodes * ranks_per_node; }
};

}  // namespace paceline::models
