// Tests: tests/calibration/check_test.cc.
#include "calibration/check/check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "calibration/check/collective_check.h"
#include "calibration/check/faults.h"
#include "calibration/check/machine_check.h"
#include "calibration/check/profile_check.h"
#include "calibration/fit/statistics.h"
#include "models/base/error.h"
#include "models/base/interval.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"

namespace paceline::calibration {
namespace {

// A fault is named where its prediction is this near to what was measured, as a logarithm, and by this share
// nearer than the expectation.
constexpr double near = 0.35;
constexpr double clearly_nearer = 0.6;
constexpr std::size_t most_likely = 3;
// The global batch that a log states, which may be rounded to three digits.
constexpr double same_batch = 0.01;

std::string interval_text(const Figure<Seconds>& figure) {
  return fmt::format("{} ({} to {})", to_text(figure.value), to_text(figure.low),
                     to_text(figure.high));
}

// The seconds of each iteration that a log has.
std::vector<double> seconds_of(const LoggedRun& run, const simulator::PredictionRequest& job) {
  const double samples = job.samples(job.ranks);
  const double batch = run.iterations.global_batch;
  if (batch > 0 && std::abs(batch / samples - 1) > same_batch)
    throw InputError(
        {run.file},
        fmt::format("its global batch is {:.6g}, and that of the job {:.6g}", batch, samples),
        "give the --batch and --accumulate of the run, or its --global-batch");
  const auto sequence = static_cast<double>(job.network.sequence);
  const auto tokens = [&] {
    if (sequence == 0)
      throw InputError({run.file},
                       fmt::format("it counts tokens ({}), and {} reads none",
                                   run.iterations.written_as, job.network.name),
                       "give the --model of the run");
    return samples * sequence;
  };
  std::vector<double> all = run.iterations.values;
  for (double& value : all) {
    switch (run.iterations.quantity) {
      case LogQuantity::seconds:
        break;
      case LogQuantity::iterations_per_second:
        value = 1 / value;
        break;
      case LogQuantity::tokens_per_second_of_a_rank:
        value = tokens() / (value * job.ranks);
        break;
      case LogQuantity::tokens_per_second:
        value = tokens() / value;
        break;
      case LogQuantity::samples_per_second_of_a_rank:
        value = samples / (value * job.ranks);
        break;
      case LogQuantity::samples_per_second:
        value = samples / value;
        break;
    }
  }
  return all;
}

CheckedPart part_of(std::string part, const std::string& file, const Figure<Seconds>& expected,
                    Seconds measured, Seconds low, Seconds high) {
  return {std::move(part),
          file,
          expected,
          measured,
          low,
          high,
          verdict(measured, expected.low, expected.high)};
}

// A part of an iteration may have all of what is not known of the iteration.
Figure<Seconds> with_interval(Seconds value, const Figure<Seconds>& iteration) {
  return {value, std::max(Seconds{0}, value - (iteration.value - iteration.low)),
          value + (iteration.high - iteration.value), Provenance::predicted, iteration.source};
}

class Checker {
 public:
  Checker(const Expectation& expectation, const Evidence& evidence)
      : expectation_(expectation), evidence_(evidence) {}

  Check checked() && {
    if (expectation_.job != nullptr) check_.expected = predicted(*expectation_.job);
    iterations();
    profiles();
    collectives();
    machines();
    std::ranges::stable_sort(check_.explanations, std::ranges::greater{}, &Explanation::time);
    if (check_.iteration)
      check_.gap = check_.iteration->measured - check_.iteration->expected.value;
    likely();
    advise();
    return std::move(check_);
  }

 private:
  [[nodiscard]] simulator::StrategyPrediction predicted(
      const simulator::PredictionRequest& request) const {
    simulator::Predictor predictor(request);
    return expectation_.plan != nullptr ? predictor.predict(*expectation_.plan)
                                        : predictor.predict(*expectation_.strategy);
  }

