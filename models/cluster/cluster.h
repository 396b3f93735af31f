// A cluster as a value: equal nodes of equal ranks, joined inside by an intra-node link and
// outside by NICs and a fabric. Each number is a Figure: it names its source.
//
// A slot is a place for a rank: slot s is place s mod g of node s div g, g ranks to a node.
#pragma once

#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/cluster/effects.h"
#include "models/cluster/expenses.h"
#include "models/cluster/fabric.h"
#include "models/cluster/platform.h"

namespace paceline::models {

// When a rank adds what it receives to what it has.
enum class Reduction {
  while_receiving,  // as NCCL's kernels do: it takes no time beside the transfer, and a measured bus
                    // bandwidth has it in it
  after_receiving,  // by a processor, message after message
};

// How a GPU is cooled: `geforce` cards have fans of their own and slow one another down where
// several stand side by side.
enum class Cooling { passive, geforce };

// The library of collectives of a device's vendor. Paceline has a model of NCCL alone.
enum class VendorLibrary { nccl, rccl, hccl, xla, mpi };
inline constexpr std::array<std::pair<VendorLibrary, std::string_view>, 5> vendor_libraries = {
    {{VendorLibrary::nccl, "NCCL"},
     {VendorLibrary::rccl, "RCCL"},
     {VendorLibrary::hccl, "HCCL"},
     {VendorLibrary::xla, "XLA"},
     {VendorLibrary::mpi, "MPI"}}};

// How other tools name a device.
struct DeviceNames {
  std::vector<std::string> products;  // without "NVIDIA " and the like: "A100-SXM4-40GB"
  std::vector<std::string> pci;       // device numbers on the PCI bus, "0x20b0" (pci-ids.ucw.cz)
};

// Rates that a transformer's kernels reach in 16 bits, measured one kernel at a time.
// Kernels of fused attention: FlashAttention (Dao 2022, arXiv 2205.14135), FlashAttention-2 (Dao 2023, arXiv 2307.08691)
// and FlashAttention-3 (Shah 2024, arXiv 2407.08608), which cuDNN's is as fast as.
enum class AttentionKernel { flash_1, flash_2, flash_3 };
inline constexpr std::array<std::pair<AttentionKernel, std::string_view>, 3> attention_kernels = {
    {{AttentionKernel::flash_1, "flash-1"},
     {AttentionKernel::flash_2, "flash-2"},
     {AttentionKernel::flash_3, "flash-3"}}};

struct TransformerKernels {
  // Share of the dense peak that matrix products reach whose weights have sides of `full_side` and more, and of
  // that share those whose smaller side is `middle_side` and `small_side`.
  Figure<double> product;
  double middle_share = 1;
  double small_share = 1;
  static constexpr double full_side = 4096, middle_side = 2048, small_side = 512;
  // FLOP/s of the forward pass of fused causal attention with heads of 128 over long sequences, half of the
  // square counted, and the length of a sequence over which it reaches half of that.
  Figure<FlopsPerSecond> attention;
  // The same of a kernel that is named; nothing where it is not known, or does not run on the device.
  std::array<std::optional<Figure<FlopsPerSecond>>, 3> attention_by = {};
  double half_rate_sequence = 0;
  // The rate of a product with sides of `full_side` in FP8, without casts of its operands, over that in 16 bits;
  // nothing where the device has no FP8.
  std::optional<Figure<double>> fp8;
  // The throughput of a training step that nobody calibrated over the one that all these give.
  Figure<double> reached;
};

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
  std::optional<Figure<Watts>> power;  // rated: the most that the board draws for long
  // The throughput of a training step that nobody calibrated, over the one that the roofline with
  // these efficiencies, and the fixed time of each layer, give; in FP32 and in mixed precision.
  Figure<double> roofline_efficiency;
  Figure<double> roofline_efficiency_mixed;
  // The rates of a transformer's kernels; nothing where nobody has measured them.
  std::optional<TransformerKernels> transformer;
  std::optional<int> multiprocessors;    // of a GPU (NVIDIA's SMs)
  std::optional<int> year;               // from which it was to be had
  std::optional<VendorLibrary> library;  // NCCL for GPUs that state none
  int compute_capability = 0;   // of CUDA, major times ten plus minor; 0 where it is not known
  int nvlink_generation = 0;    // 0 where it has none, or is not known
  bool has_peer_access = true;  // over PCI Express, to the memory of its like
  DeviceNames names;
  Cooling cooling = Cooling::passive;
  Reduction reduction = Reduction::after_receiving;
};

// What carries a link's bytes. `shared_memory` is a copy of the host's on the way between devices.
enum class LinkKind {
  nvlink,
  xgmi,  // AMD's Infinity Fabric between devices
  ici,   // between TPUs
  pcie,
  ethernet,
  infiniband,
  omni_path,
  efa,
  shared_memory
};
[[nodiscard]] std::string_view name(LinkKind kind);

