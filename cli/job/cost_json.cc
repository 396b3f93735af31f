// The document of docs/formats.md that holds training runs. Tests: tests/cli/cost_test.py,
// tests/cli/schemas_test.py.
#include <functional>

#include "cli/job/cost_table.h"
#include "cli/job/prediction_json.h"
#include "models/base/document.h"

namespace paceline::job {
namespace {

const Document<models::Length>& length_document() {
  static const auto document = Document<models::Length>()
                                   .add("count", &models::Length::count, positive())
                                   .add("measure", &models::Length::measure);
  return document;
}

const Document<models::Dataset>& dataset_document() {
  using models::Dataset;
  static const auto document =
      Document<Dataset>()
          .add("name", [](const Dataset& dataset) { return non_empty(dataset.name); })
          .add("samples", &Dataset::samples, positive());
  return document;
}

const Document<models::Evaluation>& evaluation_document() {
  static const auto document = Document<models::Evaluation>()
                                   .add("samples", &models::Evaluation::samples, at_least(1))
                                   .add("every", &models::Evaluation::every, length_document());
  return document;
}

const Document<models::Checkpoint>& checkpoint_document() {
  using models::Checkpoint;
  static const auto document =
      Document<Checkpoint>()
          .add(
              "time", [](const Checkpoint& checkpoint) { return stated(checkpoint.time, "s"); },
              stated_figure_document())
          .add(
              "every",
              [](const Checkpoint& checkpoint) {
                return checkpoint.at_best ? std::nullopt : std::optional(checkpoint.every);
              },
              length_document());
  return document;
}

const Document<models::Failures>& failures_document() {
  using models::Failures;
  static const auto document =
      Document<Failures>()
          .add(
              "between",
              [](const Failures& failures) { return stated(std::optional(failures.between), "s"); },
              stated_figure_document())
          .add(
              "recovery",
              [](const Failures& failures) {
                return stated(std::optional(failures.recovery), "s");
              },
              stated_figure_document());
  return document;
}

const Document<simulator::Interrupted>& interrupted_document() {
  using simulator::Interrupted;
  static const auto document =
      Document<Interrupted>()
          .add_interval("lost", "s", [](const Interrupted& of) { return of.lost; })
          .add("interruptions", &Interrupted::interruptions, not_negative())
          .add("between_s", &Interrupted::between, positive())
          .add("interval_s", &Interrupted::interval, not_negative())
          .add("median_s", &Interrupted::median, positive())
          .add("p90_s", &Interrupted::p90, positive())
          .add("p99_s", &Interrupted::p99, positive());
  return document;
}

const Document<models::TrainingRun>& run_document() {
  using models::TrainingRun;
  static const auto document =
      Document<TrainingRun>()
          .add("name", [](const TrainingRun& run) { return non_empty(run.name); })
          .add("dataset", &TrainingRun::dataset, dataset_document())
          .add(
              "start_up", [](const TrainingRun& run) { return stated(run.start_up, "s"); },
              stated_figure_document())
          .add("evaluation", &TrainingRun::evaluation, evaluation_document())
          .add("checkpoint", &TrainingRun::checkpoint, checkpoint_document())
          .add("failures", &TrainingRun::failures, failures_document())
          .add("spares", &TrainingRun::spares, not_negative());
  return document;
}

// A phase of the run, whatever strategy sums its gradients.
struct PhaseLine {
  const models::Phase& phase;
  const Job& job;
  const simulator::PhaseTime& time;

