// Tests: tests/simulator/export/horovod_test.cc.
#include "simulator/export/horovod.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/plan/strategy.h"

namespace paceline::simulator {
namespace {

constexpr double milli = 1e-3;
// A plan whose buckets all travel at once has a stream for each of them.
constexpr int most_streams = 8;

// Whether the all-reduce is the one that HOROVOD_HIERARCHICAL_ALLREDUCE turns on.
bool is_by_nodes(const models::PlannedSchedule& planned, const models::Cluster& cluster) {
  return (planned.algorithm == "hierarchical" || planned.algorithm == "hierarchical-scatter") &&
         planned.options.group_size == cluster.ranks_per_node &&
         planned.options.ranks > cluster.ranks_per_node;
}

bool is_ring(const models::PlannedSchedule& planned) {
  return planned.library() == models::Library::nccl || planned.algorithm == "ring";
}

// Whether more bytes of the plan go by nodes than otherwise.
bool goes_by_nodes(const models::Plan& plan, const models::Cluster& cluster) {
  double by_nodes = 0;
  double all = 0;
  for (const models::Bucket& bucket : plan.buckets) {
    const double bytes = plan.bytes(bucket).value();
    all += bytes;
    if (is_by_nodes(plan.schedules[to_size(bucket.schedule)], cluster)) by_nodes += bytes;
  }
  return 2 * by_nodes > all;
}

// The all-reduce by nodes that takes the most of the plan's bytes.
const models::PlannedSchedule& schedule_by_nodes(const models::Plan& plan,
                                                 const models::Cluster& cluster) {
  std::vector<double> bytes(plan.schedules.size());
  for (const models::Bucket& bucket : plan.buckets)
    bytes[to_size(bucket.schedule)] += plan.bytes(bucket).value();
  std::size_t most = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const bool is_better = !is_by_nodes(plan.schedules[most], cluster) || bytes[i] > bytes[most];
    if (is_by_nodes(plan.schedules[i], cluster) && is_better) most = i;
  }
  return plan.schedules[most];
}

std::vector<Bytes> thresholds_of(const models::Plan& plan) {
  constexpr double least = 65536;
  constexpr double most = 268435456;
  std::vector<Bytes> list = {Bytes{0}};
  for (double bytes = least; bytes <= most; bytes *= 2) list.push_back(Bytes{bytes});
  Bytes largest{0};
  for (const models::Bucket& bucket : plan.buckets) largest = std::max(largest, plan.bytes(bucket));
  list.push_back(largest);
  return list;
}

std::vector<std::string> notes_of(const models::Plan& plan, const HorovodSettings& settings,
                                  const models::Cluster& cluster, int accumulate) {
  std::vector<std::string> notes;
  const double longer = settings.iteration / settings.asked - 1;
  constexpr double percent = 100;
  notes.push_back(fmt::format(
      "the plan cannot be said as it is: Horovod would make {} bucket{} of its {}, and "
      "an iteration is "
      "predicted to take {}, {:+.1f} % of the plan's {}",
      settings.plan.buckets.size(), settings.plan.buckets.size() == 1 ? "" : "s",
      plan.buckets.size(), to_text(settings.iteration), percent * longer, to_text(settings.asked)));
  for (const models::PlannedSchedule& planned : plan.schedules) {
    if (is_ring(planned) || (settings.hierarchical && is_by_nodes(planned, cluster))) continue;
    notes.push_back(fmt::format("{}: Horovod has no such all-reduce, and asks NCCL for its own",
                                described(planned)));
  }
  if (settings.hierarchical)
    notes.emplace_back(
        "Horovod's hierarchical all-reduce goes between nodes by MPI, through the host's memory; "
        "the prediction is for one between GPUs");
  if (plan.wire != models::WireType::fp32)
    notes.push_back(
        fmt::format("{} on the wire is the script's: compression=hvd.Compression.fp16{}",
                    name(plan.wire), plan.wire == models::WireType::bf16 ? " comes nearest" : ""));
  if (plan.overlap != models::Overlap::wait_free)
    notes.push_back(fmt::format("overlap {}: Horovod sends what is there", name(plan.overlap)));
  if (plan.streams > most_streams)
    notes.push_back(
        fmt::format("{} streams are more than Horovod is given: one is left", plan.streams));
  else if (plan.streams > 1)
    notes.push_back(fmt::format("{} streams: HOROVOD_NUM_NCCL_STREAMS says so, and was not tried",
                                plan.streams));
  if (accumulate > 1)
    notes.push_back(
        fmt::format("{} accumulated batches are the script's: "
                    "hvd.DistributedOptimizer(..., backward_passes_per_step={})",
                    accumulate, accumulate));
  return notes;
}

}  // namespace

std::vector<std::string> variables(const HorovodSettings& settings) {
  return {fmt::format("HOROVOD_FUSION_THRESHOLD={}",
                      static_cast<std::int64_t>(settings.fusion.value())),
          fmt::format("HOROVOD_CYCLE_TIME={:g}", settings.cycle.value() / milli)};
}

HorovodSettings horovod_settings(const models::Plan& plan, const PredictionRequest& request) {
  HorovodSettings best{.hierarchical = goes_by_nodes(plan, request.cluster)};
  PredictionRequest asked = request;
  asked.thresholds = {};
  asked.overlap = {};
  best.asked = Predictor(asked).run(plan).steady.period;
  bool is_first = true;
  for (const double cycle_ms : {0.5, 1.0, 2.5, 5.0, 10.0}) {
    for (const Bytes fusion : thresholds_of(plan)) {
      PredictionRequest candidate = asked;
      candidate.thresholds.cycle = Seconds{milli * cycle_ms};
      candidate.thresholds.fusion = fusion;
      Predictor predictor(candidate);
      StrategyRun run = predictor.run(models::strategy("horovod"));
      if (best.hierarchical) {
        models::Plan by_nodes = std::move(run.plan);
        by_nodes.schedules = {schedule_by_nodes(plan, request.cluster)};
        for (models::Bucket& bucket : by_nodes.buckets) bucket.schedule = 0;
        run = predictor.run(by_nodes);
      }
      // A longer cycle asks the ranks less often, so it has to be sooner by more than noise.
      constexpr double alike = 1e-4;
      if (!is_first && run.steady.period >= best.iteration * (1 - alike)) continue;
      is_first = false;
      best.fusion = fusion;
      best.cycle = Seconds{milli * cycle_ms};
      best.iteration = run.steady.period;
      best.plan = std::move(run.plan);
    }
  }
  return best;
}

ExportedText horovod_text(const std::string& title, const models::Plan& plan,
                          const PredictionRequest& request) {
  const HorovodSettings settings = horovod_settings(plan, request);
  ExportedText exported{.text = fmt::format("# {}\n", title),
                        .notes = notes_of(plan, settings, request.cluster, request.accumulate)};
  for (const std::string& note : exported.notes) exported.text += fmt::format("# {}\n", note);
  for (const std::string& variable : variables(settings)) exported.text += variable + "\n";
  exported.text +=
      fmt::format("HOROVOD_HIERARCHICAL_ALLREDUCE={}\n", settings.hierarchical ? 1 : 0);
  exported.text += "HOROVOD_TORUS_ALLREDUCE=0\n";
  if (plan.streams > 1 && plan.streams <= most_streams)
    exported.text += fmt::format("HOROVOD_NUM_NCCL_STREAMS={}\n", plan.streams);
  exported.text += "HOROVOD_AUTOTUNE=0\n";
  return exported;
}

}  // namespace paceline::simulator
