// Tests: tests/simulator/step_engine_test.cc, tests/agreement/engine_agreement_test.cc.
//
// IMPLEMENTATION. The schedule is compiled once into runs of alike steps between positions; a
// message's time is affine in the bucket size, because loads and chunks are fractions of it.
// Evaluation keeps the finish time of each position. The load of a link is the sum over the messages
// of the positions, each by its weight there (PreparedRun::weights).
#include "simulator/engine/step_engine.h"

#include <algorithm>
#include <limits>

#include "models/base/error.h"
#include "simulator/engine/equivalence.h"
#include "simulator/engine/prepare.h"

namespace paceline::simulator {

StepEngine::StepEngine(const models::Schedule& schedule, const CommunicationCost& cost,
                       Collapse collapse, std::int64_t most_messages)
    : positions_(schedule.ranks()) {
  const Routes routes(cost, schedule.ranks());
  if (collapse != Collapse::none) positions_ = positions_of({&schedule, 1}, routes);
  LinkNumbers numbers(routes, positions_);
  std::vector<double> load_s;       // of each numbered link, for each byte of the bucket
  std::vector<std::size_t> number;  // of each of the run's links
  const auto add = [&](const PreparedRun& prepared) {
    Run run{.first_message = messages_.size(),
            .first_participant = participants_.size(),
            .repeats = prepared.repeats};
    number.clear();
    for (const int link : prepared.links)
      number.push_back(static_cast<std::size_t>(numbers.of(link)));
    load_s.assign(static_cast<std::size_t>(numbers.count()), 0);
    for (const PreparedRun::Message& m : prepared.messages) {
      for (std::size_t i = m.first_link; i < m.end_link; ++i) {
        const int link = prepared.links[i];
        load_s[number[i]] += m.fraction * routes.beta_s(link) * prepared.weights[i];
      }
    }
    for (const PreparedRun::Message& m : prepared.messages) {
      double per_byte_s = 0;
      for (std::size_t i = m.first_link; i < m.end_link; ++i) {
        const int link = prepared.links[i];
        per_byte_s =
            std::max(per_byte_s,
                     routes.is_shared(link) ? load_s[number[i]] : m.fraction * routes.beta_s(link));
      }
      messages_.push_back({m.from, m.to, m.alpha_s, per_byte_s});
    }
    for (const PreparedRun::Participant& p : prepared.participants)
      participants_.push_back({p.position, p.reduced * cost.gamma.value()});
    run.end_message = messages_.size();
    run.end_participant = participants_.size();
    runs_.push_back(run);
    return true;
  };
  for_each_run(schedule, routes, positions_, add, most_messages);
}

// finish_s and scratch are over positions; scratch is at least twice as long. Times are kept
// relative to the latest start of the run, so that rounding does not grow with the time of day.
void StepEngine::evaluate(const Run& run, double bucket_bytes, std::vector<double>& finish_s,
                          std::vector<double>& scratch) const {
  const std::span messages(messages_.begin() + static_cast<std::ptrdiff_t>(run.first_message),
                           messages_.begin() + static_cast<std::ptrdiff_t>(run.end_message));
  const std::span participants(
      participants_.begin() + static_cast<std::ptrdiff_t>(run.first_participant),
      participants_.begin() + static_cast<std::ptrdiff_t>(run.end_participant));
  if (participants.empty()) return;
  double* sent = scratch.data();
  double* received = scratch.data() + positions_.count();
  double base = finish_s[static_cast<std::size_t>(participants.front().position)];
  for (const Participant& p : participants)
    base = std::max(base, finish_s[static_cast<std::size_t>(p.position)]);
  for (const Participant& p : participants) finish_s[static_cast<std::size_t>(p.position)] -= base;

  double offset = base;
  for (int step = 0; step < run.repeats; ++step) {
    for (const Participant& p : participants) {
      const auto i = static_cast<std::size_t>(p.position);
      sent[i] = finish_s[i];
      received[i] = finish_s[i];
    }
    for (const Message& m : messages) {
      const auto from = static_cast<std::size_t>(m.from);
      const auto to = static_cast<std::size_t>(m.to);
      const double end =
          std::max(finish_s[from], finish_s[to]) + m.alpha_s + m.per_byte_s * bucket_bytes;
      sent[from] = std::max(sent[from], end);
      received[to] = std::max(received[to], end);
    }
    double least = std::numeric_limits<double>::infinity();
    double most = -std::numeric_limits<double>::infinity();
    double latest = -std::numeric_limits<double>::infinity();
    for (const Participant& p : participants) {
      const auto i = static_cast<std::size_t>(p.position);
      const double done = std::max(sent[i], received[i] + p.reduce_per_byte_s * bucket_bytes);
      least = std::min(least, done - finish_s[i]);
      most = std::max(most, done - finish_s[i]);
      latest = std::max(latest, done);
      finish_s[i] = done;
    }
    constexpr double rounding = 1e-14;
    if (most - least <= rounding * latest) {
      offset += most * (run.repeats - 1 - step);
      break;
    }
  }
  for (const Participant& p : participants)
    finish_s[static_cast<std::size_t>(p.position)] += offset;
}

Completion StepEngine::run_all(Bytes bucket, std::vector<double> finish_s) const {
  std::vector<double> scratch(2 * finish_s.size());
  for (const Run& run : runs_) evaluate(run, bucket.value(), finish_s, scratch);
  return completion_of(positions_, finish_s);
}

Completion StepEngine::completion(Bytes bucket) const {
  return run_all(bucket, std::vector<double>(static_cast<std::size_t>(positions_.count())));
}

Completion StepEngine::completion(Bytes bucket, std::span<const Seconds> ready) const {
  PACELINE_ASSERT(
      !positions_.is_collapsed() && ready.size() == static_cast<std::size_t>(positions_.ranks()),
      "ready times are for ranks that are not collapsed");
  std::vector<double> finish_s;
  finish_s.reserve(ready.size());
  for (const Seconds time : ready) finish_s.push_back(time.value());
  return run_all(bucket, std::move(finish_s));
}

}  // namespace paceline::simulator