  // The job on another cluster, with other options.
  [[nodiscard]] std::optional<simulator::StrategyPrediction> predicted(
      const models::Cluster& cluster, const simulator::PredictionOptions& options,
      bool keeps_links) const {
    const simulator::PredictionRequest& job = *expectation_.job;
    std::optional<models::Profile> profile;
    if (job.profile != nullptr)
      profile = keeps_links ? *job.profile : with_links_of(*job.profile, {});
    simulator::PredictionRequest request = job.on(cluster, profile ? &*profile : nullptr);
    static_cast<simulator::PredictionOptions&>(request) = options;
    try {
      simulator::StrategyPrediction prediction = predicted(request);
      prediction.run.reset();  // it refers to what ends here
      return prediction;
    } catch (const InputError&) {
      return std::nullopt;  // the job cannot be so
    }
  }

  void iterations() {
    if (!check_.expected) return;
    const Figure<Seconds>& expected = check_.expected->iteration;
    for (const LoggedRun& run : evidence_.runs) {
      std::vector<double> seconds = seconds_of(run, *expectation_.job);
      std::sort(seconds.begin(), seconds.end());
      take_iteration(part_of("iteration", run.file, expected, Seconds{median(seconds)},
                             Seconds{quantile(seconds, interval_tail)},
                             Seconds{quantile(seconds, 1 - interval_tail)}));
    }
    for (const TracedRun& trace : evidence_.traces) {
      const TracedSteps& steps = trace.steps;
      take_iteration(part_of("iteration", trace.file, expected, steps.iteration, steps.iteration,
                             steps.iteration));
      const simulator::TimeSpent& spent = check_.expected->spent;
      const auto explain = [&](const char* name, Seconds of, Seconds measured) {
        check_.parts.push_back(
            part_of(name, trace.file, with_interval(of, expected), measured, measured, measured));
        if (measured > of)
          check_.explanations.push_back(
              {name, trace.file, measured - of, "measured less expected"});
      };
      explain(computation, spent.compute, steps.computation);
      explain(exposed, spent.exposed_communication, steps.exposed);
      explain(input, spent.input_wait, steps.input);
      explain(idle, Seconds{0}, steps.idle);
    }
  }

  // The first one is judged.
  void take_iteration(CheckedPart part) {
    if (check_.iteration)
      check_.parts.push_back(std::move(part));
    else
      check_.iteration = std::move(part);
  }

  void profiles() {
    for (const MeasuredProfile& measured : evidence_.profiles) {
      for (CheckedPart& part : checked_curves(expectation_, measured))
        check_.parts.push_back(std::move(part));
      if (!check_.expected) continue;
      const Figure<Seconds>& expected = check_.expected->iteration;
      const auto with = [&](const models::Profile& profile) {
        return predicted(expectation_.job->on(expectation_.cluster, &profile));
      };
      const models::Profile nothing;
      const models::Profile& before =
          expectation_.job->profile != nullptr ? *expectation_.job->profile : nothing;
      const simulator::StrategyPrediction all = with(measured.profile);
      take_iteration(part_of("iteration", measured.file, expected, all.iteration.value,
                             all.iteration.low, all.iteration.high));
      check_.parts.push_back(part_of(computation, measured.file,
                                     with_interval(check_.expected->spent.compute, expected),
                                     all.spent.compute, all.spent.compute, all.spent.compute));
      const auto explain = [&](const char* part, const simulator::StrategyPrediction& slower) {
        const Seconds longer = slower.iteration.value - expected.value;
        if (longer > Seconds{0})
          check_.explanations.push_back(
              {part, measured.file, longer, "predicted with what was measured of it"});
      };
      explain("messages", with(with_links_of(before, measured.profile)));
      explain(computation, with(with_links_of(measured.profile, before)));
    }
  }

  void collectives() {
    for (const MeasuredCollective& measured : evidence_.collectives) {
      const ExpectedCollectives expected(expectation_, measured);
      check_.collectives.push_back(expected.checked());
      const CheckedCollective& checked = check_.collectives.back();
      if (!checked.is_slow() || !check_.expected) continue;
      explain_by(expected.with_bandwidth(checked.bandwidth),
                 fmt::format("the pace of {}s", name(measured.collective)), measured.file);
    }
  }

  void machines() {
    for (const SeenMachine& seen : evidence_.machines) {
      MachineDifferences found = differences(expectation_.cluster, seen);
      for (std::string& text : found.texts) check_.differences.push_back(std::move(text));
      if (found.changes_links && check_.expected)
        explain_by(found.cluster, "the state of the links", seen.file);
    }
  }

