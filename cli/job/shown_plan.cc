// Tests: tests/cli/plan_test.py, tests/cli/tune_test.py (end to end).
#include "cli/job/shown_plan.h"

#include <functional>

#include "cli/job/prediction_json.h"
#include "models/base/to_size.h"
#include "models/plan/plan.h"

namespace paceline::job {
namespace {

// An alternative with the period of the plan that it would change.
struct AlternativeLine {
  const simulator::Alternative& other;
  Seconds period;
};

const Document<simulator::PlanChange::Part>& part_document() {
  using Part = simulator::PlanChange::Part;
  static const auto document =
      Document<Part>()
          .add("gradients", &Part::gradients, at_least(1))
          .add("all_reduce", [](const Part& part) { return models::described(part.all_reduce); });
  return document;
}

const Document<AlternativeLine>& alternative_document() {
  using Line = AlternativeLine;
  static const auto document =
      Document<Line>()
          .add("change", [](const Line& line) { return line.other.change.kind; })
          .add(
              "buckets", [](const Line& line) { return line.other.change.parts; }, part_document(),
              1)
          .add(
              "iteration_s", [](const Line& line) { return line.other.period; }, positive())
          .add("loss", [](const Line& line) { return line.other.period / line.period - 1; })
          .add("alike", [](const Line& line) { return line.other.alike; });
  return document;
}

struct BucketLine {
  const PlannedBuckets& of;
  std::size_t index;

  [[nodiscard]] const models::Bucket& bucket() const { return of.plan.buckets[index]; }
  [[nodiscard]] const simulator::BucketTravel& times() const { return of.travel.buckets[index]; }
  [[nodiscard]] const std::string& gradient(int number) const {
    return of.network.gradients[to_size(number)].name;
  }
  [[nodiscard]] std::vector<AlternativeLine> alternatives() const {
    std::vector<AlternativeLine> lines;
    if (index < of.others.size())
      for (const simulator::Alternative& other : of.others[index])
        lines.push_back({other, of.travel.period});
    return lines;
  }
};

const Document<BucketLine>& bucket_document() {
  using Line = BucketLine;
  static const auto document =
      Document<Line>()
          .add("first",
               [](const Line& line) { return line.gradient(line.bucket().first_gradient); })
          .add("last",
               [](const Line& line) {
                 return line.gradient(line.bucket().first_gradient + line.bucket().gradient_count -
                                      1);
               })
          .add(
              "gradients", [](const Line& line) { return line.bucket().gradient_count; },
              at_least(1))
          .add("bytes", [](const Line& line) { return line.of.plan.bytes(line.bucket()); })
          .add("all_reduce",
               [](const Line& line) {
                 const auto schedule = to_size(line.bucket().schedule);
                 return models::described(line.of.plan.schedules[schedule]);
               })
          .add("ready_s", [](const Line& line) { return line.times().ready; })
          .add("start_s", [](const Line& line) { return line.times().start; })
          .add("end_s", [](const Line& line) { return line.times().end; })
          .add("exposed_s", [](const Line& line) { return line.times().exposed; })
          .add("alternatives", &Line::alternatives, alternative_document());
  return document;
}

// A plan of a network, for its buckets.
struct ShownLine {
  const ShownPlan& shown;
  const models::NetworkWork& network;
};

const Document<ShownLine>& plan_document() {
  using Line = ShownLine;
  static const auto document =
      Document<Line>()
          .add("strategy", [](const Line& line) { return line.shown.name; })
          .add("wire_type", [](const Line& line) { return line.shown.plan.wire; })
          .add("overlap", [](const Line& line) { return line.shown.plan.overlap; })
          .add(
              "iteration_s", [](const Line& line) { return line.shown.travel.period; }, positive())
          .add("timed_by", [](const Line& line) { return line.shown.timed_by; })
          .add("alternatives_complete",
               [](const Line& line) {
                 return line.shown.others ? std::optional(line.shown.others->is_complete)
                                          : std::nullopt;
               })
          .include(
              [](const Line& line) -> PlannedBuckets {
                static const std::vector<std::vector<simulator::Alternative>> none;
                return {line.shown.plan, line.network, line.shown.travel,
                        line.shown.others ? line.shown.others->of_buckets : none};
              },
              buckets_document());
  return document;
}

std::vector<ShownLine> lines_of(const ShownPlans& plans) {
  std::vector<ShownLine> lines;
  for (const ShownPlan& plan : plans.plans) lines.push_back({plan, plans.network.work});
  return lines;
}

}  // namespace

const Document<PlannedBuckets>& buckets_document() {
  static const auto document = Document<PlannedBuckets>().add(
      "buckets",
      [](const PlannedBuckets& of) {
        std::vector<BucketLine> lines;
        for (std::size_t i = 0; i < of.plan.buckets.size(); ++i) lines.push_back({of, i});
        return lines;
      },
      bucket_document(), 1);
  return document;
}

const Document<ShownPlans>& plan_travel_document() {
  using Plans = ShownPlans;
  static const auto document =
      Document<Plans>(
          "paceline.plan_travel/1",
          "paceline show plan --json: plans of strategies, and when each of their buckets "
          "travels.")
          .include(
              [](const Plans& of) -> AskedJob {
                return {of.job, of.network.work, of.ranks};
              },
              asked_document())
          .add_constant("provenance", "predicted")
          .add("plans", lines_of, plan_document(), 1);
  return document;
}

}  // namespace paceline::job
