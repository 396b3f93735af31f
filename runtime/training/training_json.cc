// Tests: tests/cli/train_test.py (end to end), tests/cli/schemas_test.py.
#include "runtime/training/training_json.h"

#include <functional>
#include <optional>

#include "runtime/tensor/kernels.h"

namespace paceline::runtime {
namespace {

const Document<TrainingFacts>& facts_document() {
  using Facts = TrainingFacts;
  const auto recipe = [](auto member) {
    return [member](const Facts& facts) { return std::invoke(member, facts.recipe); };
  };
  const auto plan = [](auto member) {
    return [member](const Facts& facts) { return std::invoke(member, facts.plan); };
  };
  static const auto document =
      Document<Facts>()
          .add("model", &Facts::model)
          .add("data", &Facts::data)
          .add("recipe", recipe(&Recipe::name), any_text())
          .add("ranks", plan(&models::Plan::all_ranks), at_least(1))
          .add(
              "tensor", [](const Facts& facts) { return facts.plan.layout.tensor; }, at_least(1))
          .add("transport", &Facts::transport)
          .add("device", &Facts::device)
          .add("threads_per_rank", &Facts::threads_per_rank, at_least(1))
          .add("batch_per_rank", recipe(&Recipe::batch_per_rank), at_least(1))
          .add("precision", recipe(&Recipe::precision))
          .add("storage", recipe(&Recipe::working_type))
          .add("arithmetic", &Facts::arithmetic)
          .add("strategy", plan(&models::Plan::strategy))
          .add("wire_type", plan(&models::Plan::wire))
          .add("overlap", plan(&models::Plan::overlap))
          .add(
              "buckets", [](const Facts& facts) { return facts.plan.buckets.size(); }, at_least(1))
          .add("epochs_asked", recipe(&Recipe::epochs), not_negative())
          .add(
              "base_learning_rate",
              [](const Facts& facts) { return facts.recipe.learning_rate.base; }, not_negative())
          .add("seed", recipe(&Recipe::seed))
          .add("kernels", [](const Facts&) { return kernel_form(); })
          .add("resumed_from", &Facts::resumed_from, any_text())
          .add_constant("provenance", "measured");
  return document;
}

const Document<EpochReport>& epoch_document() {
  using Report = EpochReport;
  // A loss that is not a number is written as null, because JSON has no such numbers.
  const Shape loss = or_null(any_number());
  static const auto document =
      Document<Report>()
          .add(
              "epoch", [](const Report& report) { return report.epoch + 1; }, at_least(1))
          .add("training_loss", &Report::training_loss, loss)
          .add("training_accuracy", &Report::training_accuracy, not_negative())
          .add("test_loss", &Report::test_loss, loss)
          .add("test_accuracy", &Report::test_accuracy, not_negative())
          .add("test_accuracy_5", &Report::test_accuracy_5, not_negative())
          .add("skipped_steps", &Report::skipped)
          .add("training_s", &Report::training_time)
          .add("images_per_s", &Report::images)
          .add("exposed_communication_s", &Report::exposed)
          .add("waiting_for_input_s", &Report::input);
  return document;
}

std::string event_line(const char* event, Json members) {
  Json json = {{"event", event}};
  json.update(std::move(members));
  return json.in_one_line();
}

}  // namespace

std::string start_line(const TrainingFacts& facts) {
  return event_line("start", facts_document().json(facts));
}

std::string iteration_line(const IterationReport& r) {
  return event_line("iteration", {{"iteration", r.iteration},
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
                                  {"images_per_s", r.images.value()}});
}

std::string epoch_line(const EpochReport& report) {
  return event_line("epoch", epoch_document().json(report));
}

std::string checkpoint_line(const std::string& path, std::int64_t iteration) {
  return event_line("checkpoint", {{"path", path}, {"iteration", iteration}});
}

const Document<TrainingRecord>& training_document() {
  using Record = TrainingRecord;
  static const auto document =
      Document<Record>("paceline.training/1", "paceline train --json: a training run.")
          .include(&Record::facts, facts_document())
          .add("iterations", [](const Record& of) { return of.outcome.iterations; })
          .add("complete", [](const Record& of) { return of.outcome.complete; })
          .add_if_any(
              "stopped_by",
              [](const Record& of) {
                return of.outcome.stopped == StopReason::none
                           ? std::nullopt
                           : std::optional(signal_name(of.outcome.stopped));
              },
              one_of({"SIGINT", "SIGQUIT", "SIGHUP", "SIGUSR1", "SIGUSR2", "SIGTERM"}))
          .add(
              "epochs", [](const Record& of) { return of.outcome.epochs; }, epoch_document());
  return document;
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
