// Tests: tests/cli/capacity_test.py (end to end).
#include "cli/job/capacity.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "cli/job/capacity_options.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "models/base/parallel.h"
#include "models/base/parse_units.h"
#include "models/base/scale_figure.h"
#include "models/cluster/placement.h"
#include "simulator/capacity/crossing.h"

namespace paceline::job {
namespace {

// The bandwidths that are tried are from 1/64 to 64 times the cluster's own, and the least that will
// do is found to 1 %.
constexpr double farthest_factor = 64;
constexpr double bandwidth_tolerance = 0.01;

// One candidate before it is predicted.
struct Point {
  std::size_t cluster = 0;
  int ranks = 1;
};

// Strategies of which nothing but the flow engine knows the time where links are shared, which takes
// it a second a candidate. They are compared only where strategies are named.
bool is_slow_to_follow(const models::Strategy* strategy) {
  return strategy->traits().all_at_once || strategy->name == "direct-exchange";
}

// Why a point is no candidate. Points of a cluster with the same kind stand on one line.
struct Refusal {
  const char* kind;
  std::string why;
  std::string remedy;
};

// What all points of a cluster share.
struct ClusterSetting {
  simulator::Question question;  // with the cluster and its NIC
  TrainingRunOptions run;        // with its price
  int nodes = 1;
  int ranks_per_node = 1;
  int most_ranks = 1;
  int baseline_ranks = 1;
};

simulator::Question with_batch(simulator::Question question, const RankBatch& batch) {
  question.batch_per_rank = batch.batch;
  question.accumulate = batch.accumulate;
  return question;
}

const simulator::StrategyPrediction& phase_of(const CostTable& table, std::size_t phase) {
  return *table.rows.front().phases[phase];
}

bool fits(const CostTable& table) {
  if (table.job(0).question.compute_is_exact) return true;
  const auto& phases = table.rows.front().phases;
  return std::all_of(phases.begin(), phases.end(), [](const auto* phase) { return phase->fits; });
}

// The efficiency of the run: that of each phase by the time that it trains.
double efficiency_of(const CostTable& table) {
  const CostRow& row = table.rows.front();
  if (row.phases.size() == 1) return row.phases.front()->efficiency;
  double ideal = 0;
  for (std::size_t i = 0; i < row.phases.size(); ++i)
    ideal += row.phases[i]->efficiency * row.time.phases[i].training.value.value();
  return ideal / row.time.training.value.value();
}

// The efficiency of a phase, with what its two iterations do not share as its interval.
Figure<double> efficiency_of(const CostTable& table, std::size_t phase) {
  const simulator::StrategyPrediction& row = phase_of(table, phase);
  const double value = row.efficiency;
  auto figure = Figure<double>::exact(value, Provenance::predicted, row.compute_source);
  if (row.baseline_ranks == table.ranks) return figure;
  Job job = table.job(phase);
  // The baseline has the planner's thresholds, whatever was named.
  job.question.thresholds = {};
  job.question.baseline_ranks = row.baseline_ranks;
  const PredictionTable baseline = predict_table(job, job.networks.front(), row.baseline_ranks);
  const simulator::StrategyPrediction& against = baseline.rows.front();
  if (row.spread.factors.empty() || against.spread.factors.empty()) {
    const double ends[] = {value * (against.iteration.low / against.iteration.value) /
                               (row.iteration.low / row.iteration.value),
                           value * (against.iteration.high / against.iteration.value) /
                               (row.iteration.high / row.iteration.value)};
    figure.low = std::min({value, ends[0], ends[1]});
    figure.high = std::max({value, ends[0], ends[1]});
    return figure;
  }
  const models::Effects* effects = simulator::effects_of(
      job.cluster, job.profile ? &*job.profile : nullptr, job.question.compute_is_exact);
  const double doublings = std::log2(static_cast<double>(table.ranks) / row.baseline_ranks);
  const double exposed = std::hypot(row.spread.exposed, against.spread.exposed);
  const simulator::IntervalFactors times = simulator::ratio_interval(
      row.spread, against.spread, simulator::unexplained_deviation(*effects, doublings, exposed));
  figure.low = value / times.high;
  figure.high = value / times.low;
  return figure;
}

simulator::Outcome outcome_of(const CostTable& table) {
  const CostRow& row = table.rows.front();
  simulator::Outcome outcome{row.time.total, row.expenses.cost, {}};
  if (row.phases.size() == 1) {
    outcome.efficiency = efficiency_of(table, 0);
    return outcome;
  }
  // Phases are fast and slow together, so that ends add.
  const double all = row.time.training.value.value();
  for (std::size_t i = 0; i < row.phases.size(); ++i) {
    const Figure<double> phase = efficiency_of(table, i);
    const double share = row.time.phases[i].training.value.value() / all;
    outcome.efficiency.low += share * phase.low;
    outcome.efficiency.high += share * phase.high;
  }
  outcome.efficiency.value = efficiency_of(table);
  outcome.efficiency.provenance = Provenance::predicted;
  return outcome;
}

// The bandwidth of a NIC that predictions take.
BytesPerSecond nic_bandwidth(const Job& job) {
  return job.profile && job.profile->nic_bandwidth ? job.profile->nic_bandwidth->value
                                                   : job.cluster.nic.bandwidth.value;
}

void speed_up_nic(Job& job, double factor) {
  job.cluster = models::with_faster_nic(std::move(job.cluster), factor);
  if (job.profile) scale(job.profile->nic_bandwidth, factor);
}

class Planner {
 public:
  Planner(const CapacityOptions& options, int threads, const CapacityObserver& observer)
      : options_(options),
        batches_(parse_batches(options)),
        // SimGrid times schedules in a child process, for which no other thread may be at work.
        threads_(options.common.engine == simulator::EngineKind::simgrid ? 1 : threads),
        observer_(observer) {}

