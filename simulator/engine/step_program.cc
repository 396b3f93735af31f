// Tests: tests/simulator/prepared_schedules_test.cc, tests/simulator/step_engine_test.cc.
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

#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

// One message of a run that is put together, over links that LinkNumbers numbered.
struct Part {
  int from = 0;
  int to = 0;
  double fraction = 0;
  Routes::Distance distance = {};
  std::size_t first_link = 0;
  std::size_t end_link = 0;
};

}  // namespace

// Puts runs together from the messages of one step, or of several that are at the same time.
class StepMaker {
 public:
  StepMaker(const Routes& routes, const Positions& positions, Load load)
      : routes_(routes),
        is_summed_(load == Load::sum),
        made_(std::make_shared<StepParts>()),
        numbers_(routes, positions),
        is_in_run_(to_size(positions.count())),
        reduced_(to_size(positions.count())) {
    made_->positions = positions;
  }

  // Keeps the messages of a step, for runs that are added before they are forgotten.
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

  // A run of the kept steps from `last` down to `first`, all at the same time.
  StepProgram::Run add_run(int first, int last, int repeats) {
    StepProgram::Run run{.first_message = made_->messages.size(),
                         .first_participant = made_->participants.size(),
                         .repeats = repeats};
    load_.assign(to_size(numbers_.count()), 0);
    for (int step = last; step >= first; --step) {
      for (const Part& part : parts_of(step)) {
        for (const Link& link : links_of(part))
          load_[to_size(link.number)] += part.fraction * link.weight;
      }
    }
    for (int step = last; step >= first; --step) {
      for (const Part& part : parts_of(step))
        made_->messages.push_back({part.from, part.to, kind_of(part)});
    }
    add_participants(first, last);
    run.end_message = made_->messages.size();
    run.end_participant = made_->participants.size();
    return run;
  }

  // The number of messages in the kept steps from `first` to `last`.
  [[nodiscard]] std::size_t messages(int first, int last) const {
    return end_part(last) - first_part_[to_size(first)];
  }
  [[nodiscard]] std::shared_ptr<const StepParts> made() const { return made_; }

 private:
  struct Link {
    int number;
    double weight;
  };

  int number(int link) {
    const int number = numbers_.of(link);
    if (to_size(number) == rates_.size()) {
      rates_.push_back(routes_.rate(link));
      is_shared_.push_back(routes_.is_shared(link));
    }
    return number;
  }
  [[nodiscard]] std::size_t end_part(int step) const {
    return to_size(step) + 1 < first_part_.size() ? first_part_[to_size(step) + 1] : parts_.size();
  }
  [[nodiscard]] std::span<const Part> parts_of(int step) const {
    return std::span(parts_).subspan(first_part_[to_size(step)], messages(step, step));
  }
  [[nodiscard]] std::span<const Link> links_of(const Part& part) const {
    return std::span(links_).subspan(part.first_link, part.end_link - part.first_link);
  }
  [[nodiscard]] std::span<const StepParts::Participant> participants_of(int step) const {
    const std::size_t end = to_size(step) + 1 < first_participant_.size()
                                ? first_participant_[to_size(step) + 1]
                                : participants_.size();
    const std::size_t first = first_participant_[to_size(step)];
    return std::span(participants_).subspan(first, end - first);
  }

  int kind_of(const Part& part) {
    way_.clear();
    for (const Link& link : links_of(part)) {
      double load = part.fraction;
      if (is_shared_[to_size(link.number)])
        load = is_summed_ ? load_[to_size(link.number)] : part.fraction * link.weight;
      add_load(way_, {rates_[to_size(link.number)], load});
    }
    return made_->kinds.of(part.distance, way_);
  }

  void add_participants(int first, int last) {
    if (first == last) {
      for (const StepParts::Participant& p : participants_of(first))
        made_->participants.push_back({p.position, p.reduced});
      return;
    }
    for (int step = last; step >= first; --step) {
      for (const StepParts::Participant& p : participants_of(step)) {
        is_in_run_[to_size(p.position)] = true;
        reduced_[to_size(p.position)] += p.reduced;
      }
    }
    for (int position = 0; position < made_->positions.count(); ++position) {
      if (!is_in_run_[to_size(position)]) continue;
      made_->participants.push_back({position, reduced_[to_size(position)]});
      is_in_run_[to_size(position)] = false;
      reduced_[to_size(position)] = 0;
    }
  }

