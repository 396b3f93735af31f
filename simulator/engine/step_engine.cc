// Tests: tests/simulator/step_engine_test.cc, tests/agreement/engine_agreement_test.cc.
//
// IMPLEMENTATION. The schedule is compiled once into runs of alike steps between positions; a
// message's time is affine in the bucket size, because loads and chunks are fractions of it.
// Evaluation keeps the finish time of each position. Loads: all positions stand for equally
// many ranks, so what the members of one position receive in a step is what the positions send
// to it, and ingress loads can be summed over the messages of the positions alone.
#include "simulator/engine/step_engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "models/base/error.h"
#include "models/collective/enumerate.h"
#include "simulator/engine/equivalence.h"

namespace paceline::simulator {
namespace {

constexpr std::size_t most_messages = 8'000'000;

// The NICs of the nodes in which the positions lie, as links that a step's bytes load.
class NicLoads {
 public:
  NicLoads(const CommunicationCost& cost, int positions)
      : cost_(cost), per_node_(cost.nic_use == models::NicUse::striped ? 1 : cost.nics_per_node) {
    const int nodes = (positions + cost.ranks_per_node - 1) / cost.ranks_per_node;
    out_.resize(static_cast<std::size_t>(nodes * per_node_));
    in_.resize(out_.size());
  }
  void add(int from, int to, double fraction) {
    out_[index(from)] += fraction;
    in_[index(to)] += fraction;
  }
  // Seconds for each byte of the bucket that a message between the two must wait for its NICs.
  [[nodiscard]] double per_byte_s(int from, int to) const {
    const double nics = cost_.nic_use == models::NicUse::striped ? cost_.nics_per_node : 1;
    return std::max(out_[index(from)], in_[index(to)]) * cost_.nic.beta.value() / nics;
  }
  void clear() {
    std::fill(out_.begin(), out_.end(), 0.0);
    std::fill(in_.begin(), in_.end(), 0.0);
  }

 private:
  [[nodiscard]] std::size_t index(int position) const {
    const int node = position / cost_.ranks_per_node;
    const int slot = position % cost_.ranks_per_node;
    return static_cast<std::size_t>(node * per_node_ + slot * per_node_ / cost_.ranks_per_node);
  }

  const CommunicationCost& cost_;
  int per_node_;
  std::vector<double> out_;
  std::vector<double> in_;
};

}  // namespace

StepEngine::StepEngine(const models::Schedule& schedule, const CommunicationCost& cost,
                       Collapse collapse)
    : ranks_(schedule.ranks()),
      positions_(collapse == Collapse::none ? schedule.ranks()
                                            : collapsed_ranks(schedule, cost.ranks_per_node)) {
  for (int step = 0; step < schedule.steps();) {
    const int repeats = schedule.repeats(step);
    add_run(schedule, step, repeats, cost);
    step += repeats;
  }
}

void StepEngine::add_run(const models::Schedule& schedule, int step, int repeats,
                         const CommunicationCost& cost) {
  struct Found {
    int from;
    int to;
    double fraction;
    bool leaves_node;
  };
  const auto size = static_cast<std::size_t>(positions_);
  std::vector<Found> found;
  std::vector<double> out(size);
  std::vector<double> in(size);
  std::vector<double> reduced(size);
  NicLoads nics(cost, positions_);
  const auto see = [&](const models::Transfer<double>& t) {
    if (messages_.size() + found.size() == most_messages) {
      throw InputError(
          fmt::format("{} ranks have too little in common to be timed as a few", ranks_),
          fmt::format("choose a multiple of the {} ranks of a node, and for halving-doubling a "
                      "power of two",
                      cost.ranks_per_node));
    }
    const int to = t.to % positions_;
    const bool leaves_node = t.from / cost.ranks_per_node != t.to / cost.ranks_per_node;
    found.push_back({t.from, to, t.span.size, leaves_node});
    out[static_cast<std::size_t>(t.from)] += t.span.size;
    in[static_cast<std::size_t>(to)] += t.span.size;
    if (t.reduce) reduced[static_cast<std::size_t>(to)] += t.span.size;
    if (leaves_node) nics.add(t.from, to, t.span.size);
  };
  const models::Span<double> bucket{0.0, 1.0};
  if (positions_ == ranks_) {
    models::for_each_transfer(schedule, step, bucket, see);
  } else {
    for (int rank = 0; rank < positions_; ++rank)
      models::for_each_send(schedule, rank, step, bucket, see);
  }

  Run run{.first_message = messages_.size(),
          .first_participant = participants_.size(),
          .repeats = repeats};
  for (const Found& f : found) {
    const double ports =
        std::max(out[static_cast<std::size_t>(f.from)], in[static_cast<std::size_t>(f.to)]) *
        cost.intra.beta.value();
    messages_.push_back(
        {.from = f.from,
         .to = f.to,
         .alpha_s = (f.leaves_node ? cost.nic.alpha : cost.intra.alpha).value(),
         .per_byte_s = f.leaves_node ? std::max(ports, nics.per_byte_s(f.from, f.to)) : ports});
  }
  for (int position = 0; position < positions_; ++position) {
    const auto i = static_cast<std::size_t>(position);
    if (out[i] > 0 || in[i] > 0)
      participants_.push_back({position, reduced[i] * cost.gamma.value()});
  }
  run.end_message = messages_.size();
  run.end_participant = participants_.size();
  runs_.push_back(run);
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
  double* received = scratch.data() + positions_;
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
  Completion completion;
  completion.finish.reserve(finish_s.size());
  for (const double finish : finish_s) completion.finish.emplace_back(finish);
  return completion;
}

Completion StepEngine::completion(Bytes bucket) const {
  return run_all(bucket, std::vector<double>(static_cast<std::size_t>(positions_)));
}

Completion StepEngine::completion(Bytes bucket, std::span<const Seconds> ready) const {
  PACELINE_ASSERT(positions_ == ranks_ && ready.size() == static_cast<std::size_t>(ranks_),
                  "ready times are for ranks that are not collapsed");
  std::vector<double> finish_s;
  finish_s.reserve(ready.size());
  for (const Seconds time : ready) finish_s.push_back(time.value());
  return run_all(bucket, std::move(finish_s));
}

}  // namespace paceline::simulator
