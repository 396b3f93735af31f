// Tests: tests/cli (end to end).
#include "cli/job/prediction_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <variant>

#include "cli/job/profile_use.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"

namespace paceline::job {
namespace {

Seconds mean_iteration(const simulator::StrategyPrediction& row) {
  return row.stragglers ? row.stragglers->iteration.mean : row.iteration.value;
}

// One warning for all rows that do not fit: they differ in their buffers only.
void warn_of_memory(PredictionTable& table) {
  std::string names;
  const simulator::StrategyPrediction* most = nullptr;
  for (const simulator::StrategyPrediction& row : table.rows) {
    if (row.fits) continue;
    if (most == nullptr || row.memory.total() > most->memory.total()) most = &row;
    if (names.find(row.name) == std::string::npos) names += (names.empty() ? "" : ", ") + row.name;
  }
  if (most == nullptr) return;
  const bool all =
      std::none_of(table.rows.begin(), table.rows.end(), [](const auto& row) { return row.fits; });
  const models::Device& device = table.job.cluster.device;
  const std::string remedy =
      most->largest_batch > 0
          ? fmt::format("the largest batch that fits is {}", most->largest_batch)
          : "not even a batch of 1 fits";
  table.warnings.push_back(
      fmt::format("a batch of {} does not fit the {} of a {}: a rank needs {}{}; {}",
                  table.job.batch_per_rank, to_text(device.memory.value), device.name,
                  to_text(most->memory.total()), all ? "" : fmt::format(" ({})", names), remedy));
}

}  // namespace

std::size_t PredictionTable::best() const {
  const auto faster = [](const auto& a, const auto& b) {
    if (a.by_library_model != b.by_library_model) return b.by_library_model;
    return mean_iteration(a) < mean_iteration(b);
  };
  return static_cast<std::size_t>(std::min_element(rows.begin(), rows.end(), faster) -
                                  rows.begin());
}

std::vector<std::size_t> PredictionTable::tied() const {
  constexpr double alike = 1.001;
  const std::size_t first = best();
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i != first && !rows[i].by_library_model &&
        mean_iteration(rows[i]) <= alike * mean_iteration(rows[first]))
      others.push_back(i);
  }
  return others;
}

PredictionTable predict_table(const Job& job, const LoadedNetwork& network, int ranks,
                              const TableObserver& observer) {
  if (job.plan) check_plan(*job.plan, job.plan_file, network.work, ranks);
  PredictionTable table{.job = job, .network = network, .ranks = ranks};
  table.warnings = profile_warnings(job, network.work);
  const std::size_t all = job.wires.size() * job.strategies.size();
  std::size_t done = 0;
  for (const models::WireType wire : job.wires) {
    simulator::Predictor predictor(job.request(network, ranks, wire));
    for (const models::Strategy* strategy : job.strategies) {
      if (observer.begin) observer.begin(*strategy, done++, all);
      std::variant<simulator::StrategyPrediction, simulator::LeftOut> row =
          job.plan                     ? predictor.predict(job.plan->plan)
          : job.strategies.size() == 1 ? predictor.predict(*strategy)
                                       : predictor.row(*strategy);
      if (auto* left_out = std::get_if<simulator::LeftOut>(&row)) {
        table.left_out.push_back(std::move(*left_out));
        continue;
      }
      table.rows.push_back(std::get<simulator::StrategyPrediction>(std::move(row)));
      if (observer.row) observer.row(table.rows.back());
    }
  }
  if (table.rows.empty())
    throw InputError(fmt::format("no strategy can be timed on {} ranks", ranks),
                     table.left_out.front().remedy);
  if (!job.compute_is_exact) warn_of_memory(table);
  for (const simulator::StrategyPrediction& row : table.rows) {
    if (!row.converged)
      table.warnings.push_back(fmt::format(
          "{} did not reach a steady state; its time is that of its slowest task", row.name));
  }
  return table;
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
