// Tests: tests/cli/cost_test.py (end to end).
#include "cli/job/cost_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <tuple>
#include <utility>

#include "cli/job/job_memory.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "simulator/engine/prepare.h"

namespace paceline::job {
namespace {

// The options that a phase sets.
struct PhaseOption {
  const char* option;
  bool is_set;
};

std::vector<PhaseOption> options_of(const models::Phase& phase) {
  return {{"--batch", phase.batch.has_value()},
          {"--sequence", phase.sequence.has_value()},
          {"--accumulate", phase.accumulate.has_value()},
          {"--precision", phase.precision.has_value()},
          {"--throughput", phase.throughput.has_value()}};
}

simulator::Question question_of(const simulator::Question& common, const models::Phase& phase) {
  simulator::Question question = common;
  if (phase.batch) question.batch_per_rank = *phase.batch;
  if (phase.sequence) question.sequence = *phase.sequence;
  if (phase.accumulate) question.accumulate = *phase.accumulate;
  if (phase.precision) question.precision = *phase.precision;
  if (phase.throughput) question.compute.throughput = {{*phase.throughput}};
  return question;
}

bool are_same(const simulator::Question& a, const simulator::Question& b) {
  return a.batch_per_rank == b.batch_per_rank && a.sequence == b.sequence &&
         a.accumulate == b.accumulate && a.precision == b.precision &&
         a.compute.throughput == b.compute.throughput;
}

// A rate of the command line holds at one batch and one length of sequence.
void check_stated_rates(const simulator::StatedCompute& stated, const models::TrainingRun& run) {
  std::vector<simulator::StatedRate> of_node;
  if (stated.node_throughput) of_node.push_back(*stated.node_throughput);
  for (const auto& [option, rates] :
       {std::pair<const char*, const std::vector<simulator::StatedRate>&>{"--throughput",
                                                                          stated.throughput},
        {"--node-throughput", of_node}}) {
    if (rates.empty()) continue;
    const bool names_batches = std::any_of(rates.begin(), rates.end(),
                                           [](const auto& rate) { return rate.batch.has_value(); });
    for (const models::Phase& phase : run.phases) {
      const models::Phase& first = run.phases.front();
      if (phase.throughput)
        throw InputError(phase.place,
                         fmt::format("{} has a throughput, and so has {}", phase.name, option),
                         "leave one of the two out");
      if (phase.sequence != first.sequence)
        throw InputError({option}, "phases read sequences of different lengths",
                         "give each phase a throughput of its own in the document of --phases");
      if (phase.batch != first.batch && !names_batches)
        throw InputError({option}, "phases have different batches",
                         "say at which batch, as in 253.1@64, or give each phase a throughput");
    }
  }
}

// An error in what a phase says, at the place where it says so.
InputError in_phase(const models::Phase& phase, const InputError& error) {
  for (const PhaseOption& option : options_of(phase)) {
    if (option.is_set && error.place().file == option.option)
      return {phase.place, fmt::format("{}: {}", phase.name, error.problem()), error.remedy()};
  }
  return error;
}

class CostTabler {
 public:
  CostTabler(const simulator::Question& question, const TrainingRunOptions& run,
             const CostRequest& request)
      : question_(question), run_options_(run), request_(request) {}

  CostTable table() {
    table_.run = load_training_run(run_options_);
    check_stated_rates(question_.compute, table_.run);
    load_jobs();
    if (request_.only_best) {
      predict_best();
    } else {
      predict();
    }
    make_rows();
    return std::move(table_);
  }

 private:
  void load_jobs() {
    std::vector<simulator::Question> known;
    for (const models::Phase& phase : table_.run.phases) {
      const simulator::Question question = question_of(question_, phase);
      const auto same = std::find_if(known.begin(), known.end(),
                                     [&](const auto& other) { return are_same(other, question); });
      table_.table_of_phase.push_back(to_size(same - known.begin()));
      if (same != known.end()) continue;
      known.push_back(question);
      first_phase_.push_back(&phase);
      try {
        table_.jobs.push_back(load_job(question, {.given = request_.given}));
      } catch (const InputError& error) {
        throw in_phase(phase, error);
      }
    }
    Job& first = table_.jobs.front();
    if (first.networks.size() != 1)
      throw InputError({"--model"}, fmt::format("{} networks", first.networks.size()),
                       "a training run has one");
    table_.ranks = ranks_of(first);
    for (Job& job : table_.jobs) {
      state_expenses(run_options_, job.cluster);
      if (request_.adjust) request_.adjust(job);
    }
  }