  // Adds the time that such a cluster adds to an iteration.
  void explain_by(const models::Cluster& cluster, std::string part, const std::string& file) {
    const auto slower = predicted(cluster, *expectation_.job, false);
    if (!slower) return;
    const Seconds longer = slower->iteration.value - check_.expected->iteration.value;
    if (longer > Seconds{0})
      check_.explanations.push_back(
          {std::move(part), file, longer, "predicted with links as they are"});
  }

  [[nodiscard]] int nodes() const {
    int ranks = expectation_.job != nullptr ? expectation_.job->ranks : 1;
    for (const MeasuredCollective& one : evidence_.collectives) ranks = std::max(ranks, one.ranks);
    return models::used_nodes(expectation_.cluster, ranks);
  }

  // Faults by the collectives where any is slow, and else by the iteration or the largest part of its gap.
  void likely() {
    const auto slow = std::ranges::find_if(check_.collectives, &CheckedCollective::is_slow);
    const std::vector<Fault> faults =
        faults_of(expectation_.cluster, nodes(),
                  expectation_.job != nullptr
                      ? static_cast<const simulator::PredictionOptions&>(*expectation_.job)
                      : simulator::PredictionOptions{});
    if (slow != check_.collectives.end()) {
      const MeasuredCollective& measured =
          evidence_.collectives[static_cast<std::size_t>(slow - check_.collectives.begin())];
      likely_by(measured, faults);
    } else if (check_.iteration && check_.iteration->verdict == Verdict::slower) {
      likely_by_iteration(faults);
    }
    std::ranges::stable_sort(check_.likely, {}, &Likely::distance);
    if (check_.likely.size() > most_likely) check_.likely.resize(most_likely);
  }

  void likely_by(const MeasuredCollective& measured, const std::vector<Fault>& faults) {
    const ExpectedCollectives expected(expectation_, measured);
    const double healthy = expected.distance(expectation_.cluster);
    for (const Fault& fault : faults) {
      if (fault.kind == FaultKind::computation) continue;
      try {
        const double distance = expected.distance(fault.cluster);
        if (distance > near || distance > clearly_nearer * healthy) continue;
        check_.likely.push_back(
            {fault.what, fault.look,
             fmt::format("{}s of all sizes would then be {:.0f} % from what was measured, not "
                         "{:.0f} %",
                         name(measured.collective), 100 * std::expm1(distance),
                         100 * std::expm1(healthy)),
             distance});
      } catch (const InputError&) {
        continue;  // such a cluster cannot be
      }
    }
  }

  void likely_by_iteration(const std::vector<Fault>& faults) {
    const std::string most = check_.explanations.empty() ? "" : check_.explanations.front().part;
    if (most == input || most == idle) return;
    const auto of = [&](const simulator::StrategyPrediction& prediction) {
      if (most == computation) return with_interval(prediction.spent.compute, prediction.iteration);
      if (most == exposed)
        return with_interval(prediction.spent.exposed_communication, prediction.iteration);
      return prediction.iteration;
    };
    Seconds measured = check_.iteration->measured;
    for (const CheckedPart& part : check_.parts)
      if (part.part == most) measured = part.measured;
    const auto distance_to = [&](Seconds time) {
      return std::abs(std::log(measured / std::max(time, Seconds{1e-9})));
    };
    const double healthy = distance_to(of(*check_.expected).value);
    for (const Fault& fault : faults) {
      const bool is_computation = fault.kind == FaultKind::computation;
      if ((most == computation) != is_computation && !most.empty()) continue;
      const auto slower = predicted(fault.cluster, fault.options, is_computation);
      if (!slower) continue;
      const Figure<Seconds> would = of(*slower);
      const double distance = distance_to(would.value);
      if (verdict(measured, would.low, would.high) != Verdict::inside || distance > near ||
          distance > clearly_nearer * healthy)
        continue;
      check_.likely.push_back(
          {fault.what, fault.look,
           fmt::format("{} would then take {}", most.empty() ? "an iteration" : most,
                       interval_text(would)),
           distance});
    }
  }

