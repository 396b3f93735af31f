// Tests: tests/cli/check_test.py (end to end).
#include "cli/job/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "calibration/compare/iteration_times.h"
#include "calibration/compare/same_job.h"
#include "calibration/import/import_file.h"
#include "calibration/import/kineto_trace.h"
#include "cli/job/deviation_limit.h"
#include "cli/job/measured_times.h"
#include "cli/job/named_things.h"
#include "cli/job/option_values.h"
#include "cli/job/timeline_file.h"

namespace paceline::job {
namespace {

using calibration::Evidence;
using calibration::Imported;
using calibration::ImportedCurve;
using calibration::ImportFormat;

constexpr double most_slower = 10;

// Reads one file after the other.
class EvidenceReader {
 public:
  EvidenceReader(const CheckOptions& options, std::optional<int> ranks) : ranks_(ranks) {
    if (!options.collective.empty())
      collective_ = parsing_option(
          "--collective", [&] { return models::collective_from_name(options.collective); });
  }

  void read(const std::string& file) {
    const std::string text = read_trace_file(file, [](std::string_view) {});
    if (text.find("\"paceline.timeline/1\"") != std::string::npos) return read_timeline(text, file);
    if (text.find("\"paceline.profile/1\"") != std::string::npos) {
      evidence.profiles.push_back({file, models::parse_profile(text, file)});
      return;
    }
    const ImportFormat format = calibration::guessed_format(text, file);
    if (format == ImportFormat::kineto) return read_trace(text, file);
    Imported imported = calibration::import_text(format, text, file, nullptr, collective_);
    for (std::string& remark : imported.remarks) remarks.push_back(file + ": " + std::move(remark));
    const std::size_t before = count();
    if (imported.training)
      evidence.runs.push_back({file, *std::move(imported.training)});
    else
      for (const calibration::ImportedThroughput& one : imported.throughputs)
        evidence.runs.push_back({file,
                                 {.written_as = one.samples.source,
                                  .quantity = calibration::LogQuantity::samples_per_second,
                                  .values = {one.samples.value.value()},
                                  .global_batch = one.global_batch}});
    if (imported.machine) evidence.machines.push_back({file, *std::move(imported.machine)});
    read_curves(imported, file);
    if (count() == before)
      throw InputError({file},
                       fmt::format("a file of {}, and nothing in it to check", name(format)),
                       "give a training log, a trace of torch.profiler, the output of nccl-tests, "
                       "nvidia-smi topo -m or a log of NCCL");
  }

  Evidence evidence;
  std::vector<std::string> remarks;

 private:
  [[nodiscard]] std::size_t count() const {
    return evidence.runs.size() + evidence.traces.size() + evidence.collectives.size() +
           evidence.machines.size();
  }

  void read_timeline(const std::string& text, const std::string& file) {
    const models::TracedTimeline traced = parse_timeline(text, file);
    calibration::check_run(traced.timeline);
    const calibration::IterationTimes times = calibration::iteration_times(traced);
    evidence.traces.push_back(
        {file,
         {.steps = times.iterations,
          .iteration = times.iteration.median,
          .computation = times.forward.median + times.backward.median + times.update.median,
          .communication = times.exposed.median,
          .exposed = times.exposed.median,
          .input = times.between_iterations.median,
          .idle = times.between_layers.median + times.exposed_idle.median}});
  }

  void read_trace(const std::string& text, const std::string& file) {
    const auto steps = calibration::traced_steps(calibration::read_kineto_trace(text, file));
    if (!steps)
      throw InputError({file}, "it has no kernels of a GPU",
                       "trace with ProfilerActivity.CUDA, too");
    evidence.traces.push_back({file, *steps});
  }

  void read_curves(const Imported& imported, const std::string& file) {
    std::map<std::tuple<models::Collective, int, models::WireType>, calibration::MeasuredCollective>
        all;
    std::map<const calibration::MeasuredCollective*, std::vector<calibration::Sample>> samples;
    for (const ImportedCurve& curve : imported.curves) {
      const auto collective = models::collective_of(curve.kind);
      if (!collective) continue;
      if (!curve.ranks.is_known() && !ranks_)
        throw InputError(
            {file}, fmt::format("it does not say on how many ranks the {} ran", name(curve.kind)),
            "give --ranks");
      const int ranks = curve.ranks.is_known() ? curve.ranks.least : *ranks_;
      const models::WireType type = curve.wire.value_or(models::WireType::fp32);
      calibration::MeasuredCollective& one = all[{*collective, ranks, type}];
      one = {file, curve.what, *collective, ranks, type, curve.nodes, std::move(one.times)};
      const auto more = curve.samples_of_buckets(ranks);
      samples[&one].insert(samples[&one].end(), more.begin(), more.end());
    }
    for (auto& [key, one] : all) {
      one.times = calibration::spread_by_size(samples[&one]);
      if (!one.times.empty()) evidence.collectives.push_back(std::move(one));
    }
  }

