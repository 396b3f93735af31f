// Tests: tests/simulator/step_engine_test.cc, tests/agreement/engine_agreement_test.cc.
//
// IMPLEMENTATION. The schedule is compiled once into runs of alike steps between positions
// (step_program.h); a message's time is affine in the bucket size, because loads and chunks are
// fractions of it. Evaluation keeps the finish time of each position.
#include "simulator/engine/step_engine.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::simulator {
StepEngine::StepEngine(const models::Schedule& schedule, const CommunicationCost& cost,
                       Collapse collapse, std::int64_t most_messages)
    : StepEngine(schedule, Routes(cost, schedule.ranks()), cost.gamma.value(), collapse,
                 most_messages) {}

StepEngine::StepEngine(const models::Schedule& schedule, const Routes& routes, double gamma_s,
                       Collapse collapse, std::int64_t most_messages)
    : StepEngine(std::make_shared<StepProgram>(
                     make_step_program(schedule, routes, collapse, most_messages)),
                 routes, gamma_s) {}

StepEngine::StepEngine(std::shared_ptr<const StepProgram> program, const Routes& routes,
                       double gamma_s)
    : program_(std::move(program)),
      ways_(program_->parts->kinds.times(routes)),
      gamma_s_(gamma_s) {}

// Times in a run of several steps are kept relative to its latest start, so that rounding does not
// grow with the time of day.
void StepEngine::evaluate(const StepProgram::Run& run, Evaluation& evaluation) const {
  const auto participants = program_->participants(run);
  if (participants.empty()) return;
  const auto at = [&](int position) -> Times& { return evaluation.times[to_size(position)]; };
  if (run.repeats == 1) {
    run_step(run, evaluation);
    for (const StepParts::Participant& p : participants)
      at(p.position).finish_s = at(p.position).done_s;
    return;
  }
  double base = -std::numeric_limits<double>::infinity();
  for (const StepParts::Participant& p : participants)
    base = std::max(base, at(p.position).finish_s);
  for (const StepParts::Participant& p : participants) at(p.position).finish_s -= base;
  double offset = base;
  for (int step = 0; step < run.repeats; ++step) {
    run_step(run, evaluation);
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();
    double latest = -std::numeric_limits<double>::infinity();
    for (const StepParts::Participant& p : participants) {
      Times& times = at(p.position);
      least = std::min(least, times.done_s - times.finish_s);
      most = std::max(most, times.done_s - times.finish_s);
      latest = std::max(latest, times.done_s);
      times.finish_s = times.done_s;
    }
    constexpr double rounding = 1e-14;
    if (most - least <= rounding * latest) {
      offset += most * (run.repeats - 1 - step);
      break;
    }
  }
  for (const StepParts::Participant& p : participants) at(p.position).finish_s += offset;
}

// Finds when each participant is done with one step.
void StepEngine::run_step(const StepProgram::Run& run, Evaluation& evaluation) const {
  Times* times = evaluation.times.data();
  const auto participants = program_->participants(run);
  for (const StepParts::Participant& p : participants) {
    Times& t = times[p.position];
    t.sent_s = t.finish_s;
    t.received_s = t.finish_s;
  }
  for (const StepParts::Message& m : program_->messages(run)) {
    const PathTime& way = evaluation.ways[to_size(m.kind)];
    Times& from = times[m.from];
    Times& to = times[m.to];
    const double end = std::max(from.finish_s, to.finish_s) + way.alpha_s + way.per_byte_s;
    from.sent_s = std::max(from.sent_s, end);
    to.received_s = std::max(to.received_s, end);
  }
  for (const StepParts::Participant& p : participants) {
    Times& t = times[p.position];
    t.done_s = std::max(t.sent_s, t.received_s + p.reduced * evaluation.reduction_s);
  }
}

Completion StepEngine::run_all(Bytes bucket, std::span<const Seconds> ready) const {
  const double bytes = program_->share * bucket.value();
  Evaluation evaluation{.ways = ways_, .reduction_s = gamma_s_ * bytes, .times = {}};
  for (PathTime& way : evaluation.ways) way.per_byte_s *= bytes;
  evaluation.times.resize(to_size(positions()));
  for (std::size_t i = 0; i < ready.size(); ++i) evaluation.times[i].finish_s = ready[i].value();
  for (const StepProgram::Run& run : program_->runs) evaluate(run, evaluation);
  std::vector<double> finish_s;
  finish_s.reserve(evaluation.times.size());
  for (const Times& times : evaluation.times) finish_s.push_back(times.finish_s);
  return completion_of(program_->parts->positions, finish_s);
}

Completion StepEngine::completion(Bytes bucket) const {
  return run_all(bucket, {});
}

Completion StepEngine::completion(Bytes bucket, std::span<const Seconds> ready) const {
  const Positions& positions = program_->parts->positions;
  PACELINE_ASSERT(!positions.is_collapsed() && ready.size() == to_size(positions.ranks()),
                  "ready times are for ranks that are not collapsed");
  return run_all(bucket, ready);
}

std::size_t StepEngine::prepared_messages() const {
  std::size_t messages = 0;
  for (const StepProgram::Run& run : program_->runs)
    messages += run.end_message - run.first_message;
  return messages;
}

}  // namespace paceline::simulator