  [[nodiscard]] std::optional<std::int64_t> sequence() const {
    const auto tokens = job.networks.front().work.sequence;
    return tokens > 0 ? std::optional<std::int64_t>(tokens) : std::nullopt;
  }
};

std::vector<PhaseLine> phases_of(const CostTable& table) {
  std::vector<PhaseLine> lines;
  for (std::size_t i = 0; i < table.run.phases.size(); ++i)
    lines.push_back({table.run.phases[i], table.job(i), table.rows.front().time.phases[i]});
  return lines;
}

const Document<PhaseLine>& phase_document() {
  using Line = PhaseLine;
  static const auto document =
      Document<Line>()
          .add(
              "name", [](const Line& line) { return line.phase.name; }, any_text())
          .add(
              "length", [](const Line& line) { return line.phase.length; }, length_document())
          .add(
              "batch_per_rank", [](const Line& line) { return line.job.question.batch_per_rank; },
              at_least(1))
          .add(
              "accumulate", [](const Line& line) { return line.job.question.accumulate; },
              at_least(1))
          .add("precision", [](const Line& line) { return line.job.question.precision; })
          .add(
              "samples", [](const Line& line) { return line.time.samples; }, not_negative())
          .add(
              "iterations", [](const Line& line) { return line.time.iterations; }, not_negative())
          .add(
              "evaluations", [](const Line& line) { return line.time.evaluations; }, not_negative())
          .add(
              "checkpoints", [](const Line& line) { return line.time.checkpoints; }, not_negative())
          .add_if_any("sequence", &Line::sequence, at_least(1));
  return document;
}

// A phase under one strategy.
struct RowPhase {
  const simulator::StrategyPrediction& prediction;
  const simulator::PhaseTime& time;
};

std::vector<RowPhase> phases_of(const CostRow& row) {
  std::vector<RowPhase> phases;
  for (std::size_t i = 0; i < row.phases.size(); ++i)
    phases.push_back({*row.phases[i], row.time.phases[i]});
  return phases;
}

const Document<RowPhase>& row_phase_document() {
  using Phase = RowPhase;
  static const auto document =
      Document<Phase>()
          .add("wire_type", [](const Phase& phase) { return phase.prediction.plan.wire; })
          .add_interval(
              "iteration", "s", [](const Phase& phase) { return phase.prediction.iteration; },
              positive())
          .add(
              "throughput_per_s", [](const Phase& phase) { return phase.prediction.throughput; },
              positive())
          .add("training_s", [](const Phase& phase) { return phase.time.training.value; })
          .add("evaluation_s", [](const Phase& phase) { return phase.time.evaluation.value; })
          .add("checkpoint_s", [](const Phase& phase) { return phase.time.checkpoint.value; })
          .add("compute_source",
               [](const Phase& phase) { return phase.prediction.compute_source; });
  return document;
}

const Document<CostRow>& row_name_document() {
  static const auto document =
      Document<CostRow>().add("name", &CostRow::name).add("wire_type", [](const CostRow& row) {
        return row.phases.front()->plan.wire;
      });
  return document;
}

const Document<CostRow>& row_document() {
  using Row = CostRow;
  static const auto document =
      Document<Row>()
          .include(row_name_document())
          .add_interval(
              "time", "s", [](const Row& row) { return row.time.total; }, positive())
          .add("training_s", [](const Row& row) { return row.time.training.value; })
          .add("evaluation_s", [](const Row& row) { return row.time.evaluation.value; })
          .add("checkpoint_s", [](const Row& row) { return row.time.checkpoint.value; })
          .add("start_up_s", [](const Row& row) { return row.time.start_up.value; })
          .add(
              "interrupted", [](const Row& row) { return row.time.interrupted; },
              interrupted_document())
          .add(
              "samples", [](const Row& row) { return row.time.samples; }, not_negative())
          .add(
              "iterations", [](const Row& row) { return row.time.iterations; }, not_negative())
          .add(
              "throughput_per_s",
              [](const Row& row) { return row.time.samples / row.time.training.value; }, positive())
          .add_interval("device", "hours", [](const Row& row) { return row.expenses.device_hours; })
          .add_interval("cost", "usd", [](const Row& row) { return row.expenses.cost; })
          .add_interval("energy", "kwh", [](const Row& row) { return row.expenses.energy; })
          .add(
              "phases", [](const Row& row) { return phases_of(row); }, row_phase_document(), 1);
  return document;
}

const Document<CostTable>& best_row_document() {
  static const auto document =
      Document<CostTable>()
          .include(
              [](const CostTable& table) -> const CostRow& { return table.rows[table.best()]; },
              row_name_document())
          .add(
              "tied",
              [](const CostTable& table) {
                std::vector<std::reference_wrapper<const CostRow>> rows;
                for (const std::size_t row : table.tied()) rows.emplace_back(table.rows[row]);
                return rows;
              },
              row_name_document());
  return document;
}

}  // namespace

const Document<CostTable>& cost_document() {
  using Table = CostTable;
  static const auto document =
      Document<Table>("paceline.cost/1",
                      "paceline cost --json: time, cost and energy of a training run.")
          .add("model", [](const Table& table) { return table.job(0).networks.front().work.name; })
          .add("cluster", [](const Table& table) { return table.job(0).cluster.name; })
          .add("ranks", &Table::ranks, at_least(1))
          .add(
              "nodes", [](const Table& table) { return table.rows.front().expenses.nodes; },
              at_least(1))
          .add("device", [](const Table& table) { return table.job(0).cluster.device.name; })
          .include([](const Table& table) -> const Job& { return table.job(0); },
                   setting_document())
          .add(
              "price_of_node",
              [](const Table& table) { return stated(table.job(0).cluster.price, "usd_per_h"); },
              stated_figure_document())
          .add(
              "power",
              [](const Table& table) {
                return stated(simulator::power_of(table.job(0).cluster, table.ranks), "w");
              },
              stated_figure_document())
          .add("run", &Table::run, run_document())
          .add(
              "phases", [](const Table& table) { return phases_of(table); }, phase_document(), 1)
          .add("strategies", &Table::rows, row_document(), 1)
          .add("best", std::identity(), best_row_document())
          .add("left_out", &Table::left_out, left_out_document())
          .add("warnings", &Table::warnings);
  return document;
}

}  // namespace paceline::job