  std::optional<int> ranks_;
  std::optional<models::Collective> collective_;
};

// Throws InputError unless the question names one plan or strategy, which no measurement tells.
void check_says_what_runs(const Job& job) {
  if (job.networks.size() > 1)
    throw InputError({"--model"}, fmt::format("{} networks", job.networks.size()), "give one");
  if (job.wires.size() > 1)
    throw InputError({"--wire"}, fmt::format("{} types", job.wires.size()), "give one");
  if (!job.plan && !(job.names_strategies && job.strategies.size() == 1))
    throw InputError({"--strategy"}, "it is not said what the job runs",
                     "give one strategy, such as fsdp, zero1 or pytorch-ddp, or --plan");
}

}  // namespace

CalibrationRequest check_here(const CheckOptions& options) {
  const simulator::Question& question = options.question;
  CalibrationOptions calibration;
  calibration.time = options.time;
  calibration.cluster = question.cluster;
  calibration.batch = std::to_string(question.batch_per_rank);
  calibration.precision = std::string(name(question.precision));
  if (!question.networks.empty()) calibration.model = question.networks.front();
  try {
    return load_calibration(calibration);
  } catch (const InputError&) {
    calibration.model.clear();  // not computed by CPUs; load_job() says what else is wrong with it
    return load_calibration(calibration);
  }
}

CheckAnswer check(const CheckOptions& options, const GivenValues& given) {
  const std::optional<DeviationLimit> limit =
      parse_deviation_limit("--fail-slower", options.fail_slower, 0, most_slower);
  const simulator::Question& question = options.question;
  if (!given.cluster) require_option(question.cluster, "--cluster", "h100-ndr");
  const bool has_job = !question.networks.empty() || given.network;
  const models::Cluster cluster =
      placed(given.cluster ? *given.cluster : load_cluster(question.cluster), question.placement);
  std::optional<int> ranks;
  if (!question.ranks.empty()) ranks = parse_ranks(question.ranks, cluster);
  EvidenceReader reader(options, ranks);
  for (const std::string& file : options.files) reader.read(file);
  if (options.here) reader.evidence.profiles.push_back({"this cluster", *options.here});
  for (const calibration::MeasuredCollective& one : reader.evidence.collectives)
    check_measured_nodes(cluster, one.ranks, one.nodes, one.file);

  CheckAnswer answer{{}, {}, std::move(reader.remarks)};
  if (!has_job && !reader.evidence.has_iterations()) {
    const std::optional<models::Profile> profile =
        given.profile ? given.profile : load_profile(question.profile, cluster);
    answer.check = calibration::check({.cluster = cluster,
                                       .profile = profile ? &*profile : nullptr,
                                       .nccl_version = question.nccl_version},
                                      reader.evidence);
  } else {
    const Job job = load_job(question, {.given = given, .is_of_one_size = true});
    check_says_what_runs(job);
    const LoadedNetwork& network = job.networks.front();
    const simulator::PredictionRequest request =
        job.request(network, ranks_of(job), job.wires.front());
    if (job.plan) check_plan(*job.plan, job.plan_file, network.work, request.ranks);
    answer.check = calibration::check({.cluster = job.cluster,
                                       .profile = request.profile,
                                       .nccl_version = question.nccl_version,
                                       .job = &request,
                                       .strategy = job.strategies.front(),
                                       .plan = job.plan ? &job.plan->plan : nullptr},
                                      reader.evidence);
    answer.job = fmt::format("{} by {} on {} ranks of {}", network.work.name,
                             job.strategies.front()->name, request.ranks, job.cluster.name);
    answer.check.expected->run.reset();  // it refers to the job
  }
  if (limit) answer.check.allowed = limit->share;
  return answer;
}

}  // namespace paceline::job