  // A strategy at one of the wire types, by the stated time of the run with it.
  struct Choice {
    const models::Strategy* strategy;
    std::size_t wire;
    bool fits;  // the device's memory, in all phases
    Seconds total;

    bool operator<(const Choice& other) const {
      return std::tuple(!fits, total) < std::tuple(!other.fits, other.total);
    }
  };

  // The time of the run with this strategy; nothing where an iteration takes long to follow.
  std::optional<Choice> choice(const models::Strategy& strategy, std::size_t wire,
                               std::deque<simulator::Predictor>& predictors,
                               const std::vector<Seconds>& evaluations) {
    const Job& first = table_.jobs.front();
    Choice made{&strategy, wire, true, {}};
    std::vector<Seconds> periods;
    try {
      for (std::size_t i = 0; i < predictors.size(); ++i) {
        const Job& job = table_.jobs[i];
        const simulator::StrategyRun run = predictors[i].run(strategy);
        periods.push_back(run.steady.period);
        if (!job.question.compute_is_exact &&
            !memory_need(job, job.networks.front(), run.plan).fits)
          made.fits = false;
      }
    } catch (const simulator::TooManyMessages& error) {
      const bool is_known = std::any_of(table_.left_out.begin(), table_.left_out.end(),
                                        [&](const auto& row) { return row.name == strategy.name; });
      if (!is_known)
        table_.left_out.push_back(
            {std::string(strategy.name), first.wires[wire], error.problem(), error.remedy()});
      return std::nullopt;
    }
    std::vector<simulator::PhaseIteration> iterations;
    for (std::size_t phase = 0; phase < table_.run.phases.size(); ++phase) {
      const std::size_t i = table_.table_of_phase[phase];
      iterations.push_back({Figure<Seconds>::exact(periods[i], Provenance::predicted, ""),
                            samples_of_an_iteration(table_.jobs[i], table_.ranks),
                            evaluations[phase]});
    }
    made.total = simulator::time_to_train(table_.run, iterations, table_.ranks).total.value;
    return made;
  }

  void predict_best() {
    std::vector<Seconds> evaluations;
    for (std::size_t phase = 0; phase < table_.run.phases.size(); ++phase)
      evaluations.push_back(
          evaluation(table_.run.phases[phase], table_.jobs[table_.table_of_phase[phase]]));
    const Job& first = table_.jobs.front();
    std::vector<Choice> choices;
    for (std::size_t wire = 0; wire < first.wires.size(); ++wire) {
      std::deque<simulator::Predictor> predictors;
      for (const Job& job : table_.jobs)
        predictors.emplace_back(job.request(job.networks.front(), table_.ranks, job.wires[wire]));
      for (const models::Strategy* strategy : first.strategies) {
        if (auto made = choice(*strategy, wire, predictors, evaluations))
          choices.push_back(*std::move(made));
      }
    }
    if (choices.empty())
      throw InputError(fmt::format("no strategy can be timed on {} ranks", table_.ranks),
                       table_.left_out.front().remedy);
    const Choice& made = *std::min_element(choices.begin(), choices.end());
    for (Job& job : table_.jobs) {
      job.strategies = {made.strategy};
      job.wires = {job.wires[made.wire]};
    }
    predict();
  }

  void predict() {
    for (std::size_t i = 0; i < table_.jobs.size(); ++i) {
      const auto begin = [&](const models::Strategy& strategy, std::size_t done, std::size_t all) {
        const double share = static_cast<double>(done) / static_cast<double>(all);
        if (request_.observer)
          request_.observer(
              first_phase_[i]->name, strategy,
              (static_cast<double>(i) + share) / static_cast<double>(table_.jobs.size()));
      };
      const Job& job = table_.jobs[i];
      table_.tables.push_back(
          predict_table(job, job.networks.front(), table_.ranks, {.begin = begin, .row = {}}));
      for (const simulator::LeftOut& row : table_.tables.back().left_out) {
        const bool is_known =
            std::any_of(table_.left_out.begin(), table_.left_out.end(),
                        [&](const auto& other) { return other.name == row.name; });
        if (!is_known) table_.left_out.push_back(row);
      }
      for (const std::string& warning : table_.tables.back().warnings) {
        if (std::find(table_.warnings.begin(), table_.warnings.end(), warning) ==
            table_.warnings.end())
          table_.warnings.push_back(warning);
      }
    }
  }