  Routes routes_;
  bool is_summed_;
  std::shared_ptr<StepParts> made_;
  LinkNumbers numbers_;
  std::vector<int> rates_;                            // of each numbered link
  std::vector<bool> is_shared_;                       // of each numbered link
  std::vector<double> load_;                          // of each numbered link, in the run
  std::vector<Part> parts_;                           // of the kept steps
  std::vector<Link> links_;                           // of the parts
  std::vector<StepParts::Participant> participants_;  // of the kept steps
  std::vector<std::size_t> first_part_;               // of each kept step
  std::vector<std::size_t> first_participant_;        // of each kept step
  std::vector<bool> is_in_run_;                       // each position
  std::vector<double> reduced_;                       // by each position, in the run
  std::vector<RateLoad> way_;
};

Pipeline::Pipeline(const models::Schedule& inner, const Routes& routes, std::int64_t most_messages,
                   Load load)
    : maker_(std::make_unique<StepMaker>(routes, Positions(inner.ranks()), load)) {
  for_each_step(
      inner, routes, Positions(inner.ranks()),
      [this](const PreparedRun& step) { maker_->keep(step); }, most_messages);
}

Pipeline::Pipeline(std::span<const int> ranks, const models::Schedule& inner, const Routes& routes,
                   std::int64_t most_messages, Load load)
    : maker_(std::make_unique<StepMaker>(routes, Positions(inner.ranks()), load)) {
  const auto keep = [this](const PreparedRun& run) {
    for (int step = 0; step < run.repeats; ++step) maker_->keep(run);
  };
  for_each_run_of(ranks, inner, routes, keep, most_messages);
}

Pipeline::~Pipeline() = default;

StepProgram Pipeline::program(const models::Schedule& schedule, const Routes& routes,
                              std::int64_t most_messages) {
  const auto& pipeline = std::get<models::Pipelined>(schedule.node());
  StepProgram program{.parts = maker_->made(), .runs = {}, .share = 1.0 / pipeline.segments};
  std::int64_t messages = 0;
  for (int step = 0; step < schedule.steps();) {
    const int last = std::min(step, pipeline.inner.steps() - 1);
    const int first = step - std::min(step, pipeline.segments - 1);
    messages += static_cast<std::int64_t>(maker_->messages(first, last));
    if (messages > most_messages) throw too_many_messages(schedule, routes, most_messages);
    const auto [known, is_new] = known_.try_emplace({first, last});
    if (is_new) known->second = maker_->add_run(first, last, 1);
    program.runs.push_back(known->second);
    program.runs.back().repeats = schedule.repeats(step);
    step += program.runs.back().repeats;
  }
  return program;
}

const models::Schedule* inside_pipeline(const models::Schedule& schedule, const Routes& routes) {
  const auto* pipeline = std::get_if<models::Pipelined>(&schedule.node());
  if (pipeline == nullptr || positions_of({&schedule, 1}, routes).is_collapsed()) return nullptr;
  return &pipeline->inner;
}

StepProgram make_step_program_of(std::span<const int> ranks, const models::Schedule& schedule,
                                 const Routes& routes, std::int64_t most_messages, Load load) {
  if (const auto* pipeline = std::get_if<models::Pipelined>(&schedule.node()))
    return Pipeline(ranks, pipeline->inner, routes, most_messages, load)
        .program(schedule, routes, most_messages);
  StepMaker maker(routes, Positions(schedule.ranks()), load);
  StepProgram program{.parts = maker.made(), .runs = {}};
  const auto add = [&](const PreparedRun& run) {
    maker.forget();
    maker.keep(run);
    program.runs.push_back(maker.add_run(0, 0, run.repeats));
  };
  for_each_run_of(ranks, schedule, routes, add, most_messages);
  return program;
}

StepProgram make_step_program(const models::Schedule& schedule, const Routes& routes,
                              Collapse collapse, std::int64_t most_messages, Load load) {
  const Positions positions = collapse == Collapse::none ? Positions(schedule.ranks())
                                                         : positions_of({&schedule, 1}, routes);
  const auto* pipeline = std::get_if<models::Pipelined>(&schedule.node());
  if (pipeline != nullptr && !positions.is_collapsed()) {
    check_messages(schedule, routes, positions, most_messages);
    return Pipeline(pipeline->inner, routes, most_messages, load)
        .program(schedule, routes, most_messages);
  }
  StepMaker maker(routes, positions, load);
  StepProgram program{.parts = maker.made(), .runs = {}};
  const auto add = [&](const PreparedRun& run) {
    maker.forget();
    maker.keep(run);
    program.runs.push_back(maker.add_run(0, 0, run.repeats));
    return true;
  };
  for_each_run(schedule, routes, positions, add, most_messages);
  return program;
}

}  // namespace paceline::simulator
