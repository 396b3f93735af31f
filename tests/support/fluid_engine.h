// A slow judge of the flow engine, written from network_engine.h, step_engine.h (synchronous steps)
// and flow_engine.h (sharing) alone: every rank walks through
// every step, and at every event all rates of all flows are found anew by raising them together
// until a link is full. Nothing is collapsed, kept or cut short.
#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <vector>

#include "models/collective/enumerate.h"
#include "simulator/engine/routes.h"

namespace paceline::test {

// Max-min rates of flows, each over a set of links: the definition, by exhaustion.
inline std::vector<double> fair_rates(const std::vector<std::vector<int>>& paths,
                                      const std::vector<double>& bounds,
                                      const std::map<int, double>& capacities) {
  std::map<int, std::vector<std::size_t>> flows_of;
  for (std::size_t f = 0; f < paths.size(); ++f) {
    for (const int link : paths[f]) flows_of[link].push_back(f);
  }
  std::vector<double> rates(paths.size(), 0.0);
  std::vector<bool> fixed(paths.size(), false);
  for (std::size_t left = paths.size(); left > 0;) {
    // The least level at which an open flow is stopped by its bound or by a link.
    double level = std::numeric_limits<double>::infinity();
    std::map<int, double> level_of;
    for (const auto& [link, flows] : flows_of) {
      double rest = capacities.at(link);
      int open = 0;
      for (const std::size_t f : flows) {
        rest -= rates[f];
        open += fixed[f] ? 0 : 1;
      }
      if (open > 0) level_of[link] = std::max(0.0, rest) / open;
    }
    for (const auto& [link, value] : level_of) level = std::min(level, value);
    for (std::size_t f = 0; f < paths.size(); ++f) {
      if (!fixed[f]) level = std::min(level, bounds[f]);
    }
    const double full = level * (1 + 1e-12);
    std::vector<std::size_t> stopped;
    for (std::size_t f = 0; f < paths.size(); ++f) {
      if (!fixed[f] && bounds[f] <= full) stopped.push_back(f);
    }
    for (const auto& [link, value] : level_of) {
      if (value <= full)
        stopped.insert(stopped.end(), flows_of[link].begin(), flows_of[link].end());
    }
    for (const std::size_t f : stopped) {
      if (fixed[f]) continue;
      rates[f] = level;
      fixed[f] = true;
      --left;
    }
  }
  return rates;
}

class FluidEngine {
 public:
  struct Collective {
    models::Schedule schedule;
    double bytes = 0;
    std::vector<double> ready;  // of each rank
  };
  FluidEngine(const simulator::CommunicationCost& cost, int ranks)
      : routes_(cost, ranks), gamma_(cost.gamma.value()) {}

  // When each rank is done with each collective, all in flight together.
  [[nodiscard]] std::vector<std::vector<double>> completion(
      const std::vector<Collective>& collectives) {
    flows_.clear();
    actors_.clear();
    for (std::size_t c = 0; c < collectives.size(); ++c) {
      actors_.emplace_back(collectives[c].ready.size());
      for (std::size_t r = 0; r < collectives[c].ready.size(); ++r)
        actors_[c][r].busy_until = collectives[c].ready[r];
    }
    double now = 0;
    while (advance(collectives, now)) {
    }
    std::vector<std::vector<double>> finish;
    for (const auto& ranks : actors_) {
      finish.emplace_back();
      for (const Actor& actor : ranks) finish.back().push_back(actor.finish);
    }
    return finish;
  }

 private:
  static constexpr double never = std::numeric_limits<double>::infinity();
  struct Actor {
    int step = -1;              // that it is in
    double busy_until = never;  // until it is ready, or has reduced
    int open_sends = 0;
    int open_receives = 0;
    double finish = never;
  };
  struct Flow {
    std::size_t collective;
    models::Transfer<double> message;
    int step;
    double begins = never;  // after alpha, once both ends are there
    double left = 0;
    double rate = 0;
    std::vector<int> path;
  };

