// Tests: tests/cli/what_if_test.py (end to end).
#include "cli/job/what_if.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "calibration/compare/same_job.h"
#include "cli/job/files.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "cli/job/timeline_file.h"
#include "models/base/to_size.h"
#include "models/cluster/placement.h"
#include "simulator/cost/link_factors.h"
#include "simulator/prediction/prediction.h"

namespace paceline::job {
namespace {

const char* const option = "--what-if";

// The plan that ran, made again from what the timeline says of it.
models::Plan plan_of_run(const models::TracedJob& run, const models::NetworkWork& network,
                         const std::string& file) {
  const auto fail = [&](const std::string& what) {
    throw InputError({file}, what, "give the plan of the run with --plan, and its --model");
  };
  models::Plan plan;
  plan.strategy = run.strategy;
  plan.ranks = run.ranks;
  plan.wire = run.wire;
  plan.overlap = run.overlap;
  plan.streams = run.streams;
  int next = 0;
  for (const models::TracedBucket& traced : run.buckets) {
    if (next >= std::ssize(network.gradients) ||
        network.gradients[to_size(next)].name != traced.first_gradient ||
        traced.gradients > std::ssize(network.gradients) - next)
      fail(fmt::format("its buckets do not hold the gradients of {}", network.name));
    models::Bucket bucket{.first_gradient = next, .gradient_count = traced.gradients};
    for (int i = 0; i < traced.gradients; ++i)
      bucket.elements += network.gradients[to_size(next + i)].elements;
    next += traced.gradients;
    models::PlannedSchedule planned;
    if (traced.is_library) {
      planned = models::called(models::library_from_name(traced.schedule), run.ranks);
    } else {
      const models::CollectiveAlgorithm& algorithm = models::all_reduce_algorithm(traced.schedule);
      if (algorithm.takes_rings || algorithm.takes_servers)
        fail(fmt::format("it does not say with which options {} ran", traced.schedule));
      planned = models::scheduled(
          traced.schedule,
          {.ranks = run.ranks, .group_size = traced.group_size, .segments = traced.segments});
    }
    const auto same = std::find(plan.schedules.begin(), plan.schedules.end(), planned);
    bucket.schedule = static_cast<int>(same - plan.schedules.begin());
    if (same == plan.schedules.end()) plan.schedules.push_back(std::move(planned));
    plan.buckets.push_back(bucket);
    if (plan.bytes(bucket) != traced.bytes)
      fail(fmt::format("a bucket of {} bytes has {} bytes of gradients of {}", traced.bytes.value(),
                       plan.bytes(bucket).value(), network.name));
  }
  if (next != std::ssize(network.gradients))
    fail(fmt::format("its buckets hold {} of {} gradients of {}", next, network.gradients.size(),
                     network.name));
  return plan;
}

// A plan as the simulator times it: the parts of each bucket as the tasks of its DAG have them.
calibration::ModelledPlan modelled(const simulator::StrategyRun& run,
                                   const models::NetworkWork& network) {
  calibration::ModelledPlan plan{models::traced_job(network, run.plan), {}};
  plan.buckets.resize(run.plan.buckets.size());
  for (const simulator::Task& task : run.dag.tasks()) {
    if (task.resource != simulator::Resource::communication || task.index < 0) continue;
    simulator::BucketTimes& times = plan.buckets[to_size(task.index)];
    if (task.kind == simulator::TaskKind::cast) times.cast += task.duration;
    if (task.kind == simulator::TaskKind::pack) times.pack += task.duration;
    if (task.kind == simulator::TaskKind::all_reduce) times.all_reduce += task.duration;
    if (task.kind == simulator::TaskKind::unpack) times.unpack += task.duration;
  }
  return plan;
}

// What nobody measured, by the simulator.
class Model {
 public:
  // `plan` is the run's; null where the timeline says it.
  Model(const models::TracedTimeline& run, const std::string& file, const WhatIfOptions& options,
        GivenValues given, const models::PlanDocument* plan)
      : run_(run) {
    given.plan.reset();
    if (options.job.cluster.empty() && !given.cluster)
      throw InputError("--cluster is missing",
                       "a model says what other links or another plan do: give the cluster of the "
                       "run, and --profile where it was calibrated");
    simulator::Question question = options.job;
    if (question.networks.empty()) question.networks = {run.job.network};
    question.plan.clear();
    question.wires = {run.job.wire};
    question.batch_per_rank = std::max(1, run.timeline.batch_per_rank);
    job_ = load_job(question, {.given = given});
    job_.question.compute_is_exact = true;
    job_.names_strategies = true;
    models::check_ranks(job_.cluster, run.job.ranks);
    if (job_.networks.size() != 1)
      throw InputError({"--model"}, fmt::format("{} networks", job_.networks.size()),
                       "name that of the run");
    own_ = plan == nullptr ? plan_of_run(run.job, network(), file)
                           : checked(*plan, options.job.plan.empty() ? "<plan>" : options.job.plan);
  }

