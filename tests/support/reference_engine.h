// A slow, obviously right engine: the semantics of network_engine.h and step_engine.h, for every
// rank and every transfer, with nothing collapsed, prepared or cut short. The judge of the others.
#pragma once

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/collective/enumerate.h"
#include "simulator/cost/communication_cost.h"
#include "tests/support/reference_routes.h"

namespace paceline::test {

inline std::vector<double> reference_completion(const models::Schedule& schedule,
                                                const simulator::CommunicationCost& cost,
                                                double bytes, std::vector<double> ready) {
  const ReferenceRoutes routes(cost, schedule.ranks());
  std::vector<double> done = std::move(ready);
  for (int step = 0; step < schedule.steps(); ++step) {
    std::vector<models::Transfer<double>> transfers;
    std::vector<ReferenceRoutes::Way> ways;
    std::map<std::string, double> load_s;
    models::for_each_transfer(schedule, step, models::Span<double>{0.0, bytes},
                              [&](const models::Transfer<double>& t) {
                                transfers.push_back(t);
                                ways.push_back(routes.way(t.from, t.to));
                                for (const auto& [link, beta_s] : ways.back().links)
                                  load_s[link] += t.span.size * beta_s;
                              });
    std::vector<double> sent = done;
    std::vector<double> received = done;
    std::vector<double> reduced(done.size(), 0.0);
    for (std::size_t i = 0; i < transfers.size(); ++i) {
      const auto& t = transfers[i];
      const auto from = static_cast<std::size_t>(t.from);
      const auto to = static_cast<std::size_t>(t.to);
      double wire = 0;
      for (const auto& [link, beta_s] : ways[i].links) wire = std::max(wire, load_s.at(link));
      const double end = std::max(done[from], done[to]) + ways[i].alpha_s + wire;
      sent[from] = std::max(sent[from], end);
      received[to] = std::max(received[to], end);
      if (t.reduce) reduced[to] += t.span.size;
    }
    for (std::size_t r = 0; r < done.size(); ++r)
      done[r] = std::max(sent[r], received[r] + reduced[r] * cost.gamma.value());
  }
  return done;
}

}  // namespace paceline::test
