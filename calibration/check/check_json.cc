// Tests: tests/cli/check_test.py (end to end), tests/cli/schemas_test.py.
#include "calibration/check/check.h"

namespace paceline::calibration {
namespace {

const Document<CheckedPart>& part_document() {
  using Part = CheckedPart;
  static const auto document =
      Document<Part>()
          .add("part", &Part::part)
          .add("file", &Part::file)
          .add(
              "expected_s", [](const Part& part) { return part.expected.value; }, not_negative())
          .add(
              "expected_low_s", [](const Part& part) { return part.expected.low; }, not_negative())
          .add(
              "expected_high_s", [](const Part& part) { return part.expected.high; },
              not_negative())
          .add("measured_s", &Part::measured, not_negative())
          .add("measured_low_s", &Part::low, not_negative())
          .add("measured_high_s", &Part::high, not_negative())
          .add("verdict", &Part::verdict);
  return document;
}

const Document<CheckedCollective>& collective_document() {
  using Collective = CheckedCollective;
  static const auto document = Document<Collective>()
                                   .add("file", &Collective::file)
                                   .add("what", &Collective::what)
                                   .add("ranks", &Collective::ranks, at_least(2))
                                   .add("bandwidth_of_links", &Collective::bandwidth, positive())
                                   .add("sizes", &Collective::sizes, part_document(), 1);
  return document;
}

const Document<Explanation>& explanation_document() {
  static const auto document = Document<Explanation>()
                                   .add("part", &Explanation::part)
                                   .add("file", &Explanation::file)
                                   .add("time_s", &Explanation::time, positive())
                                   .add("how", &Explanation::how);
  return document;
}

const Document<Likely>& likely_document() {
  static const auto document = Document<Likely>()
                                   .add("what", &Likely::what)
                                   .add("because", &Likely::because)
                                   .add("look", &Likely::look);
  return document;
}

}  // namespace

const Document<Check>& check_document() {
  static const auto document =
      Document<Check>("paceline.check/1",
                      "paceline check --json: what was measured of a cluster, beside what is "
                      "expected of it.")
          .add("is_slow", &Check::is_slow)
          .add("verdict", &Check::verdict)
          .add_if_any("iteration", &Check::iteration, part_document())
          .add("gap_s", &Check::gap, any_number())
          .add("parts", &Check::parts, part_document())
          .add("collectives", &Check::collectives, collective_document())
          .add("differences", &Check::differences)
          .add("explanations", &Check::explanations, explanation_document())
          .add("likely", &Check::likely, likely_document())
          .add("advice", &Check::advice);
  return document;
}

}  // namespace paceline::calibration
