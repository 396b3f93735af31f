// Which links a message passes: the cluster as a graph of directed links, for every engine.
//
// A slot is a place for a rank: slot s is place s mod g of node s div g, and the placement of
// CommunicationCost says which rank sits where. Links, each in one direction:
//   port out, in      of each rank, where the node is a switch (models::IntraKind)
//   uplink up, down   of each PCIe switch of a node (HostCost): for messages between two of them, and
//                     for all of a node's own messages if these are staged
//   crossing out, in  of each socket of a node, for messages between two of them
//   memory            of each node, for its own messages if these are staged
//   lane              inside a node, between neighbouring places of a ring or between any two
//   NIC out, in       of each node: one of the summed bandwidth of the NICs beside ranks of the job
//                     (models::nics_beside) if messages are striped, else one for each NIC,
//                     NIC (place * nics) div g for a place
//   leaf up, down     of each leaf switch of a fat tree, if its uplinks are fewer; pods likewise
//   spine up, down    of each rail, if it is oversubscribed, for messages between rails
//   grid              from each node of a torus to each neighbour
// or those of a platform (models/cluster/platform.h), each host of which is a slot.
//
// alpha of a path is that of the intra link inside a node, and else the NIC's with hop_latency for
// each switch (node, in a torus) after the first.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "models/base/to_size.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/positions.h"

namespace paceline::simulator {

class Routes {
 public:
  // Throws InputError if the ranks do not fit the platform or the torus, or have more than 64 Mi
  // links.
  Routes(const CommunicationCost& cost, int ranks);

  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] int links() const { return links_; }
  // Seconds for a byte through the link.
  [[nodiscard]] double beta_s(int link) const;
  // Do messages share it? Else each gets all of it.
  [[nodiscard]] bool is_shared(int link) const {
    return platform_ == nullptr || platform_->links[to_size(link)].is_shared;
  }
  [[nodiscard]] std::string link_name(int link) const;

  // How far a message goes, which says what alpha it has at the figures of any bound.
  struct Distance {
    int hops = 0;        // 0 inside a node; else those that add to alpha, from 1
    double alpha_s = 0;  // of the way itself, on a platform
    bool operator==(const Distance&) const = default;
  };
  // Puts the links from one rank to another into `path`, in order.
  Distance way(int from, int to, std::vector<int>& path) const;
  [[nodiscard]] double alpha_s(Distance distance) const {
    if (platform_ != nullptr) return distance.alpha_s;
    if (distance.hops == 0) return intra_alpha_s_;
    return nic_alpha_s_ + (distance.hops - 1) * fabric_.hop_latency.value();
  }
  // The same, and returns alpha in seconds.
  double path(int from, int to, std::vector<int>& path) const {
    return alpha_s(way(from, to, path));
  }
  // Links of one rate have one bandwidth, whatever the figures are.
  [[nodiscard]] int rate(int link) const;
  [[nodiscard]] double beta_s_of_rate(int rate) const;
  // Whether the same links join the same ranks, so that figures alone may differ.
  [[nodiscard]] bool is_alike(const Routes& other) const;
  // How many links at the head of that path are the sender's own: its port, its node's NIC.
  [[nodiscard]] std::size_t links_of_sender(int from, int to) const {
    return port_ >= 0 && between_nodes(from, to) ? 2 : 1;
  }

  // Whether messages between the two pass NICs.
  [[nodiscard]] bool between_nodes(int from, int to) const {
    return platform_ == nullptr && slot_of(from) / per_node_ != slot_of(to) / per_node_;
  }

  // Ranks in equal positions (equivalence.h): links look alike to ranks that are a multiple of
  // unit() apart; 0 if no two do. In a torus they do to a message and its translation only.
  [[nodiscard]] int unit() const { return unit_; }
  [[nodiscard]] bool needs_translation() const { return needs_translation_; }
  // The link that stands for `link` where positions stand for all ranks.
  [[nodiscard]] int standing_for(int link, const Positions& positions) const;
  // By how many ranks a message over `link` is to be moved down to be one over standing_for(link).
  [[nodiscard]] int shift(int link, const Positions& positions) const;
  // How many links standing_for(link) stands for, itself included.
  [[nodiscard]] int alike(int link, const Positions& positions) const;

 private:
  // Links of one kind: `per_owner` for each of `owners`, which are ranks_per_owner slots each. One
  // owner of all has ranks_per_owner 0.
  struct Family {
    const char* name;
    int first;
    int owners;
    int per_owner;
    int ranks_per_owner;
    double beta_s;
  };

  void place(const CommunicationCost& cost);
  void share_nics(const CommunicationCost& cost);
  int add_family(const char* name, int owners, int per_owner, int ranks_per_owner, double beta_s);
  void add_host();
  void add_tree(const CommunicationCost& cost);
  void add_grid(const CommunicationCost& cost);
  [[nodiscard]] int id(int family, int owner, int index) const {
    const Family& f = families_[to_size(family)];
    return f.first + owner * f.per_owner + index;
  }
  [[nodiscard]] const Family& family_of(int link) const;
  [[nodiscard]] double share_of(int link) const;
  [[nodiscard]] int grid_neighbour(int node, int index) const;
  [[nodiscard]] int slot_of(int rank) const {
    return slots_.empty() ? rank : slots_[to_size(rank)];
  }
  [[nodiscard]] int nic_of(int place) const { return place * nics_ / per_node_; }
  void path_inside(int node, int from, int to, std::vector<int>& path) const;
  int path_through_tree(int from_node, int to_node, std::vector<int>& path) const;
  int path_through_grid(int from_node, int to_node, std::vector<int>& path) const;

  int ranks_;
  int links_ = 0;
  int per_node_;
  int nics_;  // that a message may choose from: 1 if striped
  int nodes_;
  int unit_ = 0;
  bool needs_translation_ = false;
  models::IntraKind intra_;
  models::Fabric fabric_;
  double intra_alpha_s_;
  double nic_alpha_s_;
  std::vector<Family> families_;
  int port_ = -1;  // families, -1 if there are no such links
  int uplink_ = -1;
  int crossing_ = -1;
  int memory_ = -1;
  int lane_ = -1;
  int nic_ = -1;
  int spine_ = -1;
  int grid_ = -1;
  struct TreeLevel {
    int family;  // -1 if it has bandwidth for all below
    int nodes;   // under one switch
  };
  std::vector<TreeLevel> tree_;
  HostCost host_;
  std::vector<int> slots_;          // of each rank; node-major if empty
  std::vector<double> nic_shares_;  // what each node has of its NICs' bandwidth; empty if all is 1
  std::shared_ptr<const models::Platform> platform_;
};

}  // namespace paceline::simulator
