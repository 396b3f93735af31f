// Tests: tests/calibration/comparison_test.cc.
#include "calibration/compare/same_job.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <string_view>

#include "calibration/compare/iteration_times.h"
#include "models/base/error.h"
#include "models/base/precision.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

using models::TracedJob;

constexpr std::string_view measured = "measured";
constexpr std::string_view predicted = "predicted";

const char* const what_is_a_run = "give the --timeline of paceline train or replay first";
const char* const what_is_a_prediction = "give the --timeline of paceline predict second";

void check_sides(const models::Timeline& run, const models::Timeline& prediction) {
  if (run.provenance == predicted && prediction.provenance == measured)
    throw InputError("the two are swapped: the first is the prediction, the second the run",
                     "give the run first");
  if (run.provenance != measured)
    throw InputError(
        fmt::format("the first is no run: its times are {}", in_quotes(run.provenance)),
        what_is_a_run);
  if (prediction.provenance != predicted)
    throw InputError(fmt::format("the second is no prediction: its times are {}",
                                 in_quotes(prediction.provenance)),
                     what_is_a_prediction);
}

// Iterations must follow one another, or an iteration would take less than nothing.
void check_iterations(const char* side, const models::Timeline& timeline) {
  const std::map<int, Seconds> starts = iteration_starts(timeline);
  if (starts.empty())
    throw InputError(fmt::format("the {} has no forward pass", side),
                     "give a timeline as paceline train and predict write it (--timeline)");
  for (auto next = std::next(starts.begin()); next != starts.end(); ++next) {
    const auto before = std::prev(next);
    if (next->second <= before->second)
      throw InputError(fmt::format("iteration {} of the {} does not start after iteration {}",
                                   next->first, side, before->first),
                       "give a timeline as it was written");
  }
}

[[noreturn]] void fail(const std::string& what, const std::string& remedy) {
  throw InputError("the run and the prediction are not of one job: " + what, remedy);
}

void check_layers(const TracedJob& run, const TracedJob& prediction) {
  if (run.layers == prediction.layers) return;
  if (run.network != prediction.network)
    fail(fmt::format("{} and {}", in_quotes(run.network), in_quotes(prediction.network)),
         fmt::format("predict --model {}", in_quotes(run.network)));
  const auto [a, b] = std::mismatch(run.layers.begin(), run.layers.end(), prediction.layers.begin(),
                                    prediction.layers.end());
  const TracedJob& longer = a != run.layers.end() ? run : prediction;
  const auto at = to_size(a - run.layers.begin());
  fail(fmt::format("layers of {} differ from {} on", in_quotes(run.network),
                   in_quotes(longer.layers[at].name)),
       "predict the network that ran");
}

std::string buckets_text(const TracedJob& job) {
  return fmt::format("{} bucket{}", job.buckets.size(), job.buckets.size() == 1 ? "" : "s");
}

void check_buckets(const TracedJob& run, const TracedJob& prediction) {
  const char* const remedy = "predict the plan that ran, with its --strategy and --theta";
  if (run.buckets.size() != prediction.buckets.size())
    fail(fmt::format("{} ({}) and {} ({})", buckets_text(run), in_quotes(run.strategy),
                     buckets_text(prediction), in_quotes(prediction.strategy)),
         remedy);
  for (std::size_t i = 0; i < run.buckets.size(); ++i) {
    const models::TracedBucket& a = run.buckets[i];
    const models::TracedBucket& b = prediction.buckets[i];
    if (a.first_gradient != b.first_gradient || a.gradients != b.gradients)
      fail(fmt::format("bucket {} has {} gradients from {} on, and {} from {} on", i, a.gradients,
                       in_quotes(a.first_gradient), b.gradients, in_quotes(b.first_gradient)),
           remedy);
    if (a.bytes != b.bytes)
      fail(fmt::format("bucket {} has {} and {} bytes", i, a.bytes.value(), b.bytes.value()),
           remedy);
  }
}

}  // namespace

void check_run(const models::Timeline& run) {
  if (run.provenance != measured)
    throw InputError(fmt::format("this is no run: its times are {}", in_quotes(run.provenance)),
                     "give the --timeline of paceline train or replay");
  check_iterations("run", run);
}

void check_same_job(const models::TracedTimeline& run, const models::TracedTimeline& prediction) {
  check_sides(run.timeline, prediction.timeline);
  const TracedJob& a = run.job;
  const TracedJob& b = prediction.job;
  check_layers(a, b);
  if (a.ranks != b.ranks)
    fail(fmt::format("{} and {} ranks", a.ranks, b.ranks),
         fmt::format("predict --ranks {}", a.ranks));
  const int batch = run.timeline.batch_per_rank;
  if (batch > 0 && prediction.timeline.batch_per_rank > 0 &&
      batch != prediction.timeline.batch_per_rank)
    fail(fmt::format("a batch of {} per rank and of {}", batch, prediction.timeline.batch_per_rank),
         fmt::format("predict --batch {}", batch));
  if (a.wire != b.wire)
    fail(fmt::format("{} and {} on the wire", name(a.wire), name(b.wire)),
         fmt::format("predict --wire {}", name(a.wire)));
  if (a.overlap != b.overlap)
    fail(fmt::format("overlap {} and {}", name(a.overlap), name(b.overlap)),
         fmt::format("predict --overlap {}", name(a.overlap)));
  check_buckets(a, b);
  check_iterations("run", run.timeline);
  check_iterations("prediction", prediction.timeline);
}

void check_follows(const TracedJob& job, const std::string& file,
                   const models::PlanDocument& document) {
  const models::Plan& plan = document.plan;
  const auto require = [&](const std::string& what, const auto& found, const auto& planned) {
    if (found == planned) return;
    throw InputError(
        {file},
        fmt::format("this did not follow the plan: {} {} in place of {}", what, found, planned),
        "give the plan that was run and predicted with --plan");
  };
  require("network", in_quotes(job.network), in_quotes(document.network));
  require("ranks:", job.ranks, plan.ranks);
  require("strategy", in_quotes(job.strategy), in_quotes(plan.strategy));
  require("wire type", name(job.wire), name(plan.wire));
  require("overlap", name(job.overlap), name(plan.overlap));
  require("streams:", job.streams, plan.streams);
  require("buckets:", job.buckets.size(), plan.buckets.size());
  for (std::size_t i = 0; i < plan.buckets.size(); ++i) {
    const models::Bucket& bucket = plan.buckets[i];
    const models::PlannedSchedule& planned = plan.schedules[to_size(bucket.schedule)];
    const models::TracedBucket& found = job.buckets[i];
    const auto first = to_size(bucket.first_gradient);
    const std::string in = fmt::format("bucket {} ", i);
    require(in + "begins with gradient", in_quotes(found.first_gradient),
            in_quotes(document.gradients[first].name));
    require(in + "gradients:", found.gradients, bucket.gradient_count);
    require(in + "bytes:", found.bytes.value(), plan.bytes(bucket).value());
    require(in + "all-reduce", in_quotes(found.schedule), in_quotes(planned.algorithm));
    require(in + "group:", found.group_size, planned.options.group_size);
    require(in + "segments:", found.segments, planned.options.segments);
    if (planned.options.servers > 0)
      require(in + "server:", found.server_rank.value_or(-1), planned.options.first_server);
  }
}

}  // namespace paceline::calibration
