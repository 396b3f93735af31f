// Tests: tests/cli/compare_test.py (end to end), tests/cli/schemas_test.py.
#include "calibration/compare/comparison_json.h"

#include <optional>
#include <utility>
#include <vector>

#include "calibration/compare/verdict.h"

namespace paceline::calibration {
namespace {

const Document<Compared>& times_document() {
  const auto end = [](Spread Compared::*side, Seconds Spread::*member) {
    return [side, member](const Compared& times) {
      const Spread& spread = times.*side;
      return spread.exists() ? std::optional(spread.*member) : std::nullopt;
    };
  };
  static const auto document =
      Document<Compared>()
          .add("measured_s", end(&Compared::run, &Spread::median), or_null(any_number()))
          .add("measured_low_s", end(&Compared::run, &Spread::least), or_null(any_number()))
          .add("measured_high_s", end(&Compared::run, &Spread::most), or_null(any_number()))
          .add("predicted_s", end(&Compared::prediction, &Spread::median), or_null(any_number()))
          .add("difference_s", &Compared::difference, or_null(any_number()))
          .add("relative_difference", &Compared::relative);
  return document;
}

struct SideLine {
  const ComparedSide& side;
  const std::string& file;
};

const Document<SideLine>& side_document() {
  using Line = SideLine;
  static const auto document =
      Document<Line>()
          .add("file", [](const Line& line) { return line.file; })
          .add(
              "title", [](const Line& line) { return line.side.title; }, any_text())
          .add(
              "provenance", [](const Line& line) { return line.side.provenance; },
              name_of<Provenance>())
          .add("rank", [](const Line& line) { return line.side.rank; })
          .add("iterations", [](const Line& line) { return line.side.iterations; })
          .add("complete_iterations", [](const Line& line) { return line.side.complete; });
  return document;
}

const Document<Comparison>& interval_document() {
  static const auto document =
      Document<Comparison>()
          .add(
              "low_s", [](const Comparison& of) { return of.interval->low; }, positive())
          .add(
              "high_s", [](const Comparison& of) { return of.interval->high; }, positive())
          .add("verdict", [](const Comparison& of) {
            return verdict(of.iteration.run.median, of.interval->low, of.interval->high);
          });
  return document;
}

const Document<ComparedPart>& part_document() {
  static const auto document = Document<ComparedPart>()
                                   .add("part", &ComparedPart::part)
                                   .include(&ComparedPart::time, times_document());
  return document;
}

const Document<ComparedBucket>& bucket_document() {
  using Bucket = ComparedBucket;
  static const auto document = Document<Bucket>()
                                   .add("bucket", &Bucket::index)
                                   .add("first_gradient", &Bucket::first_gradient)
                                   .add("gradients", &Bucket::gradients, at_least(1))
                                   .add("bytes", &Bucket::bytes)
                                   .add("ready", &Bucket::ready, times_document())
                                   .add("wait", &Bucket::wait, times_document())
                                   .add("cast", &Bucket::cast, times_document())
                                   .add("pack", &Bucket::pack, times_document())
                                   .add("transfer", &Bucket::transfer, times_document())
                                   .add("unpack", &Bucket::unpack, times_document())
                                   .add("exposed", &Bucket::exposed, times_document());
  return document;
}

const Document<ComparedLayer>& layer_document() {
  using Layer = ComparedLayer;
  static const auto document = Document<Layer>()
                                   .add("layer", &Layer::name)
                                   .add("kind", &Layer::kind, any_text())
                                   .add("forward", &Layer::forward, times_document())
                                   .add("backward", &Layer::backward, times_document());
  return document;
}

struct OneSidedLine {
  const Comparison& comparison;
  const OneSided& only;
};

const Document<OneSidedLine>& one_sided_document() {
  using Line = OneSidedLine;
  static const auto document =
      Document<Line>()
          .add(
              "provenance",
              [](const Line& line) {
                return (line.only.is_run ? line.comparison.run : line.comparison.prediction)
                    .provenance;
              },
              name_of<Provenance>())
          .add("task", [](const Line& line) { return line.only.task; })
          .add("tasks", [](const Line& line) { return line.only.tasks; })
          .add("time_s", [](const Line& line) { return line.only.time; });
  return document;
}

}  // namespace

const Document<ComparisonOfFiles>& comparison_document() {
  using Of = ComparisonOfFiles;
  static const auto comparison = [](const Of& of) -> const Comparison& { return of.comparison; };
  static const auto job = [](auto member) {
    return [member](const Of& of) { return std::invoke(member, of.comparison.job); };
  };
  using models::TracedJob;
  static const auto document =
      Document<Of>("paceline.comparison/1",
                   "paceline compare --json: where a run and its prediction differ.")
          .add(
              "run",
              [](const Of& of) -> SideLine {
                return {of.comparison.run, of.files.run};
              },
              side_document())
          .add(
              "prediction",
              [](const Of& of) -> SideLine {
                return {of.comparison.prediction, of.files.prediction};
              },
              side_document())
          .add("model", job(&TracedJob::network))
          .add("ranks", job(&TracedJob::ranks), at_least(1))
          .add("strategy", job(&TracedJob::strategy))
          .add("wire_type", job(&TracedJob::wire))
          .add("overlap", job(&TracedJob::overlap))
          .add("iteration", through(comparison, &Comparison::iteration), times_document())
          .add(
              "predicted_interval",
              [](const Of& of) { return of.comparison.interval ? &of.comparison : nullptr; },
              interval_document())
          .add("parts", through(comparison, &Comparison::parts), part_document(), 1)
          .add("buckets", through(comparison, &Comparison::buckets), bucket_document())
          .add("layers", through(comparison, &Comparison::layers), layer_document())
          .add(
              "one_sided",
              [](const Of& of) {
                std::vector<OneSidedLine> lines;
                for (const OneSided& only : of.comparison.one_sided)
                  lines.push_back({of.comparison, only});
                return lines;
              },
              one_sided_document())
          .add("notes", through(comparison, &Comparison::notes));
  return document;
}

}  // namespace paceline::calibration
