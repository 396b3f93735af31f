// Max-min fair sharing of links by flows, kept up to date while flows start and stop.
//
// Rates are such that no flow can have more without taking from one that has no more than it:
// every flow either has its bound, or passes a link that is full and on which no flow has more
// (Bertsekas & Gallager, Data Networks, 2nd ed. 1992, 6.5.2). They are found by filling all flows
// at the same pace until a link is full (their Fig. 6.30).
//
// COST. A link whose flows could all have their bounds is no constraint, and is passed over: where
// nothing is shared a start or stop costs O(links of its way). Otherwise the flows on its links are
// filled anew beside all others, and where that is not fair to those, they too, until it is:
// O(f log f) for the f flows that a change reaches, mostly few of those that are connected to it.
#pragma once

#include <span>
#include <vector>

namespace paceline::simulator {

class FairSharing {
 public:
  // Bytes per second, > 0 and finite.
  int add_link(double capacity);
  // Declares a flow over these links, each named once, that does not run yet. `bound` is the most
  // that it can get, at most the capacity of any of the links; infinite only if there are none.
  int add_flow(std::span<const int> links, double bound);

  void start(int flow);
  void stop(int flow);
  // Brings all rates up to date, and calls changed(flow) for each that has a new one; those that
  // were started since the last call are among them.
  template <class F>
  void settle(F&& changed) {
    for (const int flow : settled()) changed(flow);
  }
  // Bytes per second, as of the last settle().
  [[nodiscard]] double rate(int flow) const { return flows_[at(flow)].rate; }

 private:
  struct Flow {
    double bound;
    double rate = 0;
    int bottleneck = -1;  // the link that stops it; -1: its bound does
    std::size_t first;    // of path_
    std::size_t end;
    unsigned seen = 0;
    bool runs = false;
    bool is_fixed = false;
  };
  struct Hop {
    int link;
    int place;  // of the flow among those of the link, while it runs
  };
  struct Passing {
    int flow;
    std::size_t hop;  // of path_
  };
  struct Link {
    double capacity;
    double wanted = 0;  // sum of the bounds of its flows
    double used = 0;    // sum of their rates
    int stopped = 0;    // of its flows, those that it stops
    std::vector<Passing> flows;
    bool has_room = false;  // since the last settle(), for flows that it stopped
    // While some of its flows are filled anew.
    unsigned seen = 0;
    double left = 0;
    int unfixed = 0;
    std::vector<int> reached;  // those flows
    int others_stopped = 0;    // of the others, those that it stops
    double most = 0;           // that one of those flows has
    double stops_at = 0;       // the rate at which it stops some of them, or 0
  };
  struct Reached {
    int flow;
    double former_rate;
    int former_bottleneck;
  };
  struct Level {
    double rate;
    int link;
  };

  static std::size_t at(int index) { return static_cast<std::size_t>(index); }
  [[nodiscard]] static bool is_contended(const Link& link);
  std::span<const int> settled();
  void reach(int flow);
  void reach_all_of(int link);
  void fill();
  void fix(Flow& flow, double rate, int bottleneck);
  void open_links();
  [[nodiscard]] bool is_fair(const Link& link, int id) const;
  void relax();
  void book(const Flow& flow, double former_rate, int former_bottleneck);

  std::vector<Flow> flows_;
  std::vector<Hop> path_;
  std::vector<Link> links_;
  unsigned round_ = 0;
  std::vector<int> started_;
  std::vector<int> relieved_;
  std::vector<Reached> reached_;    // flows that a change reaches
  std::vector<int> reached_links_;  // contended links that they pass
  std::vector<int> by_bound_;
  std::vector<Level> levels_;
  std::vector<int> new_rates_;
};

}  // namespace paceline::simulator