  Capacity plan() {
    capacity_.demand = parse_demand(options_);
    capacity_.global_batch = batches_.global;
    capacity_.clusters = parse_clusters(options_);
    load_clusters();
    find_points();
    predict();
    note_not_compared();
    choose();
    return std::move(capacity_);
  }

 private:
  // Loads each cluster once, so that whatever is wrong with an option is said before any work.
  void load_clusters() {
    const NodePrices prices(options_.run.node_price, capacity_.clusters);
    std::set<std::string> devices;
    for (const NamedCluster& named : capacity_.clusters) {
      ClusterSetting setting{.question = with_batch(options_.common, batches_.any()),
                             .run = options_.run};
      setting.question.cluster = named.cluster;
      setting.question.nic = named.nic;
      setting.run.node_price = prices.of(named);
      Job job = load_job(setting.question);
      if (job.networks.size() != 1)
        throw InputError({"--model"}, fmt::format("{} networks", job.networks.size()),
                         "a training run has one");
      state_expenses(setting.run, job.cluster);
      devices.insert(job.cluster.device.name);
      setting.most_ranks = models::placed_ranks(job.cluster);
      setting.ranks_per_node = job.cluster.ranks_per_node;
      setting.nodes = job.cluster.nodes;
      settings_.push_back(std::move(setting));
    }
    const simulator::StatedCompute& compute = options_.common.compute;
    const bool is_stated = !compute.throughput.empty() || compute.node_throughput.has_value();
    if (is_stated && devices.size() > 1)
      throw InputError(
          {compute.throughput.empty() ? "--node-throughput" : "--throughput"},
          fmt::format("it is the rate of one device, and there are {}", fmt::join(devices, ", ")),
          "compare clusters of one device, or calibrate a profile for each");
  }

  void find_points() {
    std::map<std::pair<std::size_t, std::string>, std::size_t> lines;
    for (std::size_t i = 0; i < settings_.size(); ++i) {
      ClusterSetting& setting = settings_[i];
      const std::vector<int> all =
          ranks_of_candidates(options_, setting.nodes, setting.ranks_per_node);
      int least = models::max_ranks;
      for (const int ranks : all) {
        if (ranks > setting.most_ranks) {
          leave_out({i, ranks}, {"size", fmt::format("it has {} ranks", setting.most_ranks), ""});
          continue;
        }
        points_.push_back({i, ranks});
        least = std::min(least, ranks);
      }
      setting.baseline_ranks = least >= setting.ranks_per_node ? setting.ranks_per_node : 1;
    }
    if (points_.size() > most_candidates)
      throw InputError({options_.nodes.empty() ? "--ranks" : "--nodes"},
                       fmt::format("{} candidates", points_.size()),
                       fmt::format("at most {}", most_candidates));
  }

