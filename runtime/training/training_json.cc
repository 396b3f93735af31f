// Tests: tests/cli/train_test.py (end to end).
#include "runtime/training/training_json.h"

#include "models/base/json.h"
#include "runtime/tensor/kernels.h"

namespace paceline::runtime {
namespace {

Json facts_json(const TrainingFacts& facts) {
  return {{"model", facts.model},
          {"data", facts.data},
          {"recipe", facts.recipe.name},
          {"ranks", facts.plan.ranks},
          {"transport", facts.transport},
          {"device", facts.device},
          {"threads_per_rank", facts.threads_per_rank},
          {"batch_per_rank", facts.recipe.batch_per_rank},
          {"precision", name(facts.recipe.precision)},
          {"storage", name(facts.recipe.working_type())},
          {"arithmetic", name(facts.arithmetic)},
          {"strategy", facts.plan.strategy},
          {"wire_type", name(facts.plan.wire)},
          {"overlap", name(facts.plan.overlap)},
          {"buckets", facts.plan.buckets.size()},
          {"epochs_asked", facts.recipe.epochs},
          {"base_learning_rate", facts.recipe.learning_rate.base},
          {"seed", facts.recipe.seed},
          {"kernels", kernel_form()},
          {"resumed_from", facts.resumed_from},
          {"provenance", "measured"}};
}

Json epoch_json(const EpochReport& r) {
  return {{"epoch", r.epoch + 1},
          {"training_loss", r.training_loss},
          {"training_accuracy", r.training_accuracy},
          {"test_loss", r.test_loss},
          {"test_accuracy", r.test_accuracy},
          {"test_accuracy_5", r.test_accuracy_5},
          {"skipped_steps", r.skipped},
          {"training_s", r.training_time.value()},
          {"images_per_s", r.images.value()},
          {"exposed_communication_s", r.exposed.value()},
          {"waiting_for_input_s", r.input.value()}};
}

}  // namespace

std::string start_line(const TrainingFacts& facts) {
  Json json = {{"event", "start"}};
  json.update(facts_json(facts));
  return json.in_one_line();
}

std::string iteration_line(const IterationReport& r) {
  const Json json = {{"event", "iteration"},
                     {"iteration", r.iteration},
                     {"epoch", r.epoch + 1},
                     {"batch", r.batch},
                     {"batch_per_rank", r.batch_per_rank},
                     {"loss", r.loss},
                     {"accuracy", r.accuracy},
                     {"learning_rate", r.learning_rate},
                     {"loss_scale", r.loss_scale},
                     {"overflow", r.overflow},
                     {"iteration_s", r.time.value()},
                     {"exposed_communication_s", r.exposed.value()},
                     {"waiting_for_input_s", r.input.value()},
                     {"images_per_s", r.images.value()}};
  return json.in_one_line();
}

std::string epoch_line(const EpochReport& report) {
  Json json = {{"event", "epoch"}};
  json.update(epoch_json(report));
  return json.in_one_line();
}

std::string checkpoint_line(const std::string& path, std::int64_t iteration) {
  return Json{{"event", "checkpoint"}, {"path", path}, {"iteration", iteration}}.in_one_line();
}

std::string to_json(const TrainingFacts& facts, const TrainingOutcome& outcome) {
  Json document = {{"schema", "paceline.training/1"}};
  document.update(facts_json(facts));
  document["iterations"] = outcome.iterations;
  document["complete"] = outcome.complete;
  if (outcome.stopped != StopReason::none) document["stopped_by"] = signal_name(outcome.stopped);
  document["epochs"] = Json::array();
  for (const EpochReport& epoch : outcome.epochs) document["epochs"].push_back(epoch_json(epoch));
  return document.indented();
}

std::string_view signal_name(StopReason reason) {
  switch (reason) {
    case StopReason::none:
      return "";
    case StopReason::interrupted:
      return "SIGINT";
    case StopReason::quit:
      return "SIGQUIT";
    case StopReason::hung_up:
      return "SIGHUP";
    case StopReason::warned:
      return "SIGUSR1";
    case StopReason::warned_2:
      return "SIGUSR2";
    case StopReason::terminated:
      return "SIGTERM";
  }
  return "";
}

}  // namespace paceline::runtime