  // Says what to do next where the evidence leaves it open.
  void advise() {
    if (!check_.iteration || check_.iteration->verdict != Verdict::slower) return;
    const std::string most = check_.explanations.empty() ? "" : check_.explanations.front().part;
    const bool has_slow_collectives =
        std::ranges::any_of(check_.collectives, &CheckedCollective::is_slow);
    if (evidence_.traces.empty())
      check_.advice.emplace_back(
          "a trace of torch.profiler of some iterations tells computation, communication, input "
          "and host apart");
    if (evidence_.collectives.empty() && (most.empty() || most == exposed))
      check_.advice.emplace_back(
          "nccl-tests over the same ranks tells slow links from ranks that wait for each other");
    if (most == exposed && !evidence_.collectives.empty() && !has_slow_collectives)
      check_.advice.emplace_back(
          "collectives by themselves are as fast as expected: ranks wait for the slowest of them; "
          "compare traces of several ranks");
    if (most == input)
      check_.advice.emplace_back(
          "the data loader is too slow: more workers, pinned memory, data nearer to the node");
    if (most == idle)
      check_.advice.emplace_back(
          "the host launches too slowly: CUDA graphs or torch.compile, larger batches, fewer "
          "synchronisations (.item(), printing), CPUs bound to their GPUs");
    if (most == computation && check_.likely.empty())
      check_.advice.emplace_back(
          "the device computes slowly: look at clocks and throttling (nvidia-smi -q -d "
          "CLOCK,PERFORMANCE), fused attention, and shapes that are no multiples of 64");
  }

  static constexpr const char* computation = "computation";
  static constexpr const char* exposed = "exposed communication";
  static constexpr const char* input = "waiting for input";
  static constexpr const char* idle = "waiting for the host";

  const Expectation& expectation_;
  const Evidence& evidence_;
  Check check_;
};

// Returns the part that is farthest beyond its interval.
const CheckedPart* farthest_behind(const Check& check) {
  const CheckedPart* farthest = nullptr;
  const auto look_at = [&](const std::vector<CheckedPart>& parts) {
    for (const CheckedPart& part : parts)
      if (farthest == nullptr ||
          part.measured / part.expected.high > farthest->measured / farthest->expected.high)
        farthest = &part;
  };
  look_at(check.parts);
  for (const CheckedCollective& collective : check.collectives) look_at(collective.sizes);
  return farthest;
}

}  // namespace

double Check::explained() const {
  if (explanations.empty() || gap <= Seconds{0}) return 0;
  return explanations.front().time / gap;
}

const CheckedPart* Check::judged() const {
  return iteration ? &*iteration : farthest_behind(*this);
}

bool Check::is_slow() const {
  const CheckedPart* const part = judged();
  if (part == nullptr) return !differences.empty();
  if (allowed) return part->ratio() > 1 + *allowed;
  return part->verdict == Verdict::slower;
}

std::string Check::verdict() const {
  const CheckedPart* const part = judged();
  if (part == nullptr)
    return differences.empty() ? "as it should be: the machine has what its cluster says"
                               : fmt::format("not as it should be: {}", differences.front());
  const std::string took = fmt::format(
      "{} takes {}, {:.3g} times the expected {}",
      iteration ? "an iteration" : "the slowest beside its expectation, " + part->part + ",",
      to_text(part->measured), part->ratio(), interval_text(part->expected));
  if (!is_slow())
    return fmt::format(
        "{}: {}", part->verdict == Verdict::faster ? "faster than expected" : "as expected", took);
  std::string text = "slower than expected: " + took;
  constexpr double worth_saying = 0.1;
  if (explained() >= worth_saying)
    text += fmt::format("; {} explains {:.0f} % of the gap", explanations.front().part,
                        std::min(100.0, 100 * explained()));
  if (!likely.empty()) text += fmt::format("; it looks as if {}", likely.front().what);
  return text;
}

Check check(const Expectation& expectation, const Evidence& evidence) {
  PACELINE_ASSERT(expectation.job != nullptr || !evidence.has_iterations(),
                  "iterations are of a job");
  return Checker(expectation, evidence).checked();
}

}  // namespace paceline::calibration