  // One event. False if there is none left.
  bool advance(const std::vector<Collective>& collectives, double& now) {
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::size_t c = 0; c < actors_.size(); ++c) {
        for (std::size_t r = 0; r < actors_[c].size(); ++r) {
          Actor& actor = actors_[c][r];
          if (actor.busy_until > now * (1 + 1e-13)) continue;
          if (actor.open_sends > 0) continue;
          actor.busy_until = never;
          ++actor.step;
          moved = true;
          if (actor.step == collectives[c].schedule.steps()) {
            actor.finish = now;
          } else {
            post(collectives[c], c, static_cast<int>(r), now);
          }
        }
      }
    }
    std::vector<std::vector<int>> paths;
    std::vector<double> bounds;
    std::map<int, double> capacities;
    std::vector<Flow*> running;
    for (Flow& flow : flows_) {
      if (flow.begins > now * (1 + 1e-13)) continue;
      running.push_back(&flow);
      paths.emplace_back();
      double bound = never;
      for (const int link : flow.path) {
        const double capacity = 1 / routes_.beta_s(link);
        bound = std::min(bound, capacity);
        if (!routes_.is_shared(link)) continue;
        capacities[link] = capacity;
        paths.back().push_back(link);
      }
      bounds.push_back(bound);
    }
    const std::vector<double> rates = fair_rates(paths, bounds, capacities);
    double next = never;
    for (std::size_t f = 0; f < running.size(); ++f) {
      running[f]->rate = rates[f];
      next = std::min(next, now + (running[f]->left > 0 ? running[f]->left / rates[f] : 0));
    }
    for (const Flow& flow : flows_) {
      if (flow.begins > now * (1 + 1e-13)) next = std::min(next, flow.begins);
    }
    for (const auto& ranks : actors_) {
      for (const Actor& actor : ranks) {
        if (actor.open_sends == 0) next = std::min(next, actor.busy_until);
      }
    }
    if (next == never) return false;
    const double passed = next - now;
    now = next;
    for (std::size_t f = 0; f < running.size(); ++f) running[f]->left -= passed * rates[f];
    std::vector<Flow> still;
    for (Flow& flow : flows_) {
      // What is left of one that is through: the rounding of its size and of the time of day.
      const double rounding = 1e-12 * flow.message.span.size + flow.rate * 1e-15 * now;
      if (flow.rate > 0 && flow.left <= rounding) {
        arrive(collectives[flow.collective], flow, now);
      } else {
        still.push_back(std::move(flow));
      }
    }
    flows_ = std::move(still);
    return true;
  }

  void post(const Collective& collective, std::size_t c, int rank, double now) {
    Actor& actor = actors_[c][static_cast<std::size_t>(rank)];
    const auto there = [&](const models::Transfer<double>& m, int peer) {
      const Actor& other = actors_[c][static_cast<std::size_t>(peer)];
      if (other.step != actor.step || other.finish != never) return;
      std::vector<int> path;
      const double alpha = routes_.path(m.from, m.to, path);
      flows_.push_back({.collective = c,
                        .message = m,
                        .step = actor.step,
                        .begins = now + alpha,
                        .left = m.span.size,
                        .path = path});
    };
    const models::Span<double> bucket{0.0, collective.bytes};
    models::for_each_send(collective.schedule, rank, actor.step, bucket, [&](const auto& m) {
      ++actor.open_sends;
      there(m, m.to);
    });
    models::for_each_receive(collective.schedule, rank, actor.step, bucket, [&](const auto& m) {
      ++actor.open_receives;
      there(m, m.from);
    });
    if (actor.open_sends + actor.open_receives == 0) actor.busy_until = now;
    if (actor.open_receives == 0) actor.busy_until = now;  // nothing to wait for but its sends
  }

  void arrive(const Collective& collective, const Flow& flow, double now) {
    auto& ranks = actors_[flow.collective];
    --ranks[static_cast<std::size_t>(flow.message.from)].open_sends;
    Actor& receiver = ranks[static_cast<std::size_t>(flow.message.to)];
    if (--receiver.open_receives > 0) return;
    double reduced = 0;
    models::for_each_receive(collective.schedule, flow.message.to, flow.step,
                             models::Span<double>{0.0, collective.bytes},
                             [&](const auto& m) { reduced += m.reduce ? m.span.size : 0; });
    receiver.busy_until = now + gamma_ * reduced;
  }

  simulator::Routes routes_;
  double gamma_;
  std::vector<std::vector<Actor>> actors_;
  std::vector<Flow> flows_;
};

}  // namespace paceline::test
