// Tests: tests/simulator/max_min_test.cc.
#include "simulator/engine/max_min.h"

#include <algorithm>
#include <cmath>

#include "models/base/error.h"

namespace paceline::simulator {

int FairSharing::add_link(double capacity) {
  PACELINE_ASSERT(capacity > 0 && std::isfinite(capacity), "a link has a finite capacity");
  links_.push_back({.capacity = capacity, .flows = {}});
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
  constexpr double rounding = 1e-10;
  return link.wanted > link.capacity * (1 + rounding);
}

void FairSharing::start(int flow) {
  Flow& f = flows_[at(flow)];
  PACELINE_ASSERT(!f.runs, "a flow is started once");
  f.runs = true;
  f.rate = 0;
  started_.push_back(flow);
  for (std::size_t hop = f.first; hop < f.end; ++hop) {
    Link& link = links_[at(path_[hop].link)];
    path_[hop].place = static_cast<int>(link.flows.size());
    link.flows.push_back({flow, hop});
    link.wanted += f.bound;
    if (is_contended(link)) changed_links_.push_back(path_[hop].link);
  }
}

void FairSharing::stop(int flow) {
  Flow& f = flows_[at(flow)];
  PACELINE_ASSERT(f.runs, "a flow that runs is stopped");
  f.runs = false;
  for (std::size_t hop = f.first; hop < f.end; ++hop) {
    Link& link = links_[at(path_[hop].link)];
    if (is_contended(link)) changed_links_.push_back(path_[hop].link);
    const int place = path_[hop].place;
    link.flows[at(place)] = link.flows.back();
    path_[link.flows[at(place)].hop].place = place;
    link.flows.pop_back();
    link.wanted = link.flows.empty() ? 0 : link.wanted - f.bound;
  }
}

// The flows whose rates may change: those that pass a link that changed, and those that pass a
// contended link with one of them.
void FairSharing::collect() {
  ++round_;
  reached_.clear();
  reached_links_.clear();
  for (const int link : changed_links_) {
    if (links_[at(link)].seen == round_) continue;
    links_[at(link)].seen = round_;
    reached_links_.push_back(link);
  }
  for (std::size_t i = 0; i < reached_links_.size(); ++i) {
    for (const Passing& passing : links_[at(reached_links_[i])].flows) {
      Flow& flow = flows_[at(passing.flow)];
      if (flow.seen == round_) continue;
      flow.seen = round_;
      reached_.push_back(passing.flow);
      for (std::size_t hop = flow.first; hop < flow.end; ++hop) {
        Link& link = links_[at(path_[hop].link)];
        if (link.seen == round_ || !is_contended(link)) continue;
        link.seen = round_;
        reached_links_.push_back(path_[hop].link);
      }
    }
  }
  changed_links_.clear();
}

void FairSharing::fix(Flow& flow, double rate) {
  flow.rate = rate;
  flow.is_fixed = true;
  for (std::size_t hop = flow.first; hop < flow.end; ++hop) {
    Link& link = links_[at(path_[hop].link)];
    if (link.seen != round_) continue;
    link.left = std::max(0.0, link.left - rate);
    --link.unfixed;
  }
}

void FairSharing::fill() {
  // The level at which a link is full only rises while flows are fixed below it, so that a heap
  // may hold levels that are too low.
  const auto higher = [](const Level& a, const Level& b) { return a.rate > b.rate; };
  levels_.clear();
  for (const int id : reached_links_) {
    Link& link = links_[at(id)];
    link.left = link.capacity;
    link.unfixed = static_cast<int>(link.flows.size());
    if (is_contended(link)) levels_.push_back({link.left / link.unfixed, id});
  }
  std::make_heap(levels_.begin(), levels_.end(), higher);
  for (const int id : reached_) flows_[at(id)].is_fixed = false;
  by_bound_.assign(reached_.begin(), reached_.end());
  std::sort(by_bound_.begin(), by_bound_.end(),
            [this](int a, int b) { return flows_[at(a)].bound < flows_[at(b)].bound; });
  auto next = by_bound_.begin();
  const auto fix_bounded = [&](double level) {
    bool any = false;
    for (; next != by_bound_.end() && flows_[at(*next)].bound <= level; ++next) {
      Flow& flow = flows_[at(*next)];
      if (flow.is_fixed) continue;
      fix(flow, flow.bound);
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
    const double level = link.left / link.unfixed;
    if (level > lowest.rate || fix_bounded(level)) {
      if (link.unfixed == 0) continue;
      levels_.push_back({link.left / link.unfixed, lowest.link});
      std::push_heap(levels_.begin(), levels_.end(), higher);
      continue;
    }
    for (const Passing& passing : link.flows) {
      Flow& flow = flows_[at(passing.flow)];
      if (!flow.is_fixed) fix(flow, level);
    }
  }
  for (; next != by_bound_.end(); ++next) {
    Flow& flow = flows_[at(*next)];
    if (!flow.is_fixed) fix(flow, flow.bound);
  }
}

std::span<const int> FairSharing::settled() {
  new_rates_.clear();
  collect();
  former_.clear();
  for (const int id : reached_) former_.push_back(flows_[at(id)].rate);
  if (!reached_.empty()) fill();
  constexpr double rounding = 1e-13;
  for (std::size_t i = 0; i < reached_.size(); ++i) {
    Flow& flow = flows_[at(reached_[i])];
    if (std::abs(flow.rate - former_[i]) > rounding * flow.rate) {
      new_rates_.push_back(reached_[i]);
    } else {
      flow.rate = former_[i];
    }
  }
  for (const int id : started_) {
    Flow& flow = flows_[at(id)];
    if (flow.runs && flow.seen != round_) {
      flow.rate = flow.bound;
      flow.seen = round_;
      new_rates_.push_back(id);
    }
  }
  started_.clear();
  return new_rates_;
}

}  // namespace paceline::simulator
