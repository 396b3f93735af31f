// A slow, obviously right engine: engine.h's semantics and step_engine.h's SHARING rule, for every
// rank and every transfer, with nothing collapsed, prepared or cut short. The judge of the others.
#pragma once

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "models/collective/enumerate.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::test {

inline std::vector<double> reference_completion(const models::Schedule& schedule,
                                                const simulator::CommunicationCost& cost,
                                                double bytes, std::vector<double> ready) {
  using Key = std::pair<int, int>;  // (node, NIC), or (rank, 0)
  const auto node = [&](int rank) { return rank / cost.ranks_per_node; };
  const auto nic = [&](int rank) {
    const bool striped = cost.nic_use == models::NicUse::striped;
    return Key{node(rank),
               striped ? 0 : rank % cost.ranks_per_node * cost.nics_per_node / cost.ranks_per_node};
  };
  const double nic_rate =
      (cost.nic_use == models::NicUse::striped ? cost.nics_per_node : 1) / cost.nic.beta.value();
  const double port_rate = 1 / cost.intra.beta.value();

  std::vector<double> done = std::move(ready);
  for (int step = 0; step < schedule.steps(); ++step) {
    std::vector<models::Transfer<double>> transfers;
    std::map<Key, double> port_out, port_in, nic_out, nic_in;
    models::for_each_transfer(schedule, step, models::Span<double>{0.0, bytes},
                              [&](const models::Transfer<double>& t) {
                                transfers.push_back(t);
                                port_out[{t.from, 0}] += t.span.size;
                                port_in[{t.to, 0}] += t.span.size;
                                if (node(t.from) != node(t.to)) {
                                  nic_out[nic(t.from)] += t.span.size;
                                  nic_in[nic(t.to)] += t.span.size;
                                }
                              });
    std::vector<double> sent = done;
    std::vector<double> received = done;
    std::vector<double> reduced(done.size(), 0.0);
    for (const auto& t : transfers) {
      const auto from = static_cast<std::size_t>(t.from);
      const auto to = static_cast<std::size_t>(t.to);
      double wire = std::max(port_out[{t.from, 0}], port_in[{t.to, 0}]) / port_rate;
      double alpha = cost.intra.alpha.value();
      if (node(t.from) != node(t.to)) {
        wire = std::max({wire, nic_out[nic(t.from)] / nic_rate, nic_in[nic(t.to)] / nic_rate});
        alpha = cost.nic.alpha.value();
      }
      const double end = std::max(done[from], done[to]) + alpha + wire;
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
