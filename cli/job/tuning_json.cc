// The document of docs/formats.md that holds a tuned plan. Tests: tests/cli/tune_test.py,
// tests/cli/schemas_test.py.
#include <functional>

#include "cli/job/basis.h"
#include "cli/job/prediction_json.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/shown_plan.h"
#include "models/base/document.h"

namespace paceline::job {
namespace {

// The tuned plan on a cluster one part of which is twice as good.
struct BetterLine {
  const simulator::BetterPart& better;
  Seconds period;  // of the tuned plan
};

const Document<BetterLine>& better_document() {
  using Line = BetterLine;
  static const auto document =
      Document<Line>()
          .add("part", [](const Line& line) { return key(line.better.part); })
          .add(
              "iteration_s", [](const Line& line) { return line.better.iteration; }, positive())
          .add("gain", [](const Line& line) { return 1 - line.better.iteration / line.period; });
  return document;
}

// A row of the table, beside the tuned plan.
struct RowLine {
  const Tuning& tuning;
  const simulator::StrategyPrediction& row;

  [[nodiscard]] Seconds iteration() const { return row.iteration.value; }
  [[nodiscard]] double gain() const { return tuning.gain_over(row); }
};

const Document<RowLine>& row_name_document() {
  static const auto document =
      Document<RowLine>()
          .add("name", [](const RowLine& line) { return line.row.name; })
          .add("wire_type", [](const RowLine& line) { return line.row.plan.wire; })
          .add("iteration_s", &RowLine::iteration, positive());
  return document;
}

// What it costs to let thresholds choose the plan.
const Document<RowLine>& by_thresholds_document() {
  static const auto document =
      Document<RowLine>().include(row_name_document()).add("price", &RowLine::gain);
  return document;
}

const Document<RowLine>& row_document() {
  static const auto document =
      Document<RowLine>().include(row_name_document()).add("gain", &RowLine::gain);
  return document;
}

// The best buckets for a library's own all-reduce.
struct LibraryLine {
  models::Library library;
  Seconds iteration;
  Seconds period;  // of the tuned plan
};

const Document<LibraryLine>& by_library_document() {
  using Line = LibraryLine;
  static const auto document =
      Document<Line>()
          .add("name", &Line::library)
          .add("iteration_s", &Line::iteration, positive())
          .add("price", [](const Line& line) { return line.iteration / line.period - 1; });
  return document;
}

struct DefaultsLine {
  const RuntimeDefaults& defaults;
  RowLine row;
};

const Document<DefaultsLine>& defaults_document() {
  using Line = DefaultsLine;
  static const auto document =
      Document<Line>()
          .add("runtime", [](const Line& line) { return line.defaults.runtime; })
          .add("name", [](const Line& line) { return line.row.row.name; })
          .add(
              "iteration_s", [](const Line& line) { return line.row.iteration(); }, positive())
          .add("gain", [](const Line& line) { return line.row.gain(); })
          .add("gain_low", [](const Line& line) { return line.defaults.gain.low; })
          .add("gain_high", [](const Line& line) { return line.defaults.gain.high; });
  return document;
}

const Document<Advice>& advice_document() {
  static const auto document =
      Document<Advice>()
          .add("runtime", &Advice::runtime)
          .add("setting", [](const Advice& one) { return non_empty(one.setting); })
          .add("buckets", [](const Advice& one) { return one.plan.buckets.size(); })
          .add("iteration_s", &Advice::iteration, positive())
          .add("gain", [](const Advice& one) { return one.gain.value; })
          .add("gain_low", [](const Advice& one) { return one.gain.low; })
          .add("gain_high", [](const Advice& one) { return one.gain.high; });
  return document;
}

// What the search found and how far it got.
const Document<Tuning>& found_document() {
  using Found = Tuning;
  static const auto tuned = [](auto get) {
    return [get](const Found& tuning) { return std::invoke(get, tuning.tuned); };
  };
  using simulator::TunedPlan;
  static const auto document =
      Document<Found>()
          .add("strategy", tuned([](const TunedPlan& found) { return found.plan.strategy; }))
          .add("wire_type", tuned([](const TunedPlan& found) { return found.plan.wire; }))
          .add("iteration_s", tuned(&TunedPlan::period), positive())
          .add(
              "iteration_low_s", [](const Found& of) { return of.iteration.low; }, positive())
          .add(
              "iteration_high_s", [](const Found& of) { return of.iteration.high; }, positive())
          .add("least_iteration_s", tuned(&TunedPlan::least_period))
          .add("gap",
               tuned([](const TunedPlan& found) { return found.period / found.least_period - 1; }))
          .add("optimal", tuned(&TunedPlan::is_optimal))
          .add("why_not_optimal",
               tuned([](const TunedPlan& found) { return non_empty(found.why_not); }))
          .add("complete", tuned(&TunedPlan::is_complete))
          .add("cut_short", &Found::cut_short)
          .add("candidates", tuned(&TunedPlan::candidates))
          .add("candidates_left_out", tuned(&TunedPlan::left_out))
          .add("plans_evaluated", tuned(&TunedPlan::evaluated))
          .include(
              [](const Found& of) -> PlannedBuckets {
                return {of.tuned.plan, of.table.network.work, of.travel, of.tuned.alternatives};
              },
              buckets_document())
          .add(
              "twice_as_good",
              [](const Found& of) {
                std::vector<BetterLine> lines;
                for (const simulator::BetterPart& better : of.better)
                  lines.push_back({better, of.tuned.period});
                return lines;
              },
              better_document())
          .add(
              "by_thresholds",
              [](const Found& of) -> std::optional<RowLine> {
                if (!of.by_thresholds) return std::nullopt;
                return RowLine{of, of.table.rows[*of.by_thresholds]};
              },
              by_thresholds_document())
          .add(
              "by_library",
              [](const Found& of) -> std::optional<LibraryLine> {
                if (!of.by_library) return std::nullopt;
                return LibraryLine{of.by_library->first, of.by_library->second, of.tuned.period};
              },
              by_library_document())
          .add(
              "runtime_defaults",
              [](const Found& of) {
                std::vector<DefaultsLine> lines;
                for (const RuntimeDefaults& defaults : of.defaults)
                  lines.push_back({defaults, {of, of.table.rows[defaults.row]}});
                return lines;
              },
              defaults_document())
          .add("runtimes", &Found::runtimes)
          .add("tried", &Found::tried, advice_document())
          .add(
              "advice",
              [](const Found& of) -> std::optional<Advice> {
                if (of.advice() == nullptr) return std::nullopt;
                return *of.advice();
              },
              advice_document())
          .add("keep_defaults_of",
               [](const Found& of) {
                 return of.kept() == nullptr ? std::nullopt : std::optional(of.kept()->runtime);
               })
          .add(
              "strategies",
              [](const Found& of) {
                std::vector<RowLine> lines;
                for (const simulator::StrategyPrediction& row : of.table.rows)
                  lines.push_back({of, row});
                return lines;
              },
              row_document())
          .add(
              "left_out", [](const Found& of) { return of.table.left_out; }, left_out_document());
  return document;
}

}  // namespace

const Document<TuningAnswer>& tuning_document() {
  using Answer = TuningAnswer;
  static const auto document =
      Document<Answer>("paceline.tuning/1",
                       "paceline tune --json: the best plan that was found, and what others take.")
          .include(
              [](const Answer& of) -> AskedJob {
                const PredictionTable& table = of.tuning.table;
                return {table.job, table.network.work, table.ranks};
              },
              asked_document())
          .include([](const Answer& of) -> const Tuning& { return of.tuning; }, found_document())
          .add("robust", &Answer::robust, robust_document())
          .add("warnings", [](const Answer& of) { return of.tuning.table.warnings; })
          .add(
              "rests_on", [](const Answer& of) { return basis_of(of.tuning.table.job); },
              basis_document(), 1);
  return document;
}

}  // namespace paceline::job