  [[nodiscard]] simulator::Question question_at(const Point& point, const RankBatch& batch) const {
    return with_batch(settings_[point.cluster].question, batch);
  }

  [[nodiscard]] CostTable cost(const Point& point, simulator::Question question,
                               const std::function<void(Job&)>& adjust = {},
                               bool only_best = true) const {
    const ClusterSetting& setting = settings_[point.cluster];
    question.ranks = std::to_string(point.ranks);
    return cost_table(question, setting.run,
                      {.adjust =
                           [&](Job& job) {
                             // One baseline for all ranks of a cluster, which all of them reach.
                             job.question.baseline_ranks =
                                 std::min(setting.baseline_ranks, point.ranks);
                             if (question.strategies.are_chosen_here()) {
                               std::erase_if(job.strategies, is_slow_to_follow);
                               job.without_servers.clear();  // these are slow, too
                             }
                             // A batch that does not fit is cut, and else refused, by predict().
                             job.question.ignore_memory = true;
                             if (adjust) adjust(job);
                           },
                       .only_best = only_best});
  }

  // What a point trains with: its batch, cut until it fits if that is asked for.
  std::optional<CostTable> predict(const Point& point, simulator::Question& question,
                                   Refusal& refusal) const {
    const int of_a_sample = options_.common.layout.ranks_of_sample();
    if (point.ranks % of_a_sample != 0) {
      refusal = {"layout",
                 fmt::format("{} ranks of a sample do not divide {}", of_a_sample, point.ranks),
                 ""};
      return std::nullopt;
    }
    const std::optional<RankBatch> whole = batches_.of(point.ranks / of_a_sample);
    if (!whole) {
      refusal = {"batch",
                 fmt::format("a batch of {} has no equal parts for them", batches_.described()),
                 ""};
      return std::nullopt;
    }
    question = question_at(point, *whole);
    CostTable table = cost(point, question);
    if (options_.common.ignore_memory || fits(table)) return table;
    const models::Cluster& cluster = table.job(0).cluster;
    int largest = std::numeric_limits<int>::max();
    Bytes needed;
    for (const simulator::StrategyPrediction* phase : table.rows.front().phases) {
      largest = std::min(largest, phase->largest_batch);
      needed = std::max(needed, phase->memory.total());
    }
    const char* hint =
        batches_.cuts() || !options_.run.phases.empty() ? "" : ": --accumulate auto cuts it";
    refusal = {"memory",
               fmt::format("{} of a {} do not hold it: at {} ranks, batch {} needs {}",
                           to_text(cluster.device.memory.value), cluster.device.name, point.ranks,
                           whole->batch, to_text(needed)),
               largest == 0 ? "not even one sample of a rank fits"
                            : fmt::format("a batch of at most {} fits{}", largest, hint)};
    if (!batches_.cuts() || largest == 0) return std::nullopt;
    const std::optional<RankBatch> cut = batches_.cut(*whole, largest);
    if (!cut) return std::nullopt;
    question = question_at(point, *cut);
    CostTable in_parts = cost(point, question);
    if (!fits(in_parts)) return std::nullopt;
    return in_parts;
  }

  void predict() {
    struct Result {
      std::optional<CapacityCandidate> candidate;
      Refusal refusal;
      std::optional<InputError> error;
    };
    std::vector<Result> results(points_.size());
    // The largest take longest, so that they go first.
    std::vector<std::size_t> order(points_.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return points_[a].ranks > points_[b].ranks;
    });
    std::atomic<std::size_t> done{0};
    for_each_index(order.size(), threads_, [&](std::size_t at) {
      const Point& point = points_[order[at]];
      Result& result = results[order[at]];
      try {
        simulator::Question question;
        auto table = predict(point, question, result.refusal);
        if (table) {
          simulator::Outcome outcome = outcome_of(*table);
          const int nodes = table->rows.front().expenses.nodes;
          result.candidate.emplace(CapacityCandidate{point.cluster, point.ranks, nodes,
                                                     std::move(question), std::move(*table),
                                                     std::move(outcome)});
        }
      } catch (const InputError& error) {
        result.error = error;
      }
      report(fmt::format("{} ranks of {}", point.ranks, capacity_.clusters[point.cluster].label()),
             ++done, order.size());
    });
    for (std::size_t i = 0; i < points_.size(); ++i) {
      if (results[i].candidate) {
        capacity_.candidates.push_back(*std::move(results[i].candidate));
      } else if (results[i].error) {
        leave_out(points_[i], {"error", results[i].error->problem(), results[i].error->remedy()});
      } else {
        leave_out(points_[i], results[i].refusal);
      }
    }
    if (!capacity_.candidates.empty()) return;
    for (const Result& result : results) {
      if (result.error) throw *result.error;
    }
    throw no_candidate();
  }

