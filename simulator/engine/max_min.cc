// Tests: tests/simulator/max_min_test.cc.
#include "simulator/engine/max_min.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {

int FairSharing::add_link(double capacity) {
  PACELINE_ASSERT(capacity > 0 && std::isfinite(capacity), "a link has a finite capacity");
  links_.push_back({.capacity = capacity, .flows = {}});
  return static_cast<int>(links_.size()) - 1;
}

int FairSharing::add_flow(std::span<const int> links, std::span<const double> weights,
                          double bound) {
  PACELINE_ASSERT(links.empty() || std::isfinite(bound), "a link bounds its flows");
  PACELINE_ASSERT(weights.empty() || weights.size() == links.size(), "every link has its weight");
  const int first = static_cast<int>(path_.size());
  for (std::size_t i = 0; i < links.size(); ++i)
    path_.push_back({links[i], -1, weights.empty() ? 1.0 : weights[i]});
  flows_.push_back({.bound = bound, .first = first, .end = static_cast<int>(path_.size())});
  return static_cast<int>(flows_.size()) - 1;
}

// Whether the flows of a link want more than it has, with room for the rounding of sums. A flow that
// is refused its bound by less than this loses nothing that anyone could measure.
bool FairSharing::is_contended(const Link& link) {
  constexpr double rounding = 1e-12;
  return link.wanted > link.capacity * (1 + rounding);
}

void FairSharing::start(int flow) {
  Flow& f = flows_[to_size(flow)];
  PACELINE_ASSERT(!f.runs, "a flow is started once");
  f.runs = true;
  f.rate = 0;
  f.bottleneck = -1;
  started_.push_back(flow);
  for (int hop = f.first; hop < f.end; ++hop) {
    Link& link = links_[to_size(path_[to_size(hop)].link)];
    path_[to_size(hop)].place = static_cast<int>(link.flows.size());
    link.flows.push_back({flow, hop, path_[to_size(hop)].weight});
    link.wanted += path_[to_size(hop)].weight * f.bound;
  }
}

void FairSharing::stop(int flow) {
  Flow& f = flows_[to_size(flow)];
  PACELINE_ASSERT(f.runs, "a flow that runs is stopped");
  f.runs = false;
  if (f.bottleneck >= 0) --links_[to_size(f.bottleneck)].stopped;
  for (const Hop& hop : path(f)) {
    const int id = hop.link;
    Link& link = links_[to_size(id)];
    const int place = hop.place;
    link.flows[to_size(place)] = link.flows.back();
    path_[to_size(link.flows[to_size(place)].hop)].place = place;
    link.flows.pop_back();
    link.wanted = link.flows.empty() ? 0 : link.wanted - hop.weight * f.bound;
    link.used = link.flows.empty() ? 0 : link.used - hop.weight * f.rate;
    // Nobody else gains where nobody was stopped.
    if (link.stopped == 0 || link.has_room) continue;
    link.has_room = true;
    relieved_.push_back(id);
  }
}

// Finds whether a link is contended once for all flows that pass it: what settle() does does not
// change it.
void FairSharing::open(int id) {
  Link& link = links_[to_size(id)];
  link.seen = round_;
  link.open = -1;
  if (!is_contended(link)) return;
  link.open = static_cast<int>(open_.size());
  open_.push_back({.link = id,
                   .is_followed = link.is_narrow || link.stopped > 0,
                   .stopped = link.stopped,
                   .room = link.capacity - link.used});
}

void FairSharing::reach(int id) {
  Flow& flow = flows_[to_size(id)];
  if (flow.seen == round_) return;
  flow.seen = round_;
  flow.reached = static_cast<int>(reached_.size());
  least_bound_ = std::min(least_bound_, flow.bound);
  const int first_way = static_cast<int>(ways_.size());
  for (const Hop& hop : path(flow)) {
    const Link& link = links_[to_size(hop.link)];
    if (link.seen != round_) open(hop.link);
    if (link.open < 0) continue;
    OpenLink& passed = open_[to_size(link.open)];
    ++passed.flows;
    passed.weight += hop.weight;
    passed.room += hop.weight * flow.rate;
    if (flow.bottleneck == hop.link) --passed.stopped;
    if (passed.is_followed) ways_.push_back({link.open, hop.weight});
  }
  reached_.push_back({.flow = id,
                      .former_bottleneck = flow.bottleneck,
                      .first_way = first_way,
                      .end_way = static_cast<int>(ways_.size()),
                      .bound = flow.bound,
                      .former_rate = flow.rate});
}

