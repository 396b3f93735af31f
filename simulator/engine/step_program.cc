// Tests: tests/simulator/step_program_test.cc, tests/simulator/step_engine_test.cc.
//
// IMPLEMENTATION. In a step, every link has as its load the sum of the shares of the bucket that the
// step's messages send over it, each message of a position by its weight there
// (PreparedRun::weights). In a pipeline whose ranks are not collapsed, the messages of a step are those
// of as many steps of what is inside as there are segments on their way. Those are looked up once,
// and a run puts the steps together that are under way in it.
#include "simulator/engine/step_program.h"

#include <algorithm>
#include <span>
#include <variant>

namespace paceline::simulator {
namespace {

std::size_t at(int index) {
  return static_cast<std::size_t>(index);
}

// One message of a run that is put together, over links that LinkNumbers numbered.
struct Part {
  int from = 0;
  int to = 0;
  double fraction = 0;
  Routes::Distance distance = {};
  std::size_t first_link = 0;
  std::size_t end_link = 0;
};

// The messages of one step, or of several that are at the same time.
class ProgramMaker {
 public:
  ProgramMaker(const Routes& routes, StepProgram& program)
      : routes_(routes),
        program_(program),
        numbers_(routes, program.positions),
        is_in_run_(at(program.positions.count())),
        reduced_(at(program.positions.count())) {}

  // Keeps the messages of a step. They take part in runs until they are forgotten.
  void keep(const PreparedRun& prepared) {
    first_part_.push_back(parts_.size());
    first_participant_.push_back(participants_.size());
    for (const PreparedRun::Message& m : prepared.messages) {
      const std::size_t first = links_.size();
      for (std::size_t i = m.first_link; i < m.end_link; ++i)
        links_.push_back({number(prepared.links[i]), prepared.weights[i]});
      parts_.push_back({m.from, m.to, m.fraction, m.distance, first, links_.size()});
    }
    for (const PreparedRun::Participant& p : prepared.participants)
      participants_.push_back({p.position, p.reduced});
  }
  void forget() {
    parts_.clear();
    links_.clear();
    participants_.clear();
    first_part_.clear();
    first_participant_.clear();
  }

  // Adds a run of the kept steps from `last` down to `first`, with so much of each of their messages.
  void add_run(int first, int last, double share, int repeats) {
    StepProgram::Run run{.first_message = program_.messages.size(),
                         .first_participant = program_.participants.size(),
                         .repeats = repeats};
    load_.assign(at(numbers_.count()), 0);
    for (int step = last; step >= first; --step) {
      for (const Part& part : parts_of(step)) {
        for (const Link& link : links_of(part))
          load_[at(link.number)] += part.fraction * share * link.weight;
      }
    }
    for (int step = last; step >= first; --step) {
      for (const Part& part : parts_of(step))
        program_.messages.push_back({part.from, part.to, kind_of(part, share)});
    }
    add_participants(first, last, share);
    run.end_message = program_.messages.size();
    run.end_participant = program_.participants.size();
    program_.runs.push_back(run);
  }

  [[nodiscard]] std::size_t messages(int first, int last) const {
    return end_part(last) - first_part_[at(first)];
  }

 private:
  struct Link {
    int number;
    double weight;
  };

  int number(int link) {
    const int number = numbers_.of(link);
    if (at(number) == rates_.size()) {
      rates_.push_back(routes_.rate(link));
      is_shared_.push_back(routes_.is_shared(link));
    }
    return number;
  }
  [[nodiscard]] std::size_t end_part(int step) const {
    return at(step) + 1 < first_part_.size() ? first_part_[at(step) + 1] : parts_.size();
  }
  [[nodiscard]] std::span<const Part> parts_of(int step) const {
    return std::span(parts_).subspan(first_part_[at(step)], messages(step, step));
  }
  [[nodiscard]] std::span<const Link> links_of(const Part& part) const {
    return std::span(links_).subspan(part.first_link, part.end_link - part.first_link);
  }
  [[nodiscard]] std::span<const StepProgram::Participant> participants_of(int step) const {
    const std::size_t end = at(step) + 1 < first_participant_.size()
                                ? first_participant_[at(step) + 1]
                                : participants_.size();
    const std::size_t first = first_participant_[at(step)];
    return std::span(participants_).subspan(first, end - first);
  }