  [[nodiscard]] InputError no_candidate() const {
    const NoCandidate& first = capacity_.left_out.front();
    return {fmt::format("there is no candidate; {}, {} rank{}: {}",
                        capacity_.clusters[first.cluster].label(), first.ranks.front(),
                        first.ranks.front() == 1 ? "" : "s", first.why),
            first.remedy};
  }

  void leave_out(const Point& point, const Refusal& refusal) {
    const std::string kind = std::string(refusal.kind) == "error" ? refusal.why : refusal.kind;
    const auto [line, is_new] =
        lines_.emplace(std::pair{point.cluster, kind}, capacity_.left_out.size());
    if (is_new) capacity_.left_out.push_back({point.cluster, {}, refusal.why, refusal.remedy});
    capacity_.left_out[line->second].ranks.push_back(point.ranks);
  }

  // Strategies that no candidate was compared by, and then those that a candidate's table left out.
  void note_not_compared() {
    std::vector<std::size_t> all(capacity_.candidates.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
    for (const models::Strategy& strategy : models::strategy_catalogue())
      if (options_.common.strategies.are_chosen_here() && is_slow_to_follow(&strategy))
        capacity_.not_compared.push_back(
            {std::string(strategy.name), all, "it takes a second a candidate to follow",
             fmt::format("--strategy all or --strategy {} asks for it", strategy.name)});
    for (const std::size_t i : all)
      for (const simulator::LeftOut& row : capacity_.candidates[i].cost.left_out) {
        auto known = std::find_if(capacity_.not_compared.begin(), capacity_.not_compared.end(),
                                  [&](const NotCompared& one) { return one.name == row.name; });
        if (known == capacity_.not_compared.end())
          known = capacity_.not_compared.insert(known, {row.name, {}, row.why, row.remedy});
        if (known->candidates.empty() || known->candidates.back() != i)
          known->candidates.push_back(i);
      }
  }

  void choose() {
    std::vector<simulator::Outcome> outcomes;
    for (const CapacityCandidate& candidate : capacity_.candidates)
      outcomes.push_back(candidate.outcome);
    const simulator::Demand& demand = capacity_.demand;
    const bool any_price = std::any_of(outcomes.begin(), outcomes.end(), [](const auto& outcome) {
      return outcome.cost.has_value();
    });
    if (demand.needs_cost() && !any_price)
      throw InputError(
          fmt::format("nothing says what a node of {} costs",
                      capacity_.label(capacity_.candidates.front())),
          fmt::format("add --node-price '{}=24.48 USD/h', or price: in its file (offers: paceline "
                      "show catalog)",
                      capacity_.label(capacity_.candidates.front())));
    warn();
    capacity_.front = simulator::pareto_front(outcomes);
    if (demand.efficiency) find_reaches();
    if (!demand.asks_anything()) return;
    capacity_.answer = simulator::best_within(outcomes, demand);
    if (capacity_.answer) {
      find_narrowings();
    } else {
      capacity_.nearest = simulator::nearest(outcomes, demand);
    }
  }

  void warn() {
    for (const CapacityCandidate& candidate : capacity_.candidates) {
      for (const std::string& warning : candidate.cost.warnings) {
        if (std::find(capacity_.warnings.begin(), capacity_.warnings.end(), warning) ==
            capacity_.warnings.end())
          capacity_.warnings.push_back(warning);
      }
    }
    const models::TrainingRun& run = capacity_.candidates.front().cost.run;
    const bool counts_iterations =
        std::any_of(run.phases.begin(), run.phases.end(), [](const models::Phase& phase) {
          return phase.length.measure == models::Measure::iterations;
        });
    if (counts_iterations && !batches_.global)
      capacity_.warnings.emplace_back(
          "as many iterations of more ranks train on more samples: give --global-batch, or "
          "--samples "
          "in place of --iterations");
  }

  // --- where efficiency falls, and what NIC would hold it ---

  [[nodiscard]] EfficientRanks efficient(const Point& point, double efficiency) const {
    const int g = settings_[point.cluster].ranks_per_node;
    return {point.ranks, (point.ranks + g - 1) / g, efficiency};
  }

  [[nodiscard]] EfficiencyReach reach_of(std::size_t cluster) const {
    const double wanted = *capacity_.demand.efficiency;
    EfficiencyReach reach;
    reach.cluster = cluster;
    const CapacityCandidate* last = nullptr;
    const CapacityCandidate* falls = nullptr;
    const CapacityCandidate* largest = nullptr;
    for (const CapacityCandidate& candidate : capacity_.candidates) {
      if (candidate.cluster != cluster) continue;
      const bool holds = candidate.outcome.efficiency.value >= wanted;
      if (holds && falls != nullptr) reach.is_again = true;
      if (holds && falls == nullptr) last = &candidate;
      if (!holds && falls == nullptr) falls = &candidate;
      if (candidate.nodes > 1) largest = &candidate;
    }
    if (last != nullptr)
      reach.holds = EfficientRanks{last->ranks, last->nodes, last->outcome.efficiency.value};
    if (falls != nullptr)
      reach.falls = EfficientRanks{falls->ranks, falls->nodes, falls->outcome.efficiency.value};
    if (last != nullptr && falls != nullptr) narrow(*last, *falls, reach);
    if (largest != nullptr) find_bandwidth(*largest, reach);
    return reach;
  }

  // Looks for the step between two candidates, in nodes or in ranks. A batch of all ranks has no equal
  // parts for most numbers in between, so that the step stays as wide as it is.
  void narrow(const CapacityCandidate& last, const CapacityCandidate& falls,
              EfficiencyReach& reach) const {
    const int g = settings_[last.cluster].ranks_per_node;
    const int step = last.ranks % g == 0 && falls.ranks % g == 0 ? g : 1;
    if (batches_.global) {
      reach.is_exact = falls.ranks - last.ranks <= step;
      return;
    }
    const double wanted = *capacity_.demand.efficiency;
    std::map<int, double> known = {{last.ranks / step, last.outcome.efficiency.value},
                                   {falls.ranks / step, falls.outcome.efficiency.value}};
    const auto holds = [&](int steps) {
      // The batch of a rank is that of the last one that holds it.
      const double efficiency = efficiency_of(cost({last.cluster, steps * step}, last.question));
      known[steps] = efficiency;
      return efficiency >= wanted;
    };
    const simulator::Crossing<int> at =
        simulator::crossing(last.ranks / step, falls.ranks / step, /*holds_at_low=*/true, holds);
    reach.holds = efficient({last.cluster, at.below * step}, known[at.below]);
    reach.falls = efficient({last.cluster, at.above * step}, known[at.above]);
    reach.is_exact = true;
  }

  void find_bandwidth(const CapacityCandidate& largest, EfficiencyReach& reach) const {
    const double wanted = *capacity_.demand.efficiency;
    const Job& job = largest.job();
    reach.largest = EfficientRanks{largest.ranks, largest.nodes, largest.outcome.efficiency.value};
    if (!job.cluster.has_nic() || job.cluster.platform != nullptr) {
      reach.why_not = "its platform has links of its own";
      return;
    }
    reach.own = static_cast<double>(job.cluster.nics_per_node) * nic_bandwidth(job);
    if (job.profile && job.profile->transport) {
      reach.why_not = fmt::format("profile {} calibrated messages over its NIC", job.profile->name);
      return;
    }
    const Point point{largest.cluster, largest.ranks};
    const auto at = [&](double factor) {
      return efficiency_of(
          cost(point, largest.question, [&](Job& faster) { speed_up_nic(faster, factor); }));
    };
    const bool has_enough = largest.outcome.efficiency.value >= wanted;
    double low = has_enough ? 1 / farthest_factor : 1;
    double high = has_enough ? 1 : farthest_factor;
    double at_high = has_enough ? largest.outcome.efficiency.value : at(high);
    if (!has_enough) reach.efficiency_at_fastest = at_high;
    if (at_high < wanted) {
      reach.why_not =
          fmt::format("{:g} times as much gives {:.1f} %", farthest_factor, 100 * at_high);
      return;
    }
    if (has_enough) {
      const double at_low = at(low);
      if (at_low >= wanted) {
        reach.needed = low * reach.own;
        reach.efficiency_at_needed = at_low;
        return;
      }
    }
    const auto holds = [&](double factor) {
      const double efficiency = at(factor);
      if (efficiency >= wanted) at_high = efficiency;
      return efficiency >= wanted;
    };
    const simulator::Crossing<double> found =
        simulator::crossing(low, high, bandwidth_tolerance, /*holds_at_low=*/false, holds);
    reach.needed = found.above * reach.own;
    reach.efficiency_at_needed = at_high;
  }

  void find_reaches() {
    std::set<std::size_t> clusters;
    for (const CapacityCandidate& candidate : capacity_.candidates)
      clusters.insert(candidate.cluster);
    const std::vector<std::size_t> all(clusters.begin(), clusters.end());
    capacity_.reaches.resize(all.size());
    std::atomic<std::size_t> done{0};
    for_each_index(all.size(), threads_, [&](std::size_t i) {
      capacity_.reaches[i] = reach_of(all[i]);
      report("where efficiency falls on " + capacity_.clusters[all[i]].label(), ++done, all.size());
    });
  }

  // --- which measurement would narrow the answer most ---

  [[nodiscard]] Figure<double> answer_of(const simulator::TimeToTrain& time,
                                         const simulator::Expenses& expenses) const {
    if (!capacity_.demand.asks_for_cheapest())
      return {time.total.value.value(), time.total.low.value(), time.total.high.value(),
              Provenance::predicted, ""};
    const Figure<Usd>& cost = *expenses.cost;
    return {cost.value.value(), cost.low.value(), cost.high.value(), Provenance::predicted, ""};
  }

  void find_narrowings() {
    const CapacityCandidate& answer = capacity_.candidates[*capacity_.answer];
    const auto width = [](const Figure<double>& figure) {
      return figure.low > 0 ? std::log(figure.high / figure.low) : 0;
    };
    const double whole = width(answer_of(answer.row().time, answer.row().expenses));
    capacity_.narrowings.resize(simulator::figure_groups.size());
    for_each_index(capacity_.narrowings.size(), threads_, [&](std::size_t at) {
      Narrowing& narrowing = capacity_.narrowings[at];
      narrowing.group = simulator::figure_groups[at].first;
      std::size_t phase_job = 0;
      const CostTable known = cost(
          {answer.cluster, answer.ranks}, answer.question,
          [&](Job& job) {
            const Job& stated = answer.cost.jobs[phase_job++];
            job.strategies = stated.strategies;
            job.wires = stated.wires;
            simulator::make_known(narrowing.group, job.cluster, job.profile);
          },
          /*only_best=*/false);
      narrowing.interval = answer_of(known.rows.front().time, known.rows.front().expenses);
      narrowing.share = whole > 0 ? std::max(0.0, 1 - width(narrowing.interval) / whole) : 0;
    });
    std::stable_sort(capacity_.narrowings.begin(), capacity_.narrowings.end(),
                     [](const Narrowing& a, const Narrowing& b) { return a.share > b.share; });
  }

  void report(const std::string& what, std::size_t done, std::size_t all) const {
    if (observer_) observer_(what, static_cast<double>(done) / static_cast<double>(all));
  }

  const CapacityOptions& options_;
  Batches batches_;
  int threads_;
  const CapacityObserver& observer_;
  Capacity capacity_;
  std::vector<ClusterSetting> settings_;  // of capacity_.clusters
  std::vector<Point> points_;             // by cluster, then by ranks
  // The lines of capacity_.left_out, by cluster and reason.
  std::map<std::pair<std::size_t, std::string>, std::size_t> lines_;
};

}  // namespace

Capacity capacity(const CapacityOptions& options, int threads, const CapacityObserver& observer) {
  return Planner(options, threads, observer).plan();
}

}  // namespace paceline::job
