// Tests: tests/cli/capacity_test.py.
#include "cli/capacity_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "cli/cost_text.h"
#include "cli/prediction_notes.h"
#include "cli/prediction_text.h"
#include "cli/table.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

using job::Capacity;
using job::CapacityCandidate;

// A narrowing below this share is no reason to measure anything.
constexpr double least_share = 0.01;

std::string counted(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", count, what, count == 1 ? "" : "s");
}

// A time as a user says it: in the largest unit of which it is a whole number.
std::string asked_time_text(Seconds time) {
  constexpr std::pair<const char*, double> units[] = {{"days", 86'400}, {"h", 3600}, {"min", 60}};
  for (const auto& [unit, seconds] : units) {
    const double count = time.value() / seconds;
    if (count >= 1 && count == std::floor(count)) return fmt::format("{:.0f} {}", count, unit);
  }
  return clock_text(time);
}

std::string cost_text(const std::optional<Figure<Usd>>& cost) {
  return cost ? to_text(cost->value) : "-";
}
// "70.28 - 166.7 USD"
std::string cost_interval_text(const std::optional<Figure<Usd>>& cost) {
  return cost ? fmt::format("{:.4g} - {}", cost->low.value(), to_text(cost->high)) : "-";
}
std::string efficiency_interval_text(const Figure<double>& efficiency) {
  if (efficiency.low == efficiency.high) return "-";
  return fmt::format("{:.1f} - {}", 100 * efficiency.low, percent(efficiency.high));
}
std::string batch_text(const job::Job& job) {
  return job.question.accumulate == 1
             ? std::to_string(job.question.batch_per_rank)
             : fmt::format("{} x {}", job.question.batch_per_rank, job.question.accumulate);
}
std::string ranks_text(const std::vector<int>& ranks) {
  return fmt::format("{} rank{}", fmt::join(ranks, ", "),
                     ranks.size() == 1 && ranks.front() == 1 ? "" : "s");
}

std::string place_text(const Capacity& capacity, const CapacityCandidate& candidate) {
  const models::Cluster& cluster = candidate.job().cluster;
  return fmt::format("{} of {} ({} of {} {})", counted(candidate.ranks, "rank"),
                     capacity.label(candidate), counted(candidate.nodes, "node"),
                     cluster.ranks_per_node, cluster.device.name);
}

std::string title_text(const Capacity& capacity) {
  const CapacityCandidate& first = capacity.candidates.front();
  const job::Job& job = first.job();
  const models::TrainingRun& run = first.cost.run;
  std::string text = job.networks.front().work.name;
  if (run.phases.size() == 1) {
    text += ", " + to_text(run.phases.front().length);
    if (run.dataset)
      text += fmt::format(" of {:.0f} samples{}", run.dataset->samples,
                          run.dataset->name.empty() ? "" : " (" + run.dataset->name + ")");
  } else {
    text += fmt::format(", {}: {} phases", run.name, run.phases.size());
  }
  text += capacity.global_batch
              ? fmt::format(", batch {} of all ranks", *capacity.global_batch)
              : fmt::format(", batch {} {}", batch_text(job), per_ranks(job.question.layout));
  std::set<std::size_t> clusters;
  for (const CapacityCandidate& candidate : capacity.candidates) clusters.insert(candidate.cluster);
  return text +
         fmt::format(", {} precision: {} on {}\n\n", name(job.question.precision),
                     counted(static_cast<std::int64_t>(capacity.candidates.size()), "candidate"),
                     counted(static_cast<std::int64_t>(clusters.size()), "cluster"));
}

std::string figures_text(const CapacityCandidate& candidate) {
  const job::CostRow& row = candidate.row();
  std::string text = fmt::format("time {} ({})", clock_text(row.time.total.value),
                                 clock_interval_text(row.time.total));
  if (row.expenses.cost)
    text += fmt::format(", cost {} ({})", cost_text(row.expenses.cost),
                        cost_interval_text(row.expenses.cost));
  const Figure<double>& efficiency = candidate.outcome.efficiency;
  text += fmt::format(", efficiency {}", percent(efficiency.value));
  if (efficiency.low != efficiency.high)
    text += fmt::format(" ({})", efficiency_interval_text(efficiency));
  return text;
}

// A line on each limit that the interval of the answer crosses.
std::string doubts_text(const Capacity& capacity, const CapacityCandidate& answer) {
  simulator::Demand cautious = capacity.demand;
  cautious.cautious = true;
  if (simulator::miss(answer.outcome, cautious) <= 1) return "";
  return "  its interval reaches beyond what is asked: --cautious asks for one whose interval does "
         "not\n";
}

// Numbers of nodes that nobody compared, between the answer and the next candidate of its cluster that
// does not do what is asked: below it for the cheapest, above it for the fastest.
std::string gap_text(const Capacity& capacity, const CapacityCandidate& answer) {
  const bool is_below = capacity.demand.asks_for_cheapest();
  const CapacityCandidate* next = nullptr;
  for (const CapacityCandidate& other : capacity.candidates) {
    if (other.cluster != answer.cluster || other.ranks == answer.ranks) continue;
    if ((other.ranks < answer.ranks) != is_below) continue;
    if (next == nullptr ||
        std::abs(other.nodes - answer.nodes) < std::abs(next->nodes - answer.nodes))
      next = &other;
  }
  if (next == nullptr || simulator::miss(next->outcome, capacity.demand) <= 1) return "";
  const int least = std::min(next->nodes, answer.nodes) + 1;
  const int most = std::max(next->nodes, answer.nodes) - 1;
  bool is_there = false;
  for (int nodes = least; nodes <= most; ++nodes)
    is_there = is_there || !capacity.global_batch ||
               *capacity.global_batch % (nodes * answer.job().cluster.ranks_per_node) == 0;
  if (!is_there) return "";
  return fmt::format("  nothing was compared between {} and {} nodes: --nodes {}-{}:1 does\n",
                     least - 1, most + 1, least - 1, most + 1);
}

std::string answer_text(const Capacity& capacity) {
  if (!capacity.demand.asks_anything()) return "";
  if (!capacity.answer) {
    std::string text = fmt::format("no candidate is the {}\n", asked_text(capacity));
    if (capacity.nearest)
      text += fmt::format("  nearest: {}\n  {}\n", nearest_text(capacity),
                          figures_text(capacity.candidates[*capacity.nearest]));
    return text + "\n";
  }
  const CapacityCandidate& answer = capacity.candidates[*capacity.answer];
  std::string text = fmt::format("{}: {}\n  {}\n", asked_text(capacity),
                                 place_text(capacity, answer), figures_text(answer));
  text += fmt::format("  batch {} {}, {}, {} an iteration\n", batch_text(answer.job()),
                      per_ranks(answer.job().question.layout), answer.row().name,
                      to_text(answer.row().phases.front()->iteration.value));
  return text + doubts_text(capacity, answer) + gap_text(capacity, answer) + "\n";
}

// The front and the answer, or all candidates where there is no front.
std::vector<std::size_t> listed(const Capacity& capacity) {
  std::vector<std::size_t> all = capacity.front;
  if (all.empty()) {
    all.resize(capacity.candidates.size());
    std::iota(all.begin(), all.end(), std::size_t{0});
  } else if (capacity.answer && std::find(all.begin(), all.end(), *capacity.answer) == all.end()) {
    all.push_back(*capacity.answer);
  }
  return all;
}

// The first `top` of them by what is asked for: the answer, then the cheapest or the fastest. All in
// their order where `top` is 0 or there are no more.
std::vector<std::size_t> top_candidates(const Capacity& capacity, std::size_t top) {
  std::vector<std::size_t> all = listed(capacity);
  if (top == 0 || top >= all.size()) return all;
  const bool by_cost = capacity.demand.asks_for_cheapest();
  std::ranges::stable_sort(all, {}, [&](std::size_t i) {
    const simulator::Outcome& outcome = capacity.candidates[i].outcome;
    const double value = !by_cost       ? outcome.time.value.value()
                         : outcome.cost ? outcome.cost->value.value()
                                        : std::numeric_limits<double>::infinity();
    return std::pair{capacity.answer != i, value};
  });
  all.resize(top);
  return all;
}

Table candidates_table(const Capacity& capacity, std::size_t top) {
  Table table({{.title = "  cluster", .align = Align::left},
               {.title = "nodes"},
               {.title = "ranks"},
               {.title = "batch", .least_important = 2},
               {.title = "strategy", .align = Align::left, .least_important = 4},
               {.title = "time"},
               {.title = "time from - to", .least_important = 1},
               {.title = "cost"},
               {.title = "cost from - to", .least_important = 1},
               {.title = "efficiency"},
               {.title = "efficiency from - to", .least_important = 3},
               {.title = "energy", .least_important = 5}});
  for (const std::size_t i : top_candidates(capacity, top)) {
    const CapacityCandidate& candidate = capacity.candidates[i];
    const job::CostRow& row = candidate.row();
    table.add({(capacity.answer == i ? "* " : "  ") + capacity.label(candidate),
               std::to_string(candidate.nodes), std::to_string(candidate.ranks),
               batch_text(candidate.job()), row.name, clock_text(row.time.total.value),
               clock_interval_text(row.time.total), cost_text(row.expenses.cost),
               cost_interval_text(row.expenses.cost), percent(candidate.outcome.efficiency.value),
               efficiency_interval_text(candidate.outcome.efficiency),
               row.expenses.energy ? to_text(row.expenses.energy->value) : "-"});
  }
  return table;
}

std::string candidates_text(const Capacity& capacity, int width, std::size_t top) {
  const Table::Fitted fitted = candidates_table(capacity, top).fitted(width);
  std::string text =
      !capacity.front.empty()
          ? "time against cost; whatever else is as fast as one of these costs more:\n"
          : "no front of time against cost, for nothing says what a node costs (--node-price "
            "CLUSTER=PRICE); all candidates:\n";
  text += fitted.text;
  if (capacity.answer) text += "* the answer\n";
  const std::size_t all = listed(capacity).size();
  if (top > 0 && top < all)
    text += fmt::format("not shown: {} candidates (without --top all are shown)\n", all - top);
  text += fitted.not_shown();
  return text;
}

std::string reach_text(const job::EfficientRanks& at) {
  return fmt::format("{} ({}): {}", counted(at.ranks, "rank"), counted(at.nodes, "node"),
                     percent(at.efficiency));
}

// Where efficiency falls below what is asked, and which NIC would hold it.
std::string reaches_text(const Capacity& capacity) {
  if (capacity.reaches.empty()) return "";
  const std::string wanted = percent(*capacity.demand.efficiency);
  std::string text = fmt::format("\nwhere efficiency falls below {}:\n", wanted);
  for (const job::EfficiencyReach& reach : capacity.reaches) {
    const std::string label = capacity.clusters[reach.cluster].label();
    if (!reach.falls) {
      text += fmt::format("  {}: at no candidate up to {}\n", label, reach_text(*reach.holds));
    } else if (!reach.holds) {
      text += fmt::format("  {}: already at {}\n", label, reach_text(*reach.falls));
    } else {
      text += fmt::format("  {}: between {} and {}{}\n", label, reach_text(*reach.holds),
                          reach_text(*reach.falls),
                          reach.is_again ? "; candidates of more ranks hold it again" : "");
    }
    if (!reach.largest) continue;
    text += fmt::format("    at {}, it takes ", reach_text(*reach.largest));
    if (reach.needed) {
      text += fmt::format("{} from the NICs of a node, which have {}\n", to_text(*reach.needed),
                          to_text(reach.own));
    } else {
      text += fmt::format("more than bandwidth: {}\n", reach.why_not);
    }
  }
  return text;
}

// How the figures of a group become known.
std::string measurement_text(simulator::FigureGroup group, const Capacity& capacity,
                             const CapacityCandidate& answer) {
  using simulator::FigureGroup;
  const job::Job& job = answer.job();
  const std::string cluster = capacity.clusters[answer.cluster].cluster;
  switch (group) {
    case FigureGroup::compute:
      return fmt::format(
          "--throughput RATE@{}, as one {} trains; or a trace: paceline calibrate import TRACE "
          "--model {} --batch {}",
          job.question.batch_per_rank, job.cluster.device.name, job.networks.front().work.name,
          job.question.batch_per_rank);
    case FigureGroup::nic_bandwidth:
    case FigureGroup::nic_latency:
      return fmt::format(
          "nccl-tests on two nodes: paceline calibrate import all_reduce.txt --cluster {}",
          cluster);
    case FigureGroup::intra_link:
      return fmt::format(
          "nccl-tests on one node: paceline calibrate import all_reduce.txt --intra --cluster {}",
          cluster);
    case FigureGroup::waiting:
    case FigureGroup::beside_collectives:
      return fmt::format("--node-throughput RATE@{}, as one full node trains",
                         job.question.batch_per_rank);
    case FigureGroup::collective_launch:
      return "effects: {collective_launch: TIME} in the cluster's file, from a trace";
    case FigureGroup::input:
      return "storage, decode and host_link in the cluster's file";
    case FigureGroup::unexplained:
      return "no figure tells it: a run of this job on a few nodes, beside its prediction "
             "(paceline "
             "compare)";
    case FigureGroup::price:
      return "--node-price, as it is offered to you";
  }
  return "";
}

std::string narrowings_text(const Capacity& capacity, int width) {
  if (capacity.narrowings.empty()) return "";
  const CapacityCandidate& answer = capacity.candidates[*capacity.answer];
  const bool is_cost = capacity.demand.asks_for_cheapest();
  const auto interval = [&](double low, double high) {
    return is_cost ? fmt::format("{:.4g} - {}", low, to_text(Usd{high}))
                   : clock_interval_text({Seconds{low}, Seconds{low}, Seconds{high}, {}, {}});
  };
  const simulator::Outcome& outcome = answer.outcome;
  const std::string now = is_cost ? interval(outcome.cost->low.value(), outcome.cost->high.value())
                                  : interval(outcome.time.low.value(), outcome.time.high.value());
  Table table({{.title = "  if this were known", .align = Align::left},
               {.title = is_cost ? "cost" : "time", .least_important = 1},
               {.title = "narrower by"},
               {.title = "what measures it", .align = Align::left, .wraps = true}});
  bool any = false;
  for (const job::Narrowing& narrowing : capacity.narrowings) {
    if (narrowing.share < least_share) continue;
    any = true;
    table.add({"  " + std::string(name(narrowing.group)),
               interval(narrowing.interval.low, narrowing.interval.high), percent(narrowing.share),
               measurement_text(narrowing.group, capacity, answer)});
  }
  if (!any) return "";
  return fmt::format("\nwhich measurement would narrow the answer most, {} now:\n{}", now,
                     table.fitted(width).text);
}

// Clusters whose candidates were left out for the same reason share a line.
std::string left_out_text(const Capacity& capacity) {
  struct Line {
    std::vector<std::string> labels;
    std::string what;
  };
  std::vector<Line> lines;
  for (const job::NoCandidate& one : capacity.left_out) {
    const std::string what = fmt::format("{}: {}{}", ranks_text(one.ranks), one.why,
                                         one.remedy.empty() ? "" : "; " + one.remedy);
    auto line = std::find_if(lines.begin(), lines.end(),
                             [&](const Line& known) { return known.what == what; });
    if (line == lines.end()) line = lines.insert(lines.end(), {{}, what});
    line->labels.push_back(capacity.clusters[one.cluster].label());
  }
  std::string text;
  for (const Line& line : lines)
    text += fmt::format("left out: {}: {}\n", fmt::join(line.labels, ", "), line.what);
  const std::size_t all = capacity.candidates.size();
  for (const job::NotCompared& one : capacity.not_compared)
    text += fmt::format("left out: {}{}: {}; {}\n", one.name,
                        one.candidates.size() == all
                            ? ""
                            : fmt::format(" of {} of {} candidates", one.candidates.size(), all),
                        one.why, one.remedy);
  std::set<std::size_t> without_price;
  for (const CapacityCandidate& candidate : capacity.candidates) {
    if (!candidate.outcome.cost) without_price.insert(candidate.cluster);
  }
  if (capacity.front.empty() || without_price.empty()) return text;
  std::vector<std::string> labels;
  for (const std::size_t cluster : without_price)
    labels.push_back(capacity.clusters[cluster].label());
  return text + fmt::format(
                    "left out of the front: {}: nothing says what a node costs; --node-price "
                    "'{}=24.48 USD/h' does (offers: paceline show catalog)\n",
                    fmt::join(labels, ", "), labels.front());
}

// What efficiencies are against.
std::string baseline_text(const Capacity& capacity) {
  const auto is_node = [](const CapacityCandidate& candidate) {
    return candidate.row().phases.front()->baseline_ranks == candidate.job().cluster.ranks_per_node;
  };
  const auto& all = capacity.candidates;
  const char* against = std::all_of(all.begin(), all.end(), is_node)    ? "one full node"
                        : std::none_of(all.begin(), all.end(), is_node) ? "one rank"
                                                                        : "one node or one rank";
  return fmt::format("efficiency: against {} of the same cluster, with the same batch per rank\n",
                     against);
}

std::string notes_text(const Capacity& capacity) {
  const CapacityCandidate& first = capacity.candidates.front();
  std::string text = baseline_text(capacity);
  text +=
      "not predicted: how many epochs a network needs at a batch this large; they are taken as "
      "given\n";
  std::vector<const char*> not_counted;
  if (!first.cost.run.evaluation) not_counted.push_back("evaluation (--evaluate)");
  if (!first.cost.run.checkpoint) not_counted.push_back("checkpoints (--checkpoint)");
  if (!first.cost.run.start_up) not_counted.push_back("start-up (--start-up)");
  if (!not_counted.empty()) text += fmt::format("not counted: {}\n", fmt::join(not_counted, ", "));
  return text + setting_text(first.job());
}

// The lines of `text` that are not among those that were shown, which they join.
std::string lines_not_in(std::set<std::string>& shown, const std::string& text) {
  std::string fresh;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size() - 1) + 1;
    const std::string line = text.substr(at, end - at);
    if (shown.insert(line).second) fresh += line;
    at = end;
  }
  return fresh;
}

