// Tests: tests/experiments/convergence_test.cc.
#include "experiments/convergence/convergence_json.h"

#include <cmath>
#include <functional>

namespace paceline::experiments {

std::string_view verdict(const ClaimOutcome& outcome) {
  if (outcome.arm.runs < 2 || outcome.against.runs < 2) return "one run says nothing";
  if (std::abs(outcome.difference) <= outcome.noise) return "within the noise";
  return outcome.difference > 0 ? "better" : "worse";
}

namespace {

const Document<ClaimOutcome>& claim_document() {
  using Of = ClaimOutcome;
  const auto claim = [](auto member) {
    return [member](const Of& of) { return std::invoke(member, *of.claim); };
  };
  const Shape number = or_null(any_number());
  static const auto document =
      Document<Of>()
          .add("source", claim(&Claim::source))
          .add("statement", claim(&Claim::statement))
          .add("arm", claim(&Claim::arm))
          .add("against", claim(&Claim::against))
          .add("arm_mean", through(&Of::arm, &Spread::mean), number)
          .add("arm_deviation", through(&Of::arm, &Spread::deviation), number)
          .add("arm_runs", through(&Of::arm, &Spread::runs))
          .add("against_mean", through(&Of::against, &Spread::mean), number)
          .add("against_deviation", through(&Of::against, &Spread::deviation), number)
          .add("against_runs", through(&Of::against, &Spread::runs))
          .add("difference", &Of::difference, number)
          .add("two_standard_errors", &Of::noise, number)
          .add("verdict", verdict,
               one_of({"one run says nothing", "within the noise", "better", "worse"}))
          .add_constant("provenance", "measured");
  return document;
}

}  // namespace

const Document<ConvergenceRun>& run_document() {
  using Run = ConvergenceRun;
  // A loss that is not a number is written as null, because JSON has no such numbers.
  const Shape loss = or_null(any_number());
  static const auto document =
      Document<Run>()
          .add("arm", &Run::arm)
          .add("seed", &Run::seed)
          .add("epochs", &Run::epochs, not_negative())
          .add("test_accuracy", &Run::test_accuracy, not_negative())
          .add("test_loss", &Run::test_loss, loss)
          .add("training_loss", &Run::training_loss, loss)
          .add("skipped_steps", &Run::skipped)
          .add("images_per_s", &Run::images_per_s, not_negative())
          .add("test_accuracy_by_epoch", &Run::accuracies, list_of(not_negative()))
          .add_constant("provenance", "measured");
  return document;
}

const Document<std::vector<ConvergenceRun>>& convergence_document() {
  static const auto document =
      Document<std::vector<ConvergenceRun>>("paceline.convergence/1",
                                            "paceline reproduce convergence --json.")
          .add("claims", outcomes, claim_document())
          .add("runs", std::identity(), run_document());
  return document;
}

std::string to_json_line(const ConvergenceRun& run) {
  return run_document().json(run).in_one_line() + "\n";
}

}  // namespace paceline::experiments