  // The time of one evaluation in each table, by wire type: that of a forward pass is the same with
  // all strategies.
  [[nodiscard]] Seconds evaluation(const models::Phase& phase, const Job& job) const {
    if (!table_.run.evaluation) return Seconds{0};
    const models::Evaluation& asked = *table_.run.evaluation;
    const int batch = asked.batch.value_or(phase.batch.value_or(job.question.batch_per_rank));
    const auto share = simulator::evaluation_share(asked.samples, table_.ranks, batch);
    simulator::Predictor predictor(
        job.request(job.networks.front(), table_.ranks, job.wires.front()));
    return static_cast<double>(share.passes) * predictor.forward_pass(share.batch);
  }

  // The row of the strategy and the wire type with this index; null where it was left out.
  static const simulator::StrategyPrediction* find(const PredictionTable& table,
                                                   const models::Strategy& strategy,
                                                   std::size_t wire) {
    for (const simulator::StrategyPrediction& row : table.rows) {
      if (row.name == strategy.name && row.plan.wire == table.job.wires[wire]) return &row;
    }
    return nullptr;
  }

  void make_rows() {
    const models::TrainingRun& run = table_.run;
    std::vector<Seconds> evaluations;
    for (std::size_t i = 0; i < run.phases.size(); ++i)
      evaluations.push_back(evaluation(run.phases[i], table_of(i).job));
    const Job& job = table_.jobs.front();
    for (std::size_t wire = 0; wire < job.wires.size(); ++wire) {
      for (const models::Strategy* strategy : job.strategies) {
        CostRow row{.name = std::string(strategy->name), .phases = {}, .time = {}, .expenses = {}};
        std::vector<simulator::PhaseIteration> iterations;
        for (std::size_t i = 0; i < run.phases.size(); ++i) {
          const PredictionTable& table = table_of(i);
          const simulator::StrategyPrediction* found = find(table, *strategy, wire);
          if (found == nullptr) break;
          row.phases.push_back(found);
          row.by_library_model = row.by_library_model || found->by_library_model;
          iterations.push_back(
              {found->iteration, samples_of_an_iteration(table.job, table_.ranks), evaluations[i]});
        }
        if (row.phases.size() != run.phases.size()) continue;
        row.time = simulator::time_to_train(run, iterations, table_.ranks);
        row.expenses = simulator::expenses(job.cluster, table_.ranks, row.time.total, run.spares);
        table_.rows.push_back(std::move(row));
      }
    }
    if (table_.rows.empty())
      throw InputError("no strategy can be timed in all phases", table_.left_out.front().remedy);
  }

  [[nodiscard]] const PredictionTable& table_of(std::size_t phase) const {
    return table_.tables[table_.table_of_phase[phase]];
  }
  [[nodiscard]] static double samples_of_an_iteration(const Job& job, int ranks) {
    return job.question.samples(ranks);
  }

  const simulator::Question& question_;
  const TrainingRunOptions& run_options_;
  const CostRequest& request_;
  CostTable table_;
  std::vector<const models::Phase*> first_phase_;  // of each job
};

}  // namespace

std::size_t CostTable::best() const {
  const auto faster = [](const CostRow& a, const CostRow& b) {
    return a.time.total.value < b.time.total.value;
  };
  return to_size(std::min_element(rows.begin(), rows.end(), faster) - rows.begin());
}

std::vector<std::size_t> CostTable::tied() const {
  constexpr double alike = 1.001;
  const std::size_t first = best();
  std::vector<std::size_t> others;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (i != first && rows[i].time.total.value <= alike * rows[first].time.total.value)
      others.push_back(i);
  }
  return others;
}

CostTable cost_table(const simulator::Question& question, const TrainingRunOptions& run,
                     const CostRequest& request) {
  return CostTabler(question, run, request).table();
}

}  // namespace paceline::job
