// Tests: tests/simulator/max_min_test.cc.
#include "simulator/engine/max_min.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/base/error.h"

namespace paceline::simulator {

int FairSharing::add_link(double capacity) {
  PACELINE_ASSERT(capacity > 0 && std::isfinite(capacity), "a link has a finite capacity");
  links_.push_back({.capacity = capacity, .flows = {}, .reached = {}});
  return static_cast<int>(links_.size()) - 1;
}

int FairSharing::add_flow(std::span<const int> links, double bound) {
  PACELINE_ASSERT(links.empty() || std::isfinite(bound), "a link bounds its flows");
  const std::size_t first = path_.size();
  for (const int link : links) path_.push_back({link, -1});
  flows_.push_back({.bound = bound, .first = first, .end = path_.size()});
  return static_cast<int>(flows_.size()) - 1;
}

// With room for the rounding of sums; a flow that is refused its bound by less than this loses
// nothing that anyone could measure.
bool FairSharing::is_contended(const Link& link) {
  constexpr double rounding = 1e-12;
  return link.wanted > link.capacity * (1 + rounding);
}

void FairSharing::start(int flow) {
  Flow& f = flows_[at(flow)];
  PACELINE_ASSERT(!f.runs, "a flow is started once");
  f.runs = true;
  f.rate = 0;
  f.bottleneck = -1;
  started_.push_back(flow);
  for (std::size_t hop = f.first; hop < f.end; ++hop) {
    Link& link = links_[at(path_[hop].link)];
    path_[hop].place = static_cast<int>(link.flows.size());
    link.flows.push_back({flow, hop});
    link.wanted += f.bound;
  }
}

void FairSharing::stop(int flow) {
  Flow& f = flows_[at(flow)];
  PACELINE_ASSERT(f.runs, "a flow that runs is stopped");
  f.runs = false;
  if (f.bottleneck >= 0) --links_[at(f.bottleneck)].stopped;
  for (std::size_t hop = f.first; hop < f.end; ++hop) {
    const int id = path_[hop].link;
    Link& link = links_[at(id)];
    const int place = path_[hop].place;
    link.flows[at(place)] = link.flows.back();
    path_[link.flows[at(place)].hop].place = place;
    link.flows.pop_back();
    link.wanted = link.flows.empty() ? 0 : link.wanted - f.bound;
    link.used = link.flows.empty() ? 0 : link.used - f.rate;
    // Nobody else gains where nobody was stopped.
    if (link.stopped == 0 || link.has_room) continue;
    link.has_room = true;
    relieved_.push_back(id);
  }
}

void FairSharing::reach(int id) {
  Flow& flow = flows_[at(id)];
  if (flow.seen == round_) return;
  flow.seen = round_;
  reached_.push_back({id, flow.rate, flow.bottleneck});
  for (std::size_t hop = flow.first; hop < flow.end; ++hop) {
    Link& link = links_[at(path_[hop].link)];
    if (link.seen == round_ || !is_contended(link)) continue;
    link.seen = round_;
    reached_links_.push_back(path_[hop].link);
  }
}

void FairSharing::reach_all_of(int link) {
  for (const Passing& passing : links_[at(link)].flows) reach(passing.flow);
}

void FairSharing::fix(Flow& flow, double rate, int bottleneck) {
  flow.rate = rate;
  flow.bottleneck = bottleneck;
  flow.is_fixed = true;
  for (std::size_t hop = flow.first; hop < flow.end; ++hop) {
    Link& link = links_[at(path_[hop].link)];
    if (link.seen != round_) continue;
    link.left = std::max(0.0, link.left - rate);
    link.most = std::max(link.most, rate);
    --link.unfixed;
  }
}

// What the links have for the flows that were reached: all but what the others have.
void FairSharing::open_links() {
  for (const int id : reached_links_) {
    Link& link = links_[at(id)];
    link.left = link.capacity - link.used;
    link.reached.clear();
    link.others_stopped = link.stopped;
    link.most = 0;
    link.stops_at = -1;
  }
  by_bound_.clear();
  for (const Reached& reached : reached_) {
    Flow& flow = flows_[at(reached.flow)];
    flow.is_fixed = false;
    by_bound_.push_back(reached.flow);
    for (std::size_t hop = flow.first; hop < flow.end; ++hop) {
      Link& link = links_[at(path_[hop].link)];
      if (link.seen != round_) continue;
      link.left += reached.former_rate;
      link.reached.push_back(reached.flow);
      if (reached.former_bottleneck == path_[hop].link) --link.others_stopped;
    }
  }
  levels_.clear();
  for (const int id : reached_links_) {
    Link& link = links_[at(id)];
    const bool is_all = link.reached.size() == link.flows.size();
    link.left = is_all ? link.capacity : std::max(0.0, link.left);
    link.unfixed = static_cast<int>(link.reached.size());
    if (link.unfixed > 0) levels_.push_back({link.left / link.unfixed, id});
  }
}

void FairSharing::fill() {
  open_links();
  // The level at which a link is full only rises while flows are fixed below it, so that a heap
  // may hold levels that are too low.
  const auto higher = [](const Level& a, const Level& b) { return a.rate > b.rate; };
  std::make_heap(levels_.begin(), levels_.end(), higher);
  // Sorted once a level comes up to a bound; mostly links stop all flows before.
  bool is_sorted = false;
  double least_bound = std::numeric_limits<double>::infinity();
  for (const int id : by_bound_) least_bound = std::min(least_bound, flows_[at(id)].bound);
  auto next = by_bound_.begin();
  const auto fix_bounded = [&](double level) {
    bool any = false;
    if (least_bound > level) return any;
    if (!is_sorted) {
      std::sort(by_bound_.begin(), by_bound_.end(),
                [this](int a, int b) { return flows_[at(a)].bound < flows_[at(b)].bound; });
      is_sorted = true;
    }
    for (; next != by_bound_.end() && flows_[at(*next)].bound <= level; ++next) {
      Flow& flow = flows_[at(*next)];
      if (flow.is_fixed) continue;
      fix(flow, flow.bound, -1);
      any = true;
    }
    return any;
  };
  while (!levels_.empty()) {
    std::pop_heap(levels_.begin(), levels_.end(), higher);
    const Level lowest = levels_.back();
    levels_.pop_back();
    Link& link = links_[at(lowest.link)];
    if (link.unfixed == 0) continue;
    double level = link.left / link.unfixed;
    const auto is_lowest = [&] { return levels_.empty() || level <= levels_.front().rate; };
    while (link.unfixed > 0 && is_lowest() && fix_bounded(level)) {
      if (link.unfixed > 0) level = link.left / link.unfixed;
    }
    if (link.unfixed == 0) continue;
    if (!is_lowest()) {
      levels_.push_back({level, lowest.link});
      std::push_heap(levels_.begin(), levels_.end(), higher);
      continue;
    }
    link.stops_at = level;
    for (const int id : link.reached) {
      Flow& flow = flows_[at(id)];
      if (!flow.is_fixed) fix(flow, level, lowest.link);
    }
  }
  for (; next != by_bound_.end(); ++next) {
    Flow& flow = flows_[at(*next)];
    if (!flow.is_fixed) fix(flow, flow.bound, -1);
  }
}

// Is a link still fair between the flows that were reached and the others? If it stops some of the
// others, it must still be full, and nobody have more than they; if it stops reached ones, none of
// the others may have more.
bool FairSharing::is_fair(const Link& link, int id) const {
  constexpr double rounding = 1e-12;
  if (link.reached.size() == link.flows.size()) return true;
  if (link.others_stopped > 0) {
    double stopped_at = 0;
    for (const Passing& passing : link.flows) {
      const Flow& flow = flows_[at(passing.flow)];
      if (flow.seen == round_ || flow.bottleneck != id) continue;
      stopped_at = flow.rate;
      break;
    }
    return link.left <= link.capacity * rounding && link.most <= stopped_at * (1 + rounding) &&
           (link.stops_at < 0 || link.stops_at >= stopped_at * (1 - rounding));
  }
  if (link.stops_at < 0) return true;
  return std::none_of(link.flows.begin(), link.flows.end(), [&](const Passing& passing) {
    const Flow& flow = flows_[at(passing.flow)];
    return flow.seen != round_ && flow.rate > link.stops_at * (1 + rounding);
  });
}

// First only flows that started, and those that a relieved link stopped, are given new rates, and
// the others keep theirs; then, as long as a link is not fair to flows that were not reached, those
// too; and if that takes long, all that are connected.
void FairSharing::relax() {
  constexpr int patience = 16;
  for (int attempt = 0; !reached_.empty(); ++attempt) {
    fill();
    const std::size_t reached = reached_.size();
    if (attempt < patience) {
      const std::size_t links = reached_links_.size();
      for (std::size_t i = 0; i < links; ++i) {
        if (!is_fair(links_[at(reached_links_[i])], reached_links_[i]))
          reach_all_of(reached_links_[i]);
      }
    } else {
      for (std::size_t i = 0; i < reached_links_.size(); ++i) reach_all_of(reached_links_[i]);
    }
    if (reached_.size() == reached) return;
  }
}

// Books the rate that a flow has now in place of the one that it had.
void FairSharing::book(const Flow& flow, double former_rate, int former_bottleneck) {
  for (std::size_t hop = flow.first; hop < flow.end; ++hop)
    links_[at(path_[hop].link)].used += flow.rate - former_rate;
  if (former_bottleneck >= 0) --links_[at(former_bottleneck)].stopped;
  if (flow.bottleneck >= 0) ++links_[at(flow.bottleneck)].stopped;
}

std::span<const int> FairSharing::settled() {
  new_rates_.clear();
  reached_.clear();
  reached_links_.clear();
  ++round_;
  for (const int id : started_) {
    if (flows_[at(id)].runs) reach(id);
  }
  for (const int id : relieved_) {
    links_[at(id)].has_room = false;
    for (const Passing& passing : links_[at(id)].flows) {
      if (flows_[at(passing.flow)].bottleneck == id) reach(passing.flow);
    }
  }
  started_.clear();
  relieved_.clear();
  relax();
  constexpr double rounding = 1e-13;
  for (const Reached& reached : reached_) {
    Flow& flow = flows_[at(reached.flow)];
    if (std::abs(flow.rate - reached.former_rate) > rounding * flow.rate) {
      new_rates_.push_back(reached.flow);
    } else {
      flow.rate = reached.former_rate;
    }
    book(flow, reached.former_rate, reached.former_bottleneck);
  }
  return new_rates_;
}

}  // namespace paceline::simulator
