// Tests: tests/cli/cost_test.py.
#include "cli/cost_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "cli/prediction_notes.h"
#include "cli/prediction_text.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::cli {
namespace {

// A unit of long times, which all times of a table have.
struct ClockUnit {
  const char* name;
  double seconds;
  double longest;  // s, that is written in this unit
};

constexpr std::array<ClockUnit, 4> clock_units = {
    {{"s", 1, 120}, {"min", 60, 36'000}, {"h", 3600, 14 * 86'400.0}, {"days", 86'400, 0}}};

const ClockUnit& unit_of(Seconds time) {
  for (const ClockUnit& unit : clock_units) {
    if (time.value() <= unit.longest) return unit;
  }
  return clock_units.back();
}

// Four digits, but a whole number of fewer than 16 is never shortened to an exponent.
std::string number_text(double number) {
  return number >= 1e4 && number < 1e15 ? fmt::format("{:.0f}", number)
                                        : fmt::format("{:.4g}", number);
}

std::string clock_in(Seconds time, const ClockUnit& unit) {
  return fmt::format("{} {}", number_text(time.value() / unit.seconds), unit.name);
}

std::string interval_text(const Figure<Seconds>& time, const ClockUnit& unit) {
  return fmt::format("{} - {}", number_text(time.low.value() / unit.seconds),
                     clock_in(time.high, unit));
}

template <class Q>
std::string range_text(const Figure<Q>& figure) {
  if (figure.low == figure.high) return to_text(figure.value);
  return fmt::format("{} ({} to {})", to_text(figure.value), to_text(figure.low),
                     to_text(figure.high));
}

std::string hours_name(const models::Cluster& cluster) {
  return simulator::is_gpu(cluster.device) ? "GPU-hours" : "device-hours";
}

Table cost_table_of(const job::CostTable& table) {
  const models::Cluster& cluster = table.job(0).cluster;
  const bool has_one_phase = table.run.phases.size() == 1;
  Table text({{.title = "  strategy", .align = Align::left},
              {.title = "wire",
               .align = Align::left,
               .least_important = table.job(0).wires.size() > 1 ? 0 : 5},
              {.title = has_one_phase ? "iteration" : "mean iteration", .least_important = 3},
              {.title = "throughput", .least_important = 4},
              {.title = "time"},
              {.title = "interval", .least_important = 1},
              {.title = hours_name(cluster)},
              {.title = "cost"},
              {.title = "energy"}});
  const std::size_t best = table.best();
  const ClockUnit& unit = unit_of(table.rows[best].time.total.value);
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const job::CostRow& row = table.rows[i];
    const Seconds training = row.time.training.value;
    text.add({(i == best ? "* " : "  ") + row.name,
              std::string(name(row.phases.front()->plan.wire)),
              to_text(training / row.time.iterations),
              to_text(simulator::training_throughput(row.time.samples, training)),
              clock_in(row.time.total.value, unit), interval_text(row.time.total, unit),
              number_text(row.expenses.device_hours.value),
              row.expenses.cost ? to_text(row.expenses.cost->value) : "-",
              row.expenses.energy ? to_text(row.expenses.energy->value) : "-"});
  }
  return text;
}

Table top_table(const job::CostTable& table, std::size_t top) {
  std::vector<Seconds> times;
  for (const job::CostRow& row : table.rows) times.push_back(row.time.total.value);
  Table rows = cost_table_of(table);
  rows.keep_rows(top_of(top, times, table.best()));
  return rows;
}

// One line for each phase of the row, if there are several.
std::string phases_text(const job::CostTable& table, const job::CostRow& row, int width) {
  Table text({{.title = "  phase", .align = Align::left},
              {.title = "length", .align = Align::left, .least_important = 4},
              {.title = "precision", .align = Align::left, .least_important = 5},
              {.title = "batch"},
              {.title = "iterations"},
              {.title = "iteration"},
              {.title = "throughput", .least_important = 3},
              {.title = "training"},
              {.title = "evaluation", .least_important = 2},
              {.title = "checkpoints", .least_important = 2}});
  for (std::size_t i = 0; i < row.phases.size(); ++i) {
    const job::Job& job = table.job(i);
    const simulator::PhaseTime& time = row.time.phases[i];
    const int sequence = static_cast<int>(job.networks.front().work.sequence);
    text.add({"  " + table.run.phases[i].name, to_text(table.run.phases[i].length),
              std::string(name(job.question.precision)),
              fmt::format(
                  "{}{}{}", job.question.batch_per_rank,
                  sequence > 0 ? fmt::format(" of {}", sequence) : "",
                  job.question.accumulate > 1 ? fmt::format(" x {}", job.question.accumulate) : ""),
              number_text(time.iterations), to_text(row.phases[i]->iteration.value),
              to_text(row.phases[i]->throughput), clock_text(time.training.value),
              time.evaluations > 0 ? clock_text(time.evaluation.value) : "-",
              time.checkpoints > 0 ? clock_text(time.checkpoint.value) : "-"});
  }
  return text.fitted(width).text;
}

std::string title_text(const job::CostTable& table) {
  const job::Job& job = table.job(0);
  const models::NetworkWork& work = job.networks.front().work;
  const int nodes = table.rows.front().expenses.nodes;
  std::string text =
      fmt::format("{} on {}: {} rank{} ({} node{} of {} {})", work.name, job.cluster.name,
                  table.ranks, table.ranks == 1 ? "" : "s", nodes, nodes == 1 ? "" : "s",
                  job.cluster.ranks_per_node, job.cluster.device.name);
  const simulator::TimeToTrain& time = table.rows.front().time;
  if (table.run.phases.size() == 1) {
    const std::string sequence =
        work.sequence > 0 ? fmt::format(" of {} tokens", work.sequence) : "";
    text += fmt::format(", batch {}{} {}{}, {} precision\n{}", job.question.batch_per_rank,
                        sequence, per_ranks(job.question.layout),
                        job.question.accumulate > 1
                            ? fmt::format(" x {} accumulated", job.question.accumulate)
                            : "",
                        name(job.question.precision), to_text(table.run.phases.front().length));
  } else {
    text += fmt::format("\n{}: {} phases", table.run.name, table.run.phases.size());
  }
  if (table.run.dataset)
    text +=
        fmt::format(" of {} samples{}", number_text(table.run.dataset->samples),
                    table.run.dataset->name.empty() ? "" : " (" + table.run.dataset->name + ")");
  const models::Length& length = table.run.phases.front().length;
  const bool is_one = table.run.phases.size() == 1;
  std::vector<std::string> sums;
  if (!is_one || length.measure != models::Measure::samples)
    sums.push_back(number_text(time.samples) + " samples");
  if (!is_one || length.measure != models::Measure::iterations)
    sums.push_back(number_text(time.iterations) + " iterations");
  return text + fmt::format(": {}\n\n", fmt::join(sums, " in "));
}

std::string interruptions_text(const job::CostTable& table, const simulator::TimeToTrain& time) {
  const simulator::Interrupted& lost = *time.interrupted;
  return fmt::format(
      "  goodput {} of the time; {} interruptions, one every {}, and {} until ranks train again\n"
      "  half of simulated runs end within {}, 90 % within {}, 99 % within {}\n",
      percent((time.training.value + time.evaluation.value) / time.total.value),
      number_text(std::round(lost.interruptions)), clock_text(lost.between),
      clock_text(table.run.failures->recovery.value), clock_text(lost.median), clock_text(lost.p90),
      clock_text(lost.p99));
}

// Where the time of the row goes.
std::string spent_text(const job::CostTable& table, const job::CostRow& row) {
  const simulator::TimeToTrain& time = row.time;
  const auto part = [&](const std::string& what, const Figure<Seconds>& figure) {
    return fmt::format("{} {} ({})", what, clock_text(figure.value),
                       percent(figure.value / time.total.value));
  };
  // "8 evaluations": how often there is one in all phases.
  const auto counted = [&](double simulator::PhaseTime::*count, const char* what) {
    double sum = 0;
    for (const simulator::PhaseTime& phase : time.phases) sum += phase.*count;
    return fmt::format("{} {}{}", number_text(sum), what, sum == 1 ? "" : "s");
  };
  std::string text = "\n* the shortest time: " + part("training", time.training);
  std::vector<const char*> not_counted;
  if (table.run.evaluation) {
    text += ", " + part(counted(&simulator::PhaseTime::evaluations, "evaluation"), time.evaluation);
  } else {
    not_counted.push_back("evaluation (--evaluate)");
  }
  if (table.run.checkpoint) {
    const std::string what = table.run.checkpoint->at_best
                                 ? "checkpoints every " + clock_text(time.interrupted->interval)
                                 : counted(&simulator::PhaseTime::checkpoints, "checkpoint");
    text += ", " + part(what, time.checkpoint);
  } else {
    not_counted.push_back("checkpoints (--checkpoint)");
  }
  if (table.run.start_up) {
    text += ", " + part("start-up", time.start_up);
  } else {
    not_counted.push_back("start-up (--start-up)");
  }
  if (time.interrupted) {
    text += ", " + part("lost to interruptions", time.interrupted->lost);
  } else {
    not_counted.push_back("interruptions (--failures)");
  }
  text += "\n";
  if (time.interrupted) text += interruptions_text(table, time);
  std::string tied;
  for (const std::size_t i : table.tied()) tied += (tied.empty() ? "" : ", ") + table.rows[i].name;
  if (!tied.empty()) text += fmt::format("  within 0.1 %, and so no worse: {}\n", tied);
  if (row.expenses.cost) text += fmt::format("  cost: {}\n", range_text(*row.expenses.cost));
  if (row.expenses.energy) text += fmt::format("  energy: {}\n", range_text(*row.expenses.energy));
  if (!not_counted.empty()) text += fmt::format("not counted: {}\n", fmt::join(not_counted, ", "));
  return text;
}

// What a cluster does not say, and what would say it.
std::string missing_text(const models::Cluster& cluster) {
  std::string text;
  if (!cluster.price)
    text += fmt::format(
        "cost: nothing says what a node of {} costs; --node-price '24.48 USD/h' or price: in its "
        "file does (offers: paceline show catalog)\n",
        cluster.name);
  if (!cluster.power.node && !cluster.device.power)
    text += fmt::format(
        "energy: nothing says what a {} draws; --node-power '3 kW', or power: in the file of the "
        "cluster or device does\n",
        cluster.device.name);
  return text;
}

template <class Q, class Text>
std::string basis_line(const char* what, const Figure<Q>& figure, Text text) {
  const std::string spread = figure.low == figure.high
                                 ? ""
                                 : fmt::format(" ({} to {})", text(figure.low), text(figure.high));
  return fmt::format("  {:<18} {}{}, {}: {}\n", what, text(figure.value), spread,
                     name(figure.provenance), figure.source);
}

// The notes of all tables, each line once.
std::string time_budget_notes(const job::CostTable& table) {
  std::string text;
  for (const job::PredictionTable& of_phase : table.tables) {
    const std::string note = time_budget_note({&of_phase, 1});
    if (text.find(note) == std::string::npos) text += note;
  }
  return text;
}

}  // namespace

std::string clock_text(Seconds time) {
  return clock_in(time, unit_of(time));
}

std::string clock_interval_text(const Figure<Seconds>& time) {
  return interval_text(time, unit_of(time.value));
}

std::string expenses_basis(const models::Cluster& cluster) {
  const auto share = [](double v) { return fmt::format("{:.3g} %", 100 * v); };
  const auto factor = [](double v) { return fmt::format("{:.3g} x", v); };
  const auto plain = [](auto v) { return to_text(v); };
  std::string text;
  if (cluster.price) text += basis_line("price of a node", *cluster.price, plain);
  const models::Power& power = cluster.power;
  if (power.node) {
    text += basis_line("power of a node", *power.node, plain);
  } else if (cluster.device.power) {
    text += basis_line("rated power", *cluster.device.power, plain) +
            basis_line("power in training", power.training_share, share) +
            basis_line("host beside it", power.host_share, share);
  }
  if (power.node || cluster.device.power) text += basis_line("PUE", power.pue, factor);
  return text;
}

std::string to_markdown(const job::CostTable& table, std::size_t top) {
  return top_table(table, top).markdown();
}

std::string to_text(const job::CostTable& table, int width, std::size_t top) {
  const job::Job& job = table.job(0);
  const job::CostRow& best = table.rows[table.best()];
  const Table::Fitted rows = top_table(table, top).fitted(width);
  std::string text = title_text(table) + rows.text;
  if (table.run.phases.size() > 1)
    text += fmt::format("\nphases with {}:\n", best.name) + phases_text(table, best, width);
  text += spent_text(table, best);
  text += fmt::format(
      "interval: that of the iterations{}; cost and energy have those of price and power, too\n",
      table.run.phases.size() > 1 ? ", whose ends add" : "");
  text += missing_text(job.cluster);
  if (best.expenses.nodes * job.cluster.ranks_per_node != table.ranks && best.expenses.cost)
    text += fmt::format("cost: {} nodes are paid whole, {} of their {} devices train\n",
                        best.expenses.nodes, table.ranks,
                        best.expenses.nodes * job.cluster.ranks_per_node);
  text += setting_text(job);
  text += time_budget_notes(table);
  text += library_note({&table.tables.front(), 1});
  text += rows.not_shown() + slower_note(top, table.rows.size());
  text += "\nAll of it is predicted. It rests on:\n";
  std::vector<std::string> sources;
  for (std::size_t i = 0; i < best.phases.size(); ++i) {
    const std::string& source = best.phases[i]->compute_source;
    if (std::find(sources.begin(), sources.end(), source) != sources.end()) continue;
    sources.push_back(source);
    text += fmt::format("  {:<18} {}\n", sources.size() == 1 ? "compute" : "", source);
  }
  if (const auto& failures = table.run.failures) {
    text += basis_line("hours of a device between interruptions", failures->between,
                       [](Seconds time) { return fmt::format("{:.0f} h", in_hours(time)); });
    text +=
        basis_line("recovery", failures->recovery, [](Seconds time) { return clock_text(time); });
  }
  return text + basis_text(job) + expenses_basis(job.cluster);
}

}  // namespace paceline::cli
