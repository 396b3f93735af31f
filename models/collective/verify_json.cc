// Tests: tests/models/verify_json_test.cc, tests/cli/command_test.py.
#include "models/collective/verify_json.h"

#include "models/base/json.h"

namespace paceline::models {

std::string to_json(const ScheduleProof& proof) {
  Json json = {{"schema", "paceline.proof/1"},
               {"schedule", proof.schedule},
               {"collective", name(proof.collective)},
               {"ranks", proof.ranks},
               {"steps", proof.steps},
               {"proved", !proof.fault.has_value()},
               {"chunk_counts", proof.chunk_counts}};
  if (const auto& fault = proof.fault) {
    json["counterexample"] = {{"fault", name(fault->fault)},  {"step", fault->step},
                              {"rank", fault->rank},          {"chunk", fault->chunk},
                              {"chunks", proof.fault_chunks}, {"why", fault->why}};
  } else {
    json["transfers"] = proof.transfers;
  }
  return json.indented();
}

}  // namespace paceline::models
