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
    : program_(std::move(program)), ways_(program_->kinds.times(routes)), gamma_s_(gamma_s) {}

// Times are kept relative to the latest start of the run, so that rounding does not grow with the
// time of day.
void StepEngine::evaluate(const StepProgram::Run& run, Evaluation& at) const {
  const std::span messages =
      std::span(program_->messages).subspan(run.first_message, run.end_message - run.first_message);
  const std::span participants =
      std::span(program_->participants)
          .subspan(run.first_participant, run.end_participant - run.first_participant);
  if (participants.empty()) return;
  double* finish_s = at.finish_s.data();
  double* sent_s = at.sent_s.data();
  double* received_s = at.received_s.data();
  double base = -std::numeric_limits<double>::infinity();
  for (const StepProgram::Participant& p : participants)
    base = std::max(base, finish_s[p.position]);
  for (const StepProgram::Participant& p : participants) finish_s[p.position] -= base;

  double offset = base;
  for (int step = 0; step < run.repeats; ++step) {
    for (const StepProgram::Participant& p : participants) {
      sent_s[p.position] = finish_s[p.position];
      received_s[p.position] = finish_s[p.position];
    }
    for (const StepProgram::Message& m : messages) {
      const WayTime& way = at.ways[static_cast<std::size_t>(m.kind)];
      const double end = std::max(finish_s[m.from], finish_s[m.to]) + way.alpha_s + way.per_byte_s;
      sent_s[m.from] = std::max(sent_s[m.from], end);
      received_s[m.to] = std::max(received_s[m.to], end);
    }
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();
    double latest = -std::numeric_limits<double>::infinity();
    for (const StepProgram::Participant& p : participants) {
      const double done =
          std::max(sent_s[p.position], received_s[p.position] + p.reduced * at.reduction_s);
      least = std::min(least, done - finish_s[p.position]);
      most = std::max(most, done - finish_s[p.position]);
      latest = std::max(latest, done);
      finish_s[p.position] = done;
    }
    constexpr double rounding = 1e-14;
    if (most - least <= rounding * latest) {
      offset += most * (run.repeats - 1 - step);
      break;
    }
  }
  for (const StepProgram::Participant& p : participants) finish_s[p.position] += offset;
}

Completion StepEngine::run_all(Bytes bucket, std::vector<double> finish_s) const {
  Evaluation evaluation{.ways = ways_,
                        .reduction_s = gamma_s_ * bucket.value(),
                        .finish_s = std::move(finish_s),
                        .sent_s = {},
                        .received_s = {}};
  for (WayTime& way : evaluation.ways) way.per_byte_s *= bucket.value();
  evaluation.sent_s.resize(evaluation.finish_s.size());
  evaluation.received_s.resize(evaluation.finish_s.size());
  for (const StepProgram::Run& run : program_->runs) evaluate(run, evaluation);
  return completion_of(program_->positions, evaluation.finish_s);
}

Completion StepEngine::completion(Bytes bucket) const {
  return run_all(bucket, std::vector<double>(static_cast<std::size_t>(positions())));
}

Completion StepEngine::completion(Bytes bucket, std::span<const Seconds> ready) const {
  PACELINE_ASSERT(!program_->positions.is_collapsed() &&
                      ready.size() == static_cast<std::size_t>(program_->positions.ranks()),
                  "ready times are for ranks that are not collapsed");
  std::vector<double> finish_s;
  finish_s.reserve(ready.size());
  for (const Seconds time : ready) finish_s.push_back(time.value());
  return run_all(bucket, std::move(finish_s));
}

}  // namespace paceline::simulator