  [[nodiscard]] calibration::ModelledPlan own() const { return timed(own_, {}); }

  // What travels in the question's case.
  [[nodiscard]] calibration::ModelledPlan plan(const WhatIfQuestion& question) const {
    const simulator::LinkFactors factors{question.bandwidth, question.latency};
    if (!question.plan.empty())
      return timed(checked(read_plan(question.plan), question.plan), factors);
    if (question.strategy.empty()) return timed(own_, factors);
    const models::Strategy& strategy = parsing_option(
        option, [&]() -> const models::Strategy& { return models::strategy(question.strategy); });
    if (!strategy.is_runnable() || strategy.sharded() != nullptr)
      throw InputError({option},
                       strategy.sharded() != nullptr
                           ? fmt::format("{} has other collectives than the run", strategy.name)
                           : fmt::format("{} models what another system does", strategy.name),
                       "choose a strategy of ours, such as fused-ring");
    return with_predictor(factors, [&](simulator::Predictor& predictor) {
      return modelled(predictor.run(strategy), network());
    });
  }

 private:
  [[nodiscard]] const models::NetworkWork& network() const { return job_.networks.front().work; }

  [[nodiscard]] models::Plan checked(const models::PlanDocument& document,
                                     const std::string& file) const {
    models::check_plan(document, file, network(), run_.job.ranks);
    refuse_of_other_system(document.plan, file.c_str());
    if (document.plan.uses<models::ShardUse>() != nullptr)
      throw InputError({file}, "a sharded plan has other collectives than the run",
                       "choose a plan of a strategy of ours, such as fused-ring");
    if (document.plan.overlap == models::Overlap::priority)
      throw InputError({file}, "overlap priority cannot be run, only predicted",
                       "choose a plan with wait-free, double-buffered or none");
    return document.plan;
  }

  template <class F>
  [[nodiscard]] calibration::ModelledPlan with_predictor(const simulator::LinkFactors& factors,
                                                         F use) const {
    const models::Cluster cluster =
        parsing_option(option, [&] { return simulator::with_links(job_.cluster, factors); });
    std::optional<models::Profile> profile;
    if (job_.profile) profile = simulator::with_links(*job_.profile, factors);
    const simulator::PredictionRequest job =
        job_.request(job_.networks.front(), run_.job.ranks, run_.job.wire);
    simulator::Predictor predictor(job.on(cluster, profile ? &*profile : nullptr));
    return use(predictor);
  }

  [[nodiscard]] calibration::ModelledPlan timed(const models::Plan& plan,
                                                const simulator::LinkFactors& factors) const {
    return with_predictor(factors, [&](simulator::Predictor& predictor) {
      return modelled(predictor.run(plan), network());
    });
  }

  const models::TracedTimeline& run_;
  Job job_;
  models::Plan own_;
};

}  // namespace

calibration::WhatIfAnswers answer(const std::string& file, const WhatIfOptions& options) {
  (void)parse_questions(options.questions);  // before a file that may be large
  return answer(read_input_file(file), file, options, {});
}

calibration::WhatIfAnswers answer(const std::string& text, const std::string& file,
                                  const WhatIfOptions& options, const GivenValues& given) {
  const std::vector<WhatIfQuestion> questions = parse_questions(options.questions);
  const models::TracedTimeline traced = parse_timeline(text, file);
  std::optional<models::PlanDocument> plan = given.plan;
  if (!plan && !options.job.plan.empty()) plan = read_plan(options.job.plan);
  if (plan) calibration::check_follows(traced.job, file, *plan);
  calibration::WhatIfAnswers answers{
      .file = file,
      .title = traced.timeline.title,
      .run =
          calibration::measured_run(traced, models::parse_run_times(text, file, traced.job), file),
      .reproduced = {},
      .answers = {}};
  answers.reproduced = reproduced(answers.run);
  std::optional<Model> model;
  std::optional<calibration::ModelledPlan> own;
  for (const WhatIfQuestion& question : questions) {
    calibration::Scenario scenario{
        .name = question.text, .without = question.without, .compute = question.compute};
    if (question.without_slowest) {
      if (!answers.run.has_all_ranks)
        throw InputError({file}, "it has the times of rank 0 only, and so no slowest rank",
                         "record the run again with this version");
      scenario.without.push_back(answers.run.slowest());
    }
    if (question.needs_model()) {
      if (!model) {
        model.emplace(traced, file, options, given, plan ? &*plan : nullptr);
        own = model->own();
      }
      scenario.plan = model->plan(question);
    }
    answers.answers.push_back(
        parsing_option(option, [&] { return what_if(answers.run, own, scenario); }));
  }
  return answers;
}

}  // namespace paceline::job
