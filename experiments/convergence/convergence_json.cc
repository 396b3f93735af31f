// Tests: tests/experiments/convergence_test.cc.
#include "experiments/convergence/convergence_json.h"

#include <cmath>

namespace paceline::experiments {

std::string_view verdict(const ClaimOutcome& outcome) {
  if (outcome.arm.runs < 2 || outcome.against.runs < 2) return "one run says nothing";
  if (std::abs(outcome.difference) <= outcome.noise) return "within the noise";
  return outcome.difference > 0 ? "better" : "worse";
}

std::string to_json(const std::vector<ConvergenceRun>& runs) {
  Json claims = Json::array();
  for (const ClaimOutcome& o : outcomes(runs)) {
    claims.push_back({{"source", o.claim->source},
                      {"statement", o.claim->statement},
                      {"arm", o.claim->arm},
                      {"against", o.claim->against},
                      {"arm_mean", o.arm.mean},
                      {"arm_deviation", o.arm.deviation},
                      {"arm_runs", o.arm.runs},
                      {"against_mean", o.against.mean},
                      {"against_deviation", o.against.deviation},
                      {"against_runs", o.against.runs},
                      {"difference", o.difference},
                      {"two_standard_errors", o.noise},
                      {"verdict", verdict(o)},
                      {"provenance", "measured"}});
  }
  Json all = Json::array();
  for (const ConvergenceRun& run : runs) all.push_back(json_of(run));
  const Json document = {{"schema", "paceline.convergence/1"}, {"claims", claims}, {"runs", all}};
  return document.indented();
}

}  // namespace paceline::experiments
