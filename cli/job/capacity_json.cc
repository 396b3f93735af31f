// The documents of docs/formats.md that hold candidates. Tests: tests/cli/capacity_test.py,
// tests/cli/schemas_test.py.
#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include "cli/job/capacity.h"
#include "cli/job/document_values.h"
#include "models/base/document.h"
#include "models/base/to_size.h"

namespace paceline::job {
namespace {

// An entry of one of the lists, with the answer that it is in.
template <class T>
struct Line {
  const Capacity& capacity;
  const T& entry;

  [[nodiscard]] std::size_t index(const std::vector<T>& entries) const {
    return to_size(&entry - entries.data());
  }
};

template <class T>
auto lines(std::vector<T> Capacity::*entries) {
  return [entries](const Capacity& capacity) {
    std::vector<Line<T>> all;
    for (const T& entry : capacity.*entries) all.push_back({capacity, entry});
    return all;
  };
}

const Document<models::Cluster>& priced_cluster_document() {
  using models::Cluster;
  static const auto document =
      Document<Cluster>()
          .add("device", [](const Cluster& cluster) { return cluster.device.name; })
          .add("ranks_per_node", &Cluster::ranks_per_node, at_least(1))
          .add("device_memory_bytes",
               [](const Cluster& cluster) { return cluster.device.memory.value; })
          .add(
              "price_of_node",
              [](const Cluster& cluster) { return stated(cluster.price, "usd_per_h"); },
              stated_figure_document())
          .add(
              "rated_power_of_device",
              [](const Cluster& cluster) { return stated(cluster.device.power, "w"); },
              stated_figure_document())
          .add(
              "power_of_node",
              [](const Cluster& cluster) { return stated(cluster.power.node, "w"); },
              stated_figure_document());
  return document;
}

// The figures of a cluster are those of its first candidate, and left out where it has none.
const Document<Line<NamedCluster>>& cluster_document() {
  using Of = Line<NamedCluster>;
  static const auto document =
      Document<Of>()
          .add("label", [](const Of& line) { return line.entry.label(); })
          .add("cluster", [](const Of& line) { return line.entry.cluster; })
          .add("nic", [](const Of& line) { return non_empty(line.entry.nic); })
          .include(
              [](const Of& line) -> const models::Cluster* {
                const std::vector<CapacityCandidate>& all = line.capacity.candidates;
                const auto first = std::ranges::find(all, line.index(line.capacity.clusters),
                                                     &CapacityCandidate::cluster);
                return first == all.end() ? nullptr : &first->job().cluster;
              },
              priced_cluster_document());
  return document;
}

struct PhaseLine {
  const Job& job;
  const simulator::StrategyPrediction& prediction;
};

const Document<PhaseLine>& phase_document() {
  using Phase = PhaseLine;
  static const auto document =
      Document<Phase>()
          .add(
              "batch_per_rank",
              [](const Phase& phase) { return phase.job.question.batch_per_rank; }, at_least(1))
          .add(
              "accumulate", [](const Phase& phase) { return phase.job.question.accumulate; },
              at_least(1))
          .add("precision", [](const Phase& phase) { return phase.job.question.precision; })
          .add("wire_type", [](const Phase& phase) { return phase.prediction.plan.wire; })
          .add(
              "efficiency", [](const Phase& phase) { return phase.prediction.efficiency; },
              not_negative())
          .add("memory_bytes", [](const Phase& phase) { return phase.prediction.memory.total(); })
          .add("largest_batch_per_rank",
               [](const Phase& phase) { return phase.prediction.largest_batch; })
          .add_interval(
              "iteration", "s", [](const Phase& phase) { return phase.prediction.iteration; },
              positive());
  return document;
}

std::vector<PhaseLine> phases_of(const Line<CapacityCandidate>& line) {
  std::vector<PhaseLine> phases;
  const CostRow& row = line.entry.row();
  for (std::size_t i = 0; i < row.phases.size(); ++i)
    phases.push_back({line.entry.cost.job(i), *row.phases[i]});
  return phases;
}

bool is_on_front(const Capacity& capacity, std::size_t candidate) {
  return std::find(capacity.front.begin(), capacity.front.end(), candidate) != capacity.front.end();
}

const Document<Line<CapacityCandidate>>& candidate_document() {
  using Of = Line<CapacityCandidate>;
  const auto row = [](auto get) {
    return [get](const Of& line) { return std::invoke(get, line.entry.row()); };
  };
  static const auto document =
      Document<Of>()
          .add("cluster", [](const Of& line) { return line.capacity.label(line.entry); })
          .add("device", [](const Of& line) { return line.entry.job().cluster.device.name; })
          .add(
              "ranks", [](const Of& line) { return line.entry.ranks; }, at_least(1))
          .add(
              "nodes", [](const Of& line) { return line.entry.nodes; }, at_least(1))
          .add(
              "batch_per_rank",
              [](const Of& line) { return line.entry.job().question.batch_per_rank; }, at_least(1))
          .add(
              "accumulate", [](const Of& line) { return line.entry.job().question.accumulate; },
              at_least(1))
          .add("strategy", row(&CostRow::name))
          .add("by_library_model", row(&CostRow::by_library_model))
          .add("on_front",
               [](const Of& line) {
                 return is_on_front(line.capacity, line.index(line.capacity.candidates));
               })
          .add_interval("time", "s", row([](const CostRow& of) { return of.time.total; }),
                        positive())
          .add_interval("cost", "usd", row([](const CostRow& of) { return of.expenses.cost; }))
          .add_interval("energy", "kwh", row([](const CostRow& of) { return of.expenses.energy; }))
          .add_interval("device", "hours",
                        row([](const CostRow& of) { return of.expenses.device_hours; }))
          .add_interval("efficiency", "",
                        [](const Of& line) { return line.entry.outcome.efficiency; })
          .add("efficiency_baseline_ranks",
               row([](const CostRow& of) { return of.phases.front()->baseline_ranks; }),
               at_least(1))
          .add("throughput_per_s",
               row([](const CostRow& of) { return of.time.samples / of.time.training.value; }),
               positive())
          .add("iterations", row([](const CostRow& of) { return of.time.iterations; }),
               not_negative())
          .add("phases", phases_of, phase_document(), 1);
  return document;
}

const Document<EfficientRanks>& efficient_document() {
  static const auto document = Document<EfficientRanks>()
                                   .add("ranks", &EfficientRanks::ranks, at_least(1))
                                   .add("nodes", &EfficientRanks::nodes, at_least(1))
                                   .add("efficiency", &EfficientRanks::efficiency, not_negative());
  return document;
}

const Document<EfficiencyReach>& bandwidth_document() {
  using Reach = EfficiencyReach;
  static const auto document =
      Document<Reach>()
          .add(
              "at", [](const Reach& reach) -> const EfficientRanks& { return *reach.largest; },
              efficient_document())
          .add("own_bytes_per_s", &Reach::own)
          .add("needed_bytes_per_s", &Reach::needed)
          .add(
              "why_not",
              [](const Reach& reach) {
                return reach.needed ? std::nullopt : std::optional(reach.why_not);
              },
              or_null(any_text()))
          .add_if_any(
              "efficiency",
              [](const Reach& reach) {
                return reach.needed ? std::optional(reach.efficiency_at_needed) : std::nullopt;
              },
              not_negative());
  return document;
}

const Document<Line<EfficiencyReach>>& reach_document() {
  using Of = Line<EfficiencyReach>;
  static const auto document =
      Document<Of>()
          .add("cluster",
               [](const Of& line) { return line.capacity.clusters[line.entry.cluster].label(); })
          .add(
              "holds", [](const Of& line) { return line.entry.holds; }, efficient_document())
          .add(
              "falls", [](const Of& line) { return line.entry.falls; }, efficient_document())
          .add("is_exact", [](const Of& line) { return line.entry.is_exact; })
          .add("holds_again_later", [](const Of& line) { return line.entry.is_again; })
          .add(
              "bandwidth",
              [](const Of& line) { return line.entry.largest ? &line.entry : nullptr; },
              bandwidth_document());
  return document;
}

const Document<Line<Narrowing>>& narrowing_document() {
  using Of = Line<Narrowing>;
  static const auto document =
      Document<Of>()
          .add("known", [](const Of& line) { return line.entry.group; })
          .add(
              "of",
              [](const Of& line) {
                return line.capacity.demand.asks_for_cheapest() ? "cost_usd" : "time_s";
              },
              one_of({"cost_usd", "time_s"}))
          .add("low", [](const Of& line) { return line.entry.interval.low; })
          .add("high", [](const Of& line) { return line.entry.interval.high; })
          .add("share", [](const Of& line) { return line.entry.share; });
  return document;
}

const Document<simulator::Demand>& demand_document() {
  using simulator::Demand;
  static const auto document = Document<Demand>()
                                   .add("within_s", &Demand::within, or_null(positive()))
                                   .add("budget_usd", &Demand::budget, or_null(positive()))
                                   .add("efficiency", &Demand::efficiency, or_null(positive()))
                                   .add("cautious", &Demand::cautious);
  return document;
}

const Document<Line<NoCandidate>>& left_out_document() {
  using Of = Line<NoCandidate>;
  static const auto document =
      Document<Of>()
          .add("cluster",
               [](const Of& line) { return line.capacity.clusters[line.entry.cluster].label(); })
          .add(
              "ranks", [](const Of& line) { return line.entry.ranks; }, list_of(at_least(1), 1))
          .add("why", [](const Of& line) { return line.entry.why; })
          .add(
              "remedy", [](const Of& line) { return line.entry.remedy; }, any_text());
  return document;
}

const Document<NotCompared>& not_compared_document() {
  static const auto document =
      Document<NotCompared>()
          .add("name", &NotCompared::name)
          .add("candidates", &NotCompared::candidates, list_of(at_least(0), 1))
          .add("why", &NotCompared::why)
          .add("remedy", &NotCompared::remedy, any_text());
  return document;
}

}  // namespace

const Document<Capacity>& capacity_document() {
  static const auto first = [](const Capacity& of) -> const Job& {
    return of.candidates.front().job();
  };
  static const auto document =
      Document<Capacity>("paceline.capacity/1",
                         "paceline plan-capacity --json: clusters that train in time or within a "
                         "budget.")
          .add("model", [](const Capacity& of) { return first(of).networks.front().work.name; })
          .add("precision", [](const Capacity& of) { return first(of).question.precision; })
          .add("global_batch", &Capacity::global_batch, or_null(at_least(1)))
          .add("asked", &Capacity::demand, demand_document())
          .add("clusters", lines(&Capacity::clusters), cluster_document(), 1)
          .add("candidates", lines(&Capacity::candidates), candidate_document(), 1)
          .add("front", &Capacity::front)
          .add("answer", &Capacity::answer)
          .add("nearest", &Capacity::nearest)
          .add("left_out", lines(&Capacity::left_out), left_out_document())
          .add("not_compared", &Capacity::not_compared, not_compared_document())
          .add("efficiency", lines(&Capacity::reaches), reach_document())
          .add("narrowing", lines(&Capacity::narrowings), narrowing_document())
          .add("warnings", &Capacity::warnings);
  return document;
}

std::string to_csv(const Capacity& capacity) {
  std::string text =
      "cluster,device,ranks,nodes,batch_per_rank,accumulate,strategy,time_s,time_low_s,time_high_s,"
      "cost_usd,cost_low_usd,cost_high_usd,energy_kwh,energy_low_kwh,energy_high_kwh,efficiency,"
      "efficiency_low,efficiency_high,on_front,answer,provenance\n";
  const auto cells = [](const auto& figure) -> std::string {
    if (!figure) return ",,";
    return fmt::format("{:.9g},{:.9g},{:.9g}", number(figure->value), number(figure->low),
                       number(figure->high));
  };
  for (std::size_t i = 0; i < capacity.candidates.size(); ++i) {
    const CapacityCandidate& candidate = capacity.candidates[i];
    const CostRow& row = candidate.row();
    text += fmt::format(
        "{},{},{},{},{},{},{},{},{},{},{},{:d},{:d},predicted\n", in_csv(capacity.label(candidate)),
        in_csv(candidate.job().cluster.device.name), candidate.ranks, candidate.nodes,
        candidate.job().question.batch_per_rank, candidate.job().question.accumulate,
        in_csv(row.name), cells(&row.time.total), cells(row.expenses.cost),
        cells(row.expenses.energy), cells(&candidate.outcome.efficiency), is_on_front(capacity, i),
        capacity.answer == i);
  }
  return text;
}

}  // namespace paceline::job