// What the answer rests on, and prices and powers of the other clusters, each line once.
std::string basis(const Capacity& capacity) {
  std::set<std::string> shown;
  std::set<std::size_t> named;
  std::string text;
  if (capacity.answer) {
    const CapacityCandidate& answer = capacity.candidates[*capacity.answer];
    const std::string expenses = expenses_basis(answer.job().cluster);
    text += "\nAll of it is predicted. The answer rests on:\n";
    text += fmt::format("  {:<18} {}\n", "compute", answer.row().phases.front()->compute_source);
    text += basis_text(answer.job()) + lines_not_in(shown, expenses);
    named.insert(answer.cluster);
  } else {
    text += "\nAll of it is predicted; paceline cost says what a candidate rests on.\n";
  }
  for (const CapacityCandidate& candidate : capacity.candidates) {
    if (!named.insert(candidate.cluster).second) continue;
    const std::string fresh = lines_not_in(shown, expenses_basis(candidate.job().cluster));
    if (!fresh.empty())
      text += fmt::format("price and power of {}:\n{}", capacity.label(candidate), fresh);
  }
  return text;
}

}  // namespace

std::string asked_text(const job::Capacity& capacity) {
  const simulator::Demand& demand = capacity.demand;
  std::string text = demand.asks_for_cheapest() ? "cheapest" : "fastest";
  if (demand.within) text += " within " + asked_time_text(*demand.within);
  if (demand.budget) text += " for at most " + to_text(*demand.budget);
  if (demand.efficiency)
    text += fmt::format(" at an efficiency of {} or more", percent(*demand.efficiency));
  if (demand.cautious) text += ", at the bad ends of the intervals, too";
  return text;
}

std::string nearest_text(const job::Capacity& capacity) {
  const CapacityCandidate& nearest = capacity.candidates[*capacity.nearest];
  return place_text(capacity, nearest);
}

std::string to_markdown(const job::Capacity& capacity, std::size_t top) {
  return candidates_table(capacity, top).markdown();
}

std::string to_text(const job::Capacity& capacity, int width, std::size_t top) {
  return title_text(capacity) + answer_text(capacity) + candidates_text(capacity, width, top) +
         reaches_text(capacity) + narrowings_text(capacity, width) + "\n" +
         left_out_text(capacity) + notes_text(capacity) + basis(capacity);
}

}  // namespace paceline::cli
