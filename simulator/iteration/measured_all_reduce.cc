// Tests: tests/simulator/measured_all_reduce_test.cc.
#include "simulator/iteration/measured_all_reduce.h"

#include <algorithm>
#include <cmath>

#include "models/cluster/placement.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/cost/root.h"

namespace paceline::simulator {
namespace {

constexpr double largest_factor = 64;
// A factor so small that what it multiplies takes no time.
constexpr double nothing = 1e-9;

// The factor at which a time that never falls with it is as measured, or else the end that is
// nearest. Where another link bounds the time, it is flat, so that neither proportion nor slope would
// do: it is found in logarithms.
double factor_for(Seconds measured, const std::function<Seconds(double)>& time) {
  constexpr double close = 1e-8;
  const auto above = [&](double log_factor) {
    return std::log(time(std::exp(log_factor)) / measured);
  };
  const double high = std::log(largest_factor);
  if (above(-high) >= 0) return 1 / largest_factor;
  if (above(high) <= 0) return largest_factor;
  return std::exp(root(above, -high, high, close));
}

class Fit {
 public:
  Fit(bool between_nodes, const PacedTime& time) : time_(time) {
    pace_.is_measured = true;
    pace_.between_nodes = between_nodes;
  }

  // Whether most of the time is latency.
  [[nodiscard]] bool is_latency(const MeasuredAllReduce& of) const {
    return 2 * at(&Pace::transfer, nothing, of) > time_(pace_, of);
  }
  void correct(double Pace::*factor, const MeasuredAllReduce& by) {
    pace_.*factor = factor_for(by.time, [&](double value) { return at(factor, value, by); });
  }
  [[nodiscard]] bool agrees(const MeasuredAllReduce& with) const {
    constexpr double close = 1e-6;
    return std::abs(time_(pace_, with) / with.time - 1) < close;
  }
  [[nodiscard]] const Pace& pace() const { return pace_; }

 private:
  [[nodiscard]] Seconds at(double Pace::*factor, double value, const MeasuredAllReduce& of) const {
    Pace pace = pace_;
    pace.*factor = value;
    return time_(pace, of);
  }

  const PacedTime& time_;
  Pace pace_;
};

}  // namespace

std::vector<MeasuredAllReduce> telling(const std::vector<MeasuredAllReduce>& measured,
                                       const models::Cluster& cluster, int ranks) {
  const auto between_nodes = [&](int p) { return models::used_nodes(cluster, p) > 1; };
  const auto of_kind = [&](bool between) {
    std::vector<MeasuredAllReduce> kind;
    std::ranges::copy_if(measured, std::back_inserter(kind), [&](const MeasuredAllReduce& one) {
      return between_nodes(one.ranks) == between;
    });
    return kind;
  };
  std::vector<MeasuredAllReduce> kind = of_kind(between_nodes(ranks));
  if (kind.empty() && between_nodes(ranks)) kind = of_kind(false);
  if (kind.empty()) return {};
  const auto apart = [&](const MeasuredAllReduce& one) {
    return std::abs(std::log(static_cast<double>(one.ranks) / ranks));
  };
  const int nearest = std::ranges::min_element(kind, {}, apart)->ranks;
  std::erase_if(kind, [&](const MeasuredAllReduce& one) { return one.ranks != nearest; });
  const auto [least, most] = std::ranges::minmax_element(kind, {}, &MeasuredAllReduce::bytes);
  if (least->bytes == most->bytes) return {*least};
  return {*least, *most};
}

Seconds least_time(const MeasuredAllReduce& of, const CommunicationCost& cost,
                   models::Collective collective) {
  constexpr double margin = 2;
  if (cost.platform != nullptr) return Seconds{0};
  // A ring sends an all-reduce almost twice, and a switch that adds up needs it once.
  const double sent = std::min(1.0, bus_factor(collective, of.ranks));
  const Bytes bytes = sent * of.bytes;
  if (of.ranks > cost.ranks_per_node) return bytes * cost.nic.beta / (margin * cost.nics_per_node);
  const int links = cost.intra_kind == models::IntraKind::switched ? 1
                    : cost.intra_kind == models::IntraKind::ring   ? 2
                                                                   : of.ranks - 1;
  return bytes * cost.intra.beta / (margin * links);
}

Pace pace_of(const std::vector<MeasuredAllReduce>& telling, bool between_nodes,
             const PacedTime& time) {
  if (telling.empty()) return {};
  constexpr int most_rounds = 30;
  const MeasuredAllReduce& small = telling.front();
  const MeasuredAllReduce& large = telling.back();
  Fit fit(between_nodes, time);
  const bool is_one = telling.size() == 1;
  const bool latency = !is_one || fit.is_latency(small);
  const bool transfer = !is_one || !latency;
  for (int round = 0; round < most_rounds && !(fit.agrees(small) && fit.agrees(large)); ++round) {
    if (transfer) fit.correct(&Pace::transfer, large);
    if (latency) fit.correct(&Pace::latency, small);
  }
  return fit.pace();
}

}  // namespace paceline::simulator
