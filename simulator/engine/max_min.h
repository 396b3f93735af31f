// Max-min fair sharing of links by flows, kept up to date while flows start and stop.
//
// Rates are such that no flow can have more without taking from one that has no more than it:
// every flow either has its bound, or passes a link that is full and on which no flow has more
// (Bertsekas & Gallager, Data Networks, 2nd ed. 1992, 6.5.2). They are found by filling all flows
// at the same pace until a link is full (their Fig. 6.30).
//
// A flow may stand for several that are alike: its weight on a link says how many of them pass that
// link, and its rate is that of each. Rates are then those of the flows that it stands for. Where an
// equitable partition (equivalence.h) puts flows and links into classes, flows of one class have one
// bottleneck class and one rate, for max-min fair rates are unique and any exchange of alike flows
// that keeps classes maps them to themselves; a link that represents its class is full with the
// weighted rates when each link of its class is full with the flows' own.
//
// COST. A link whose flows could all have their bounds is no constraint, and is passed over: where
// nothing is shared a start or stop costs O(links of its way). Otherwise the flows on its links are
// filled anew beside all others, and where that is not fair to those, they too, until it is:
// O(f log f) for the f flows that a change reaches, mostly few of those that are connected to it.
// Most of the links that those pass stop none of them: rates are taken off the few that did the
// last time, and off another only once its level is the lowest.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "models/base/to_size.h"

namespace paceline::simulator {

class FairSharing {
 public:
  // Bytes per second, > 0 and finite.
  int add_link(double capacity);
  // Declares a flow over these links, each named once, that does not run yet. `bound` is the most
  // that it can get, at most the capacity of any of the links; infinite only if there are none.
  int add_flow(std::span<const int> links, double bound) { return add_flow(links, {}, bound); }
  // The same for as many alike flows as `weights` says of each link, whole numbers from 1; empty
  // where all are 1. `bound` is of each: at most capacity / weight of any of the links.
  int add_flow(std::span<const int> links, std::span<const double> weights, double bound);

  void start(int flow);
  void stop(int flow);
  // Brings all rates up to date, and calls changed(flow) for each that has a new one; those that
  // were started since the last call are among them.
  template <class F>
  void settle(F&& changed) {
    for (const int flow : settled()) changed(flow);
  }
  // Bytes per second, as of the last settle().
  [[nodiscard]] double rate(int flow) const { return flows_[to_size(flow)].rate; }

 private:
  struct Flow {
    double bound;
    double rate = 0;
    int bottleneck = -1;  // the link that stops it; -1: its bound does
    unsigned seen = 0;
    int reached = -1;  // of reached_, if it was seen
    int first;         // of path_
    int end;
    bool runs = false;
  };
  struct Hop {
    int link;
    int place;  // of the flow among those of the link, while it runs
    double weight;
  };
  struct Passing {
    int flow;
    int hop;  // of path_
    double weight;
  };
  // A reached flow passes a link that is followed.
  struct Way {
    int open;  // of open_
    double weight;
  };
  // A link takes one line of the cache, because a change looks at links in no order.
  struct Link {
    double capacity;
    double wanted = 0;  // sum of the bounds of its flows, by weight
    double used = 0;    // sum of their rates, by weight
    int stopped = 0;    // of its flows, those that it stops
    unsigned seen = 0;
    int open = -1;           // of open_; -1: it was seen and is not contended
    bool has_room = false;   // since the last settle(), for flows that it stopped
    bool is_narrow = false;  // was looked at by the last fill() that could have
    std::vector<Passing> flows;
  };
  // A flow that a change reaches. What filling takes of it lies here: flows are many, and far from
  // each other.
  struct Reached {
    int flow;
    int bottleneck = -1;  // as in Flow, with the new rate
    int former_bottleneck;
    int first_way;  // of ways_
    int end_way;
    double bound;
    double rate = 0;
    double former_rate;
    std::int64_t fix = -1;  // when it was fixed last
  };
  // A contended link that reached flows pass. Most are wide: they stop none. What fixed flows leave
  // of a link is kept up to date where it is followed, and else found when it is asked for.
  struct OpenLink {
    int link;
    bool is_followed;
    bool is_narrow = false;  // it was asked for
    // Kept up to date while flows are reached:
    int flows = 0;      // those that were
    double weight = 0;  // sum of their weights
    int stopped;        // of the others, those that it stops; none if it is not followed
    double room;        // all but what the others have
    // In the last fill():
    int filled = 0;  // flows
    int others_stopped = 0;
    double unfixed = 0;  // sum of the weights of flows that have no rate yet
    double left = 0;
    double most = 0;       // that one of the reached flows has, where it is followed
    double stops_at = -1;  // the rate at which it stops some of them; -1: it stops none
  };
  struct Level {
    double rate;
    int open;
  };

  [[nodiscard]] static bool is_contended(const Link& link);
  [[nodiscard]] std::span<const Hop> path(const Flow& flow) const {
    return std::span(path_).subspan(to_size(flow.first), to_size(flow.end - flow.first));
  }
  [[nodiscard]] std::span<const Way> ways(const Reached& reached) const {
    return std::span(ways_).subspan(to_size(reached.first_way),
                                    to_size(reached.end_way - reached.first_way));
  }
  std::span<const int> settled();
  void reach(int flow);
  void reach_all_of(int link);
  void open(int link);
  [[nodiscard]] double room(const OpenLink& open) const;
  [[nodiscard]] bool is_fixed(const Reached& reached) const { return reached.fix >= first_fix_; }
  void fill();
  void fix(Reached& reached, double rate, int bottleneck);
  void open_links();
  void catch_up(OpenLink& open);
  bool fix_bounded(double level);
  double lowest_level(OpenLink& open);
  void stop_all_of(OpenLink& open, double level);
  [[nodiscard]] bool is_fair(const OpenLink& open) const;
  void relax();
  void book(Reached& reached);

  std::vector<Flow> flows_;
  std::vector<Hop> path_;
  std::vector<Link> links_;
  unsigned round_ = 0;
  std::vector<int> started_;
  std::vector<int> relieved_;
  // The state of one settle():
  std::vector<Reached> reached_;
  std::vector<Way> ways_;  // of each reached flow
  std::vector<OpenLink> open_;
  double least_bound_ = 0;  // of the reached flows
  // The state of one fill():
  std::int64_t fixes_ = 0;  // of flows, in all
  std::int64_t first_fix_ = 0;
  std::size_t unfixed_ = 0;    // of reached_
  std::vector<int> by_bound_;  // of reached_; empty if no level has come up to a bound
  std::size_t next_bound_ = 0;
  std::vector<std::pair<std::int64_t, double>> fixed_;
  std::vector<Level> levels_;
  std::vector<int> new_rates_;
};

}  // namespace paceline::simulator
