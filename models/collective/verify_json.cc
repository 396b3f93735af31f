// Tests: tests/models/verify_json_test.cc, tests/cli/command_test.py.
#include "models/collective/verify_json.h"

namespace paceline::models {
namespace {

const Document<ScheduleProof>& counterexample_document() {
  using Of = ScheduleProof;
  const auto fault = [](auto member) {
    return [member](const Of& proof) { return std::invoke(member, *proof.fault); };
  };
  static const auto document = Document<Of>()
                                   .add("fault", fault(&Counterexample::fault))
                                   .add("step", fault(&Counterexample::step), any_integer())
                                   .add("rank", fault(&Counterexample::rank), any_integer())
                                   .add("chunk", fault(&Counterexample::chunk), any_integer())
                                   .add("chunks", &Of::fault_chunks, at_least(1))
                                   .add("why", fault(&Counterexample::why));
  return document;
}

}  // namespace

const Document<ScheduleProof>& proof_document() {
  using Of = ScheduleProof;
  static const auto document =
      Document<Of>("paceline.proof/1",
                   "paceline verify --json: a schedule is proved, or a counterexample.")
          .add("schedule", &Of::schedule)
          .add("collective", &Of::collective)
          .add("ranks", &Of::ranks, at_least(1))
          .add("steps", &Of::steps)
          .add("proved", [](const Of& proof) { return !proof.fault.has_value(); })
          .add("chunk_counts", &Of::chunk_counts, list_of(at_least(1), 1))
          .add_if_any(
              "counterexample", [](const Of& proof) { return proof.fault ? &proof : nullptr; },
              counterexample_document())
          .add_if_any("transfers", [](const Of& proof) {
            return proof.fault ? std::nullopt : std::optional(proof.transfers);
          });
  return document;
}

}  // namespace paceline::models