void FairSharing::reach_all_of(int link) {
  for (const Passing& passing : links_[to_size(link)].flows) reach(passing.flow);
}

void FairSharing::fix(Reached& reached, double rate, int bottleneck) {
  reached.rate = rate;
  reached.bottleneck = bottleneck;
  reached.fix = fixes_++;
  --unfixed_;
  for (const Way& way : ways(reached)) {
    OpenLink& open = open_[to_size(way.open)];
    open.left = std::max(0.0, open.left - way.weight * rate);
    open.most = std::max(open.most, rate);
    open.unfixed -= way.weight;
  }
}

// What a link has for the flows that were reached.
double FairSharing::room(const OpenLink& open) const {
  const Link& link = links_[to_size(open.link)];
  const bool is_all = to_size(open.flows) == link.flows.size();
  return is_all ? link.capacity : std::max(0.0, open.room);
}

void FairSharing::open_links() {
  first_fix_ = fixes_;
  unfixed_ = reached_.size();
  by_bound_.clear();
  levels_.clear();
  for (std::size_t i = 0; i < open_.size(); ++i) {
    OpenLink& open = open_[i];
    open.left = room(open);
    open.filled = open.flows;
    open.unfixed = open.weight;
    open.others_stopped = open.stopped;
    open.most = 0;
    open.stops_at = -1;
    levels_.push_back({open.left / open.unfixed, static_cast<int>(i)});
  }
}

// Finds what fixed flows leave of a link that is not followed, as if they had been taken off one by
// one when they were fixed: sums do not depend on who is followed.
void FairSharing::catch_up(OpenLink& open) {
  fixed_.clear();
  open.unfixed = open.weight;
  for (const Passing& passing : links_[to_size(open.link)].flows) {
    const Flow& flow = flows_[to_size(passing.flow)];
    if (flow.seen != round_) continue;
    const Reached& reached = reached_[to_size(flow.reached)];
    if (!is_fixed(reached)) continue;
    fixed_.emplace_back(reached.fix, passing.weight * reached.rate);
    open.unfixed -= passing.weight;
  }
  if (open.unfixed == 0) return;
  std::sort(fixed_.begin(), fixed_.end());
  open.left = room(open);
  for (const auto& [fix, taken] : fixed_) open.left = std::max(0.0, open.left - taken);
}

// Fixes the flows whose bounds a level has come up to. They are sorted once there is one; mostly
// links stop all flows before.
bool FairSharing::fix_bounded(double level) {
  if (least_bound_ > level) return false;
  if (by_bound_.empty()) {
    by_bound_.resize(reached_.size());
    std::iota(by_bound_.begin(), by_bound_.end(), 0);
    std::sort(by_bound_.begin(), by_bound_.end(), [this](int a, int b) {
      return reached_[to_size(a)].bound < reached_[to_size(b)].bound;
    });
    next_bound_ = 0;
  }
  bool any = false;
  for (; next_bound_ < by_bound_.size(); ++next_bound_) {
    Reached& reached = reached_[to_size(by_bound_[next_bound_])];
    if (reached.bound > level) break;
    if (is_fixed(reached)) continue;
    fix(reached, reached.bound, -1);
    any = true;
  }
  return any;
}

// All get the same rate, so that their order does not matter to what it leaves of other links;
// those that were started last are the most likely to be among them.
void FairSharing::stop_all_of(OpenLink& open, double level) {
  open.stops_at = level;
  const std::vector<Passing>& flows = links_[to_size(open.link)].flows;
  for (auto passing = flows.rbegin(); passing != flows.rend() && open.unfixed > 0; ++passing) {
    const Flow& flow = flows_[to_size(passing->flow)];
    if (flow.seen != round_) continue;
    Reached& reached = reached_[to_size(flow.reached)];
    if (!is_fixed(reached)) fix(reached, level, open.link);
  }
  open.unfixed = 0;
}

// The level at which a link is full, once flows whose bounds are below it have theirs; only as far
// as no other link may be full before.
double FairSharing::lowest_level(OpenLink& open) {
  open.is_narrow = true;
  for (;;) {
    if (!open.is_followed) catch_up(open);
    if (open.unfixed == 0) return 0;
    const double level = open.left / open.unfixed;
    const bool is_lowest = levels_.empty() || level <= levels_.front().rate;
    if (!is_lowest || !fix_bounded(level)) return level;
  }
}

