// The documents of docs/formats.md that hold predictions. Tests: tests/cli/predict_test.py,
// tests/cli/schemas_test.py.
#include "cli/job/prediction_json.h"

#include <array>
#include <functional>
#include <optional>
#include <string>

#include "cli/job/basis.h"
#include "models/cluster/cluster_figures.h"
#include "models/cluster/placement.h"
#include "simulator/planner/threshold_fields.h"
#include "simulator/prediction/prediction_json.h"

namespace paceline::job {
namespace {

const Document<Job>& straggler_document() {
  const auto request = [](auto get) {
    return [get](const Job& job) { return std::invoke(get, *job.stragglers); };
  };
  using Request = simulator::MonteCarloRequest;
  static const auto document =
      Document<Job>()
          .add("spread", request([](const Request& of) { return of.stragglers.spread.text; }))
          .add("slow_ranks", request([](const Request& of) { return of.stragglers.slow_ranks; }))
          .add("slow_nodes", [](const Job& job) { return job.cluster.slow_nodes; })
          .add("backup", request([](const Request& of) { return of.stragglers.backup; }))
          .add("monte_carlo_iterations", request(&Request::iterations), at_least(1))
          .add("seed", request(&Request::seed));
  return document;
}

// The thresholds that the user gave; the others are chosen for each strategy.
const Document<simulator::ThresholdRequest>& given_thresholds_document() {
  static const auto document = [] {
    Document<simulator::ThresholdRequest> fields;
    for (const simulator::ThresholdField& field : simulator::threshold_fields())
      field.add_to(fields, std::string(field.key));
    return fields;
  }();
  return document;
}

// A threshold that some of the strategies take and others do not.
const Document<simulator::PartlyTaken>& partly_taken_document() {
  using Part = simulator::PartlyTaken;
  static const auto document =
      Document<Part>()
          .add(
              "option", [](const Part& part) { return part.field->option(); }, matching("^--"))
          .add("taken_by", &Part::taken_by, list_of(matching("."), 1));
  return document;
}

}  // namespace

const Document<simulator::LeftOut>& left_out_document() {
  using Line = simulator::LeftOut;
  static const auto document = Document<Line>()
                                   .add("name", &Line::name)
                                   .add("wire_type", &Line::wire)
                                   .add("why", &Line::why)
                                   .add("remedy", &Line::remedy);
  return document;
}

const Document<Job>& setting_document() {
  static const auto document =
      Document<Job>()
          .add("nic", [](const Job& job) { return non_empty(job.question.nic); })
          .add("engine", [](const Job& job) { return job.question.engine; })
          .add("profile",
               [](const Job& job) {
                 return job.profile ? std::optional(job.profile->name) : std::nullopt;
               })
          .add(
              "gradient_scale", [](const Job& job) { return job.question.gradient_scale; },
              positive())
          .add("exact_compute", [](const Job& job) { return job.question.compute_is_exact; })
          .add_if_any("recompute",
                      [](const Job& job) {
                        const models::Recompute recompute = job.question.recompute;
                        return recompute == models::Recompute::none
                                   ? std::nullopt
                                   : std::optional(name(recompute));
                      })
          .add_if_any("offload",
                      [](const Job& job) {
                        return job.question.optimizer.on_host
                                   ? std::optional(models::offloaded_optimizer)
                                   : std::nullopt;
                      })
          .add("ignore_memory", [](const Job& job) { return job.question.ignore_memory; })
          .add("overlap", [](const Job& job) { return job.question.overlap; })
          .add(
              "given_thresholds", [](const Job& job) { return job.question.thresholds; },
              given_thresholds_document())
          .add(
              "partly_taken",
              [](const Job& job) {
                return job.plan ? std::vector<simulator::PartlyTaken>()
                                : simulator::partly_taken(job.question.thresholds, job.strategies);
              },
              partly_taken_document())
          .add("plan", [](const Job& job) { return non_empty(job.plan_file); });
  return document;
}

const Document<AskedJob>& asked_document() {
  static const auto document =
      Document<AskedJob>()
          .add("model", [](const AskedJob& of) { return of.network.name; })
          .add("cluster", [](const AskedJob& of) { return of.job.cluster.name; })
          .add("device", [](const AskedJob& of) { return of.job.cluster.device.name; })
          .add(
              "ranks_per_node", [](const AskedJob& of) { return of.job.cluster.ranks_per_node; },
              at_least(1))
          .add("ranks", &AskedJob::ranks, at_least(1))
          .add(
              "batch_per_rank", [](const AskedJob& of) { return of.job.question.batch_per_rank; },
              at_least(1))
          .add("precision", [](const AskedJob& of) { return of.job.question.precision; })
          .include([](const AskedJob& of) -> const Job& { return of.job; }, setting_document());
  return document;
}

namespace {

// The job of a table and how it is predicted. A document of several numbers of ranks has none of its own.
enum class Ranks { one, several };

Document<PredictionTable> with_job(Document<PredictionTable> document, Ranks ranks) {
  using Table = PredictionTable;
  document.add("model", [](const Table& table) { return table.network.work.name; })
      .add("cluster", [](const Table& table) { return table.job.cluster.name; })
      .add("device", [](const Table& table) { return table.job.cluster.device.name; })
      .add(
          "ranks_per_node", [](const Table& table) { return table.job.cluster.ranks_per_node; },
          at_least(1))
      .add("fabric", [](const Table& table) { return described_fabric(table.job.cluster); })
      .add("placement", [](const Table& table) { return described_placement(table.job.cluster); });
  if (ranks == Ranks::one) document.add("ranks", &Table::ranks, at_least(1));
  return document
      .add(
          "batch_per_rank", [](const Table& table) { return table.job.question.batch_per_rank; },
          at_least(1))
      .add_if_any(
          "sequence",
          [](const Table& table) {
            const auto tokens = table.network.work.sequence;
            return tokens > 0 ? std::optional(tokens) : std::nullopt;
          },
          at_least(1))
      .add_if_any(
          "accumulate",
          [](const Table& table) {
            const int batches = table.job.question.accumulate;
            return batches > 1 ? std::optional(batches) : std::nullopt;
          },
          at_least(1))
      .add("precision", [](const Table& table) { return table.job.question.precision; })
      .include([](const Table& table) -> const Job& { return table.job; }, setting_document())
      .add_if_any("what_if",
                  [](const Table& table) { return non_empty(table.job.question.what_if); })
      .add("device_memory_bytes",
           [](const Table& table) { return table.job.cluster.device.memory.value; });
}

const Document<simulator::BetterPart>& better_part_document() {
  using Better = simulator::BetterPart;
  static const auto document =
      Document<Better>()
          .add("part", [](const Better& better) { return key(better.part); })
          .add("factor", &Better::factor, positive())
          .add("iteration_s", &Better::iteration, positive())
          .add("iteration_chosen_anew_s", &Better::chosen_anew, positive());
  return document;
}

const Document<PredictionTable>& sensitivity_document() {
  static const auto document =
      Document<PredictionTable>()
          .add("name", [](const PredictionTable& table) { return table.rows[table.best()].name; })
          .add("parts", &PredictionTable::better, better_part_document(), 1);
  return document;
}

const Document<MeasuredThroughput>& measured_document() {
  using Measured = MeasuredThroughput;
  static const auto document = Document<Measured>()
                                   .add("ranks", &Measured::ranks, at_least(1))
                                   .add("throughput_per_s", &Measured::samples, positive())
                                   .add_constant("provenance", "measured");
  return document;
}

// A row of a table by its name.
const Document<simulator::StrategyPrediction>& row_name_document() {
  using Row = simulator::StrategyPrediction;
  static const auto document =
      Document<Row>().add("name", &Row::name).add("wire_type", [](const Row& row) {
        return row.plan.wire;
      });
  return document;
}

// The row with a star, and those that no prediction tells from it.
const Document<PredictionTable>& best_document() {
  static const auto document =
      Document<PredictionTable>()
          .include(
              [](const PredictionTable& table) -> const simulator::StrategyPrediction& {
                return table.rows[table.best()];
              },
              row_name_document())
          .add(
              "tied",
              [](const PredictionTable& table) {
                std::vector<std::reference_wrapper<const simulator::StrategyPrediction>> rows;
                for (const std::size_t row : table.tied()) rows.emplace_back(table.rows[row]);
                return rows;
              },
              row_name_document());
  return document;
}

// One number of ranks of a curve.
const Document<PredictionTable>& point_document() {
  using Table = PredictionTable;
  static const auto document =
      Document<Table>()
          .add("ranks", &Table::ranks, at_least(1))
          .add("strategies", &Table::rows, simulator::prediction_document(), 1)
          .add("best", std::identity(), best_document())
          .add("left_out", &Table::left_out, left_out_document());
  return document;
}

}  // namespace

const Document<PredictionTable>& prediction_document() {
  using Table = PredictionTable;
  static const auto document =
      with_job({"paceline.prediction/1",
                "paceline predict --json: the strategies of one network on one cluster."},
               Ranks::one)
          .add("strategies", &Table::rows, simulator::prediction_document(), 1)
          .add("best", std::identity(), best_document())
          .add("left_out", &Table::left_out, left_out_document())
          .add("warnings", &Table::warnings)
          .add_if_any(
              "stragglers",
              [](const Table& table) { return table.job.stragglers ? &table.job : nullptr; },
              straggler_document())
          .add_if_any(
              "layouts",
              [](const Table& table) { return table.layouts.empty() ? nullptr : &table.layouts; },
              layout_row_document(), 1)
          .add_if_any(
              "sensitivity",
              [](const Table& table) { return table.better.empty() ? nullptr : &table; },
              sensitivity_document())
          .add(
              "rests_on", [](const Table& table) { return basis_of(table.job); }, basis_document(),
              1);
  return document;
}

const Document<PredictionTables>& predictions_document() {
  static const auto document =
      Document<PredictionTables>("paceline.predictions/1",
                                 "paceline predict --json with several networks.")
          .add("predictions", std::identity(), prediction_document(), 1);
  return document;
}

const Document<ScalingCurve>& scaling_document() {
  static const auto document = [] {
    Document<ScalingCurve> curve(
        "paceline.scaling/1", "paceline scale --json: the same job on several numbers of ranks.");
    static const auto job = with_job({}, Ranks::several);
    return curve
        .include([](const ScalingCurve& of) -> const PredictionTable& { return of.tables.front(); },
                 job)
        .add("points", &ScalingCurve::tables, point_document(), 1)
        .add("measured", &ScalingCurve::measured, measured_document())
        .add("warnings", [](const ScalingCurve& of) { return all_warnings(of.tables); })
        .add(
            "rests_on", [](const ScalingCurve& of) { return basis_of(of.tables.front().job); },
            basis_document(), 1);
  }();
  return document;
}

}  // namespace paceline::job
