// Tests: tests/calibration/what_if_test.cc.
#include "calibration/compare/what_if.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "calibration/compare/iteration_times.h"
#include "calibration/compare/same_job.h"
#include "calibration/fit/statistics.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "simulator/iteration/heterogeneous_ranks.h"

namespace paceline::calibration {
namespace {

using simulator::TaskKind;

// A network and a plan of which the DAG reads the same as of those that ran: its layers, and for
// each bucket a gradient of the layer that completes it.
simulator::IterationDag dag_of(const models::TracedJob& job,
                               const std::vector<simulator::BucketTimes>& buckets) {
  models::NetworkWork network;
  network.name = job.network;
  for (const models::TracedLayer& layer : job.layers) {
    network.layers.emplace_back();
    network.layers.back().name = layer.name;
    network.layers.back().kind = layer.kind;
  }
  models::Plan plan;
  plan.strategy = "ring";  // names no policy: overlap and streams are the job's
  plan.ranks = job.ranks;
  plan.wire = job.wire;
  plan.overlap = job.overlap;
  plan.streams = job.streams;
  plan.schedules.emplace_back();
  for (std::size_t b = 0; b < job.buckets.size(); ++b) {
    const models::TracedBucket& bucket = job.buckets[b];
    network.gradients.push_back({bucket.first_gradient, 1, bucket.ready_after});
    plan.buckets.push_back(
        {.first_gradient = static_cast<int>(b), .gradient_count = 1, .elements = 1, .schedule = 0});
  }
  simulator::ComputeTimes compute;
  compute.layers.resize(job.layers.size());
  return {network, plan, compute, buckets, {}};
}

// The durations of a rank's own tasks.
std::vector<Seconds> durations_of(const simulator::IterationDag& dag, const models::RankTimes& rank,
                                  double speed) {
  std::vector<Seconds> durations;
  for (const simulator::Task& task : dag.tasks()) {
    const auto layer = to_size(std::max(0, task.index));
    if (task.kind == TaskKind::forward)
      durations.push_back(rank.forward[layer] / speed);
    else if (task.kind == TaskKind::backward)
      durations.push_back(rank.backward[layer] / speed);
    else if (task.kind == TaskKind::update)
      durations.push_back(rank.update / speed + rank.rest);
    else
      durations.push_back(task.duration);
  }
  return durations;
}

Seconds period(const models::TracedJob& job, const std::vector<models::RankTimes>& ranks,
               const std::vector<simulator::BucketTimes>& buckets, double speed) {
  const simulator::IterationDag dag = dag_of(job, buckets);
  std::vector<std::vector<Seconds>> durations;
  for (const models::RankTimes& rank : ranks) durations.push_back(durations_of(dag, rank, speed));
  return simulator::period_of_ranks(dag, durations);
}

std::vector<simulator::BucketTimes> as_measured(const MeasuredRun& run) {
  std::vector<simulator::BucketTimes> buckets;
  for (const models::BucketUse& use : run.buckets) {
    simulator::BucketTimes times;
    times.negotiation = use.hand_over;
    times.cast = use.made_ready;
    times.all_reduce = use.transfer;
    times.unpack = use.unpack;
    buckets.push_back(std::move(times));
  }
  return buckets;
}

Seconds copies(const simulator::BucketTimes& times) {
  return times.cast + times.pack + times.unpack;
}

// What measured times are of predicted ones; 1 where one of them is nothing.
double ratio(Seconds measured, Seconds predicted) {
  return measured > Seconds{0} && predicted > Seconds{0} ? measured / predicted : 1;
}

bool has_same_buckets(const models::TracedJob& a, const models::TracedJob& b) {
  return a.buckets == b.buckets && a.wire == b.wire;
}

// The run's buckets, each all-reduce times what the model says the scenario does to it.
std::vector<simulator::BucketTimes> changed(std::vector<simulator::BucketTimes> buckets,
                                            const ModelledPlan& own, const ModelledPlan& other,
                                            WhatIf& answer) {
  double least = 0;
  double most = 0;
  for (std::size_t b = 0; b < buckets.size(); ++b) {
    const Seconds predicted = own.buckets[b].all_reduce;
    const double factor = predicted > Seconds{0} ? other.buckets[b].all_reduce / predicted : 1;
    least = b == 0 ? factor : std::min(least, factor);
    most = std::max(most, factor);
    buckets[b].all_reduce *= factor;
  }
  answer.rests_on.push_back(
      fmt::format("all-reduces: measured, each times what the model says of it ({:.3g} to {:.3g})",
                  least, most));
  return buckets;
}

// The buckets of another plan as the model has them, times what the run's own all-reduces, and its
// own copies, took of what the model has for them.
std::vector<simulator::BucketTimes> replaced(const std::vector<simulator::BucketTimes>& measured,
                                             const ModelledPlan& own, const ModelledPlan& other,
                                             WhatIf& answer) {
  Seconds measured_sums;
  Seconds own_sums;
  Seconds measured_copies;
  Seconds own_copies;
  std::vector<Seconds> hand_overs = {Seconds{0}};
  if (!measured.empty()) hand_overs.clear();
  for (std::size_t b = 0; b < measured.size(); ++b) {
    measured_sums += measured[b].all_reduce;
    own_sums += own.buckets[b].all_reduce;
    measured_copies += copies(measured[b]);
    own_copies += copies(own.buckets[b]);
    hand_overs.push_back(measured[b].negotiation);
  }
  const double sums = ratio(measured_sums, own_sums);
  const double copied = ratio(measured_copies, own_copies);
  const Seconds hand_over = median(std::move(hand_overs));
  std::vector<simulator::BucketTimes> buckets = other.buckets;
  for (simulator::BucketTimes& times : buckets) {
    times.all_reduce *= sums;
    times.cast *= copied;
    times.pack *= copied;
    times.unpack *= copied;
    times.negotiation = hand_over;
  }
  answer.rests_on.push_back(
      fmt::format("{} all-reduces of the other plan: predicted, times {:.3g}: measured over "
                  "predicted of the {} that ran",
                  buckets.size(), sums, measured.size()));
  return buckets;
}

}  // namespace

int MeasuredRun::slowest() const {
  const auto time = [](const models::RankTimes& rank) { return rank.passes() + rank.update; };
  const auto slowest = std::max_element(
      ranks.begin(), ranks.end(), [&](const auto& a, const auto& b) { return time(a) < time(b); });
  return static_cast<int>(slowest - ranks.begin());
}

MeasuredRun measured_run(const models::TracedTimeline& traced, const models::RunTimes& times,
                         const std::string& file) {
  try {
    check_run(traced.timeline);
  } catch (const InputError& error) {
    throw error.at({file});
  }
  const IterationTimes measured = iteration_times(traced);
  const models::RankRecord record = models::rank_record(traced);
  MeasuredRun run{.job = traced.job,
                  .ranks = times.ranks,
                  .buckets = std::vector<models::BucketUse>(traced.job.buckets.size()),
                  .iteration = measured.iteration.median,
                  .iterations = measured.iterations,
                  .has_all_ranks = !times.ranks.empty() || traced.job.ranks == 1};
  if (run.ranks.empty()) run.ranks = {record.times};
  for (std::size_t b = 0; b < run.buckets.size(); ++b) {
    const auto typical = [&](Seconds models::BucketUse::*part) {
      std::vector<Seconds> values;
      for (const auto& buckets : record.buckets) values.push_back(buckets[b].*part);
      return median(std::move(values));
    };
    run.buckets[b] = {.hand_over = typical(&models::BucketUse::hand_over),
                      .made_ready = typical(&models::BucketUse::made_ready),
                      .transfer = times.ranks.empty() ? typical(&models::BucketUse::transfer)
                                                      : times.transfers[b],
                      .unpack = typical(&models::BucketUse::unpack)};
  }
  return run;
}

Seconds reproduced(const MeasuredRun& run) {
  return period(run.job, run.ranks, as_measured(run), 1);
}

WhatIf what_if(const MeasuredRun& run, const std::optional<ModelledPlan>& own,
               const Scenario& scenario) {
  WhatIf answer{.name = scenario.name, .dag = {}, .iteration = {}, .gain = 0, .rests_on = {}};
  std::vector<models::RankTimes> ranks;
  for (std::size_t r = 0; r < run.ranks.size(); ++r) {
    const auto& without = scenario.without;
    if (std::find(without.begin(), without.end(), static_cast<int>(r)) == without.end())
      ranks.push_back(run.ranks[r]);
  }
  for (const int rank : scenario.without) {
    if (rank < 0 || rank >= std::ssize(run.ranks))
      throw InputError(fmt::format("{}: the timeline has no times of rank {}", scenario.name, rank),
                       run.has_all_ranks ? fmt::format("choose 0 to {}", run.ranks.size() - 1)
                                         : "record the run again: this one has rank 0 only");
    answer.rests_on.push_back(fmt::format(
        "rank {}, which takes {} for its passes and update, is like the others; all-reduces as "
        "measured",
        rank, to_text(run.ranks[to_size(rank)].passes() + run.ranks[to_size(rank)].update)));
  }
  if (ranks.empty())
    throw InputError(scenario.name + ": no rank is left", "leave out fewer than all");
  if (scenario.compute != 1)
    answer.rests_on.push_back(fmt::format(
        "layers and update of every rank: measured, divided by {:g}", scenario.compute));
  models::TracedJob job = run.job;
  std::vector<simulator::BucketTimes> buckets = as_measured(run);
  if (scenario.plan) {
    PACELINE_ASSERT(own.has_value(), "the run's own plan is modelled where another is");
    if (has_same_buckets(run.job, scenario.plan->job)) {
      buckets = changed(std::move(buckets), *own, *scenario.plan, answer);
    } else {
      buckets = replaced(buckets, *own, *scenario.plan, answer);
    }
    job = scenario.plan->job;
  }
  answer.dag = period(job, ranks, buckets, scenario.compute);
  answer.iteration = std::max(Seconds{0}, run.iteration + (answer.dag - reproduced(run)));
  answer.gain = run.iteration > Seconds{0} ? 1 - answer.iteration / run.iteration : 0;
  return answer;
}

}  // namespace paceline::calibration