// TCP passes the processors, which copy and so share the work of all ranks of a node.
enum class Protocol { rdma, tcp };

// A full-duplex link. In each direction, n bytes take latency + n / bandwidth.
struct Link {
  std::string name;
  std::string description;
  Figure<BytesPerSecond> line_rate;  // nominal, per direction
  Figure<BytesPerSecond> bandwidth;  // what a message gets, per direction
  Figure<Seconds> latency;           // one way, per message
  std::optional<LinkKind> kind;      // nothing where a user's link does not say
  Protocol protocol = Protocol::rdma;
  // The latency of a step that a network's plugin reports to NCCL. NCCL adds it to its own constants
  // when it chooses an algorithm. 0 for networks that NCCL supports without a plugin.
  Seconds told_latency{0};
  // How many TCP flows share the work, where the bandwidth follows the rule for them
  // (link_rules.h).
  std::optional<int> tcp_flows;
  // The bandwidths of a link inside a node, if they depend on how many ranks of the node are in
  // use, by the least number of ranks that each is for. `bandwidth` is then that of the most ranks.
  std::map<int, Figure<BytesPerSecond>> bandwidth_by_ranks;

  [[nodiscard]] bool is(LinkKind what) const { return kind && *kind == what; }
};

// What the ranks of a node share besides the links between them. A figure that is not there does
// not bind.
struct Host {
  // Without it, each message between ranks of a node goes from the device to the host's memory and
  // on to the other device.
  bool peer_to_peer = true;
  int sockets = 1;                                 // ranks of a node are dealt to them in blocks
  std::optional<Figure<BytesPerSecond>> crossing;  // of a socket to the others, per direction
  std::optional<Figure<BytesPerSecond>> memory_bandwidth;  // of the node
  int switches = 0;  // PCIe switches, each above a block of ranks; 0: none to mention
  std::optional<Figure<BytesPerSecond>> uplink;  // of a switch, per direction
  std::optional<Link> lane;                      // of a rank to its host; if absent, `intra`
};

// How messages of a node's ranks use its NICs, where the node has several.
enum class NicUse {
  striped,  // each message is spread over all NICs beside ranks of its node, as NCCL's channels are
  affinity,  // a rank uses the NIC of its slot only: slot * nics / g
};

// The path between a NIC and a device, in the words of nvidia-smi: one PCIe switch (pix), several (pxb), the
// root of a processor (phb), links between roots of one processor (node), links between processors (sys).
enum class NicDistance { pix, pxb, phb, node, sys };
inline constexpr std::array<std::pair<NicDistance, std::string_view>, 5> nic_distances = {
    {{NicDistance::pix, "pix"},
     {NicDistance::pxb, "pxb"},
     {NicDistance::phb, "phb"},
     {NicDistance::node, "node"},
     {NicDistance::sys, "sys"}}};

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
  // Machines that a node is made of: more than one where NVLink joins the GPUs of several (NVL72: 18 hosts
  // of 4), as NCCL counts such a domain for one node.
  int hosts_per_node = 1;
  Device device;
  Link intra;             // one port or lane inside the node (intra_kind)
  Link nic;               // one NIC; without a name if there is none, which only one node may have
  bool gpudirect = true;  // whether NICs reach the devices' memory without the host's
  std::optional<NicDistance> nic_distance;  // nothing where nobody says it
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
  std::optional<Host> host;
  std::optional<Link> host_link;                     // for copies to the device; if absent, `intra`
  std::optional<Figure<BytesPerSecond>> storage;     // read bandwidth of one node
  std::optional<Figure<PerSecond>> decode_per_node;  // samples that a node decodes and augments
  // What iterations lose on this cluster beside FLOPs and bytes; none where its devices are no GPUs,
  // or its file says so.
  std::optional<Effects> effects;
  Power power;                              // what of it all is drawn in training
  std::optional<Figure<UsdPerHour>> price;  // of a node; none where nobody states one
  std::string profile;  // name of the shipped profile that calibrates it; may be empty
  std::string source;   // where the description comes from

  [[nodiscard]] int ranks() const { return nodes * ranks_per_node; }
  [[nodiscard]] bool has_nic() const { return !nic.name.empty(); }
};

// Gives layers the fixed time of a stack. Throws InputError where devices launch no kernels: processors, and
// clusters without effects.
void take_stack(Stack stack, Cluster& cluster);
// Gives attention of transformers the rate of this kernel. Throws InputError where that is not known on the device.
void take_attention_kernel(AttentionKernel kernel, Cluster& cluster);

}  // namespace paceline::models