void FairSharing::fill() {
  open_links();
  // The level at which a link is full only rises while flows are fixed below it, so that a heap
  // may hold levels that are too low.
  const auto higher = [](const Level& a, const Level& b) { return a.rate > b.rate; };
  std::make_heap(levels_.begin(), levels_.end(), higher);
  while (unfixed_ > 0 && !levels_.empty()) {
    std::pop_heap(levels_.begin(), levels_.end(), higher);
    const Level lowest = levels_.back();
    levels_.pop_back();
    OpenLink& open = open_[to_size(lowest.open)];
    const double level = lowest_level(open);
    if (open.unfixed == 0) continue;
    if (levels_.empty() || level <= levels_.front().rate) {
      stop_all_of(open, level);
      continue;
    }
    levels_.push_back({level, lowest.open});
    std::push_heap(levels_.begin(), levels_.end(), higher);
  }
  // Flows that pass no contended link have their bounds.
  for (std::size_t i = 0; unfixed_ > 0; ++i) {
    if (!is_fixed(reached_[i])) fix(reached_[i], reached_[i].bound, -1);
  }
}

// Is a link still fair between the flows that were reached and the others? If it stops some of the
// others, it must still be full, and nobody have more than they; if it stops reached ones, none of
// the others may have more.
bool FairSharing::is_fair(const OpenLink& open) const {
  constexpr double rounding = 1e-12;
  const Link& link = links_[to_size(open.link)];
  if (to_size(open.filled) == link.flows.size()) return true;
  if (open.others_stopped > 0) {
    double stopped_at = 0;
    for (const Passing& passing : link.flows) {
      const Flow& flow = flows_[to_size(passing.flow)];
      if (flow.seen == round_ || flow.bottleneck != open.link) continue;
      stopped_at = flow.rate;
      break;
    }
    return open.left <= link.capacity * rounding && open.most <= stopped_at * (1 + rounding) &&
           (open.stops_at < 0 || open.stops_at >= stopped_at * (1 - rounding));
  }
  if (open.stops_at < 0) return true;
  return std::none_of(link.flows.begin(), link.flows.end(), [&](const Passing& passing) {
    const Flow& flow = flows_[to_size(passing.flow)];
    return flow.seen != round_ && flow.rate > open.stops_at * (1 + rounding);
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
      const std::size_t links = open_.size();
      for (std::size_t i = 0; i < links; ++i) {
        if (!is_fair(open_[i])) reach_all_of(open_[i].link);
      }
    } else {
      for (std::size_t i = 0; i < open_.size(); ++i) reach_all_of(open_[i].link);
    }
    if (reached_.size() == reached) return;
  }
}

// Gives a flow the rate that was found in place of the one that it had, if it is another.
void FairSharing::book(Reached& reached) {
  constexpr double rounding = 1e-13;
  Flow& flow = flows_[to_size(reached.flow)];
  if (reached.bottleneck != reached.former_bottleneck) {
    flow.bottleneck = reached.bottleneck;
    if (reached.former_bottleneck >= 0) --links_[to_size(reached.former_bottleneck)].stopped;
    if (reached.bottleneck >= 0) ++links_[to_size(reached.bottleneck)].stopped;
  }
  if (std::abs(reached.rate - reached.former_rate) <= rounding * reached.rate) return;
  flow.rate = reached.rate;
  new_rates_.push_back(reached.flow);
  for (const Hop& hop : path(flow))
    links_[to_size(hop.link)].used += hop.weight * (reached.rate - reached.former_rate);
}

std::span<const int> FairSharing::settled() {
  new_rates_.clear();
  reached_.clear();
  ways_.clear();
  open_.clear();
  least_bound_ = std::numeric_limits<double>::infinity();
  ++round_;
  for (const int id : started_) {
    if (flows_[to_size(id)].runs) reach(id);
  }
  for (const int id : relieved_) {
    links_[to_size(id)].has_room = false;
    for (const Passing& passing : links_[to_size(id)].flows) {
      if (flows_[to_size(passing.flow)].bottleneck == id) reach(passing.flow);
    }
  }
  started_.clear();
  relieved_.clear();
  relax();
  for (Reached& reached : reached_) book(reached);
  for (const OpenLink& open : open_) links_[to_size(open.link)].is_narrow = open.is_narrow;
  return new_rates_;
}

}  // namespace paceline::simulator