  int kind_of(const Part& part, double share) {
    way_.clear();
    for (const Link& link : links_of(part)) {
      const double load = is_shared_[at(link.number)] ? load_[at(link.number)]
                                                      : part.fraction * share;
      add_load(way_, {rates_[at(link.number)], load});
    }
    return program_.kinds.of(part.distance, way_);
  }

  void add_participants(int first, int last, double share) {
    if (first == last) {
      for (const StepProgram::Participant& p : participants_of(first))
        program_.participants.push_back({p.position, p.reduced * share});
      return;
    }
    for (int step = last; step >= first; --step) {
      for (const StepProgram::Participant& p : participants_of(step)) {
        is_in_run_[at(p.position)] = true;
        reduced_[at(p.position)] += p.reduced * share;
      }
    }
    for (int position = 0; position < program_.positions.count(); ++position) {
      if (!is_in_run_[at(position)]) continue;
      program_.participants.push_back({position, reduced_[at(position)]});
      is_in_run_[at(position)] = false;
      reduced_[at(position)] = 0;
    }
  }

  const Routes& routes_;
  StepProgram& program_;
  LinkNumbers numbers_;
  std::vector<int> rates_;        // of each numbered link
  std::vector<bool> is_shared_;   // of each numbered link
  std::vector<double> load_;      // of each numbered link, in the run
  std::vector<Part> parts_;       // of the kept steps
  std::vector<Link> links_;       // of the parts
  std::vector<StepProgram::Participant> participants_;  // of the kept steps
  std::vector<std::size_t> first_part_;                 // of each kept step
  std::vector<std::size_t> first_participant_;          // of each kept step
  std::vector<bool> is_in_run_;                         // each position
  std::vector<double> reduced_;                         // by each position, in the run
  std::vector<RateLoad> way_;
};

// Steps of a pipeline, each put together from those of what is inside. Segments are equal.
void add_pipeline(const models::Schedule& schedule, const models::Pipelined& pipeline,
                  const Routes& routes, std::int64_t most, ProgramMaker& maker) {
  const int depth = pipeline.inner.steps();
  check_messages(schedule, routes, Positions(schedule.ranks()), most);
  for_each_step(pipeline.inner, routes, Positions(schedule.ranks()), [&](const PreparedRun& step) {
    maker.keep(step);
  }, most);
  std::int64_t messages = 0;
  for (int step = 0; step < schedule.steps();) {
    const int last = std::min(step, depth - 1);
    const int first = step - std::min(step, pipeline.segments - 1);
    messages += static_cast<std::int64_t>(maker.messages(first, last));
    if (messages > most) throw too_many_messages(schedule, routes, most);
    const int repeats = schedule.repeats(step);
    maker.add_run(first, last, 1.0 / pipeline.segments, repeats);
    step += repeats;
  }
}

}  // namespace

StepProgram make_step_program(const models::Schedule& schedule, const Routes& routes,
                              Collapse collapse, std::int64_t most_messages) {
  StepProgram program;
  program.positions = collapse == Collapse::none ? Positions(schedule.ranks())
                                                 : positions_of({&schedule, 1}, routes);
  ProgramMaker maker(routes, program);
  const auto* pipeline = std::get_if<models::Pipelined>(&schedule.node());
  if (pipeline != nullptr && !program.positions.is_collapsed()) {
    add_pipeline(schedule, *pipeline, routes, most_messages, maker);
    return program;
  }
  const auto add = [&](const PreparedRun& run) {
    maker.forget();
    maker.keep(run);
    maker.add_run(0, 0, 1, run.repeats);
    return true;
  };
  for_each_run(schedule, routes, program.positions, add, most_messages);
  return program;
}

}  // namespace paceline::simulator
