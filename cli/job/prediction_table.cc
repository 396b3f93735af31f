// Tests: tests/cli (end to end).
#include "cli/job/prediction_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <variant>

#include "cli/job/job_memory.h"
#include "cli/job/profile_use.h"
#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::job {
namespace {

Seconds mean_iteration(const simulator::StrategyPrediction& row) {
  return row.stragglers ? row.stragglers->iteration.mean : row.iteration.value;
}

// Leaves out what the device does not hold. Throws InputError if that is every row.
void leave_out_of_memory(PredictionTable& table) {
  const auto least = std::min_element(
      table.rows.begin(), table.rows.end(),
      [](const auto& a, const auto& b) { return a.memory.total() < b.memory.total(); });
  if (!least->fits)
    throw does_not_fit(
        table.job, table.network, least->plan,
        least->name + (table.rows.size() > 1 ? ", the least of all strategies" : ""));
  for (const simulator::StrategyPrediction& row : table.rows)
    if (!row.fits)
      table.left_out.push_back({row.name, row.plan.wire,
                                too_large_text(table.job, memory_need(row)),
                                largest_batch_text(memory_need(row)), /*takes_long=*/false});
  std::erase_if(table.rows, [](const auto& row) { return !row.fits; });
}

}  // namespace

std::size_t PredictionTable::best() const {
  const auto faster = [](const auto& a, const auto& b) {
    return mean_iteration(a) < mean_iteration(b);
  };
  return to_size(std::min_element(rows.begin(), rows.end(), faster) - rows.begin());
}

std::vector<std::size_t> PredictionTable::tied() const {
  constexpr double alike = 1.001;
  const std::size_t first = best();
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i != first && mean_iteration(rows[i]) <= alike * mean_iteration(rows[first]))
      others.push_back(i);
  }
  return others;
}

TableParts::TableParts(const Job& job, const LoadedNetwork& network, int ranks)
    : job_(job), network_(network), ranks_(ranks) {
  if (job.plan) check_plan(*job.plan, job.plan_file, network.work, ranks);
  for (const models::WireType wire : job.wires)
    for (const models::Strategy* strategy : job.strategies) rows_.push_back({wire, strategy});
}

// Neighbours in the catalogue have schedules in common, which a predictor prepares once.
constexpr std::size_t rows_of_part = 2;

std::size_t TableParts::count() const {
  return (rows_.size() + rows_of_part - 1) / rows_of_part;
}

void TableParts::predict(std::size_t part, const TableObserver& observer) {
  const auto rows = std::span(rows_).subspan(part * rows_of_part);
  std::optional<simulator::Predictor> predictor;
  std::optional<models::WireType> wire;  // that it predicts
  for (Row& row : rows.first(std::min(rows_of_part, rows.size()))) {
    if (observer.begin) observer.begin(*row.strategy, begun_++, rows_.size());
    if (wire != row.wire) predictor.emplace(job_.request(network_, ranks_, row.wire));
    wire = row.wire;
    if (job_.plan) {
      row.outcome = predictor->predict(job_.plan->plan);
    } else if (job_.strategies.size() == 1) {
      row.outcome = predictor->predict(*row.strategy);
    } else {
      std::visit([&](auto outcome) { row.outcome = std::move(outcome); },
                 predictor->row(*row.strategy));
    }
    const auto* done = std::get_if<simulator::StrategyPrediction>(&row.outcome);
    if (observer.row && done != nullptr) observer.row(*done);
  }
}

PredictionTable TableParts::table() {
  PredictionTable table{.job = job_, .network = network_, .ranks = ranks_};
  table.warnings = profile_warnings(job_, network_.work);
  for (Row& row : rows_) {
    if (auto* left_out = std::get_if<simulator::LeftOut>(&row.outcome))
      table.left_out.push_back(std::move(*left_out));
    else
      table.rows.push_back(std::get<simulator::StrategyPrediction>(std::move(row.outcome)));
  }
  for (const models::Strategy* strategy : job_.without_servers)
    table.left_out.push_back({std::string(strategy->name), job_.wires.front(),
                              "NCCL has no servers among GPUs",
                              fmt::format("--strategy {} asks for it", strategy->name),
                              /*takes_long=*/false});
  if (table.rows.empty())
    throw InputError(fmt::format("no strategy can be timed on {} ranks", ranks_),
                     table.left_out.front().remedy);
  if (checks_memory(job_)) leave_out_of_memory(table);
  // The runs of all rows would take more memory than all else.
  const std::size_t best = table.best();
  for (std::size_t i = 0; i < table.rows.size(); ++i)
    if (i != best) table.rows[i].run.reset();
  const MemoryNeed need = memory_need(table.rows[best]);
  if (!job_.question.compute_is_exact && !need.fits)
    table.warnings.push_back(
        fmt::format("{}; {}", too_large_text(job_, need), largest_batch_text(need)));
  for (const simulator::StrategyPrediction& row : table.rows) {
    if (!row.converged)
      table.warnings.push_back(fmt::format(
          "{} did not reach a steady state; its time is that of its slowest task", row.name));
  }
  return table;
}

PredictionTable predict_table(const Job& job, const LoadedNetwork& network, int ranks,
                              const TableObserver& observer) {
  TableParts parts(job, network, ranks);
  for (std::size_t part = 0; part < parts.count(); ++part) parts.predict(part, observer);
  return parts.table();
}

std::vector<std::string> all_warnings(std::span<const PredictionTable> tables) {
  std::vector<std::string> all;
  for (const PredictionTable& table : tables) {
    for (const std::string& warning : table.warnings) {
      if (std::find(all.begin(), all.end(), warning) == all.end()) all.push_back(warning);
    }
  }
  return all;
}

void add_sensitivity(PredictionTable& table) {
  constexpr double factors[] = {1.1, 2};
  const simulator::StrategyPrediction& best = table.rows[table.best()];
  table.better = simulator::better_parts(
      table.job.request(table.network, table.ranks, best.plan.wire), models::strategy(best.name),
      best.plan, table.job.plan.has_value(), factors);
}

}  // namespace paceline::job
