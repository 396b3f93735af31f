// Tests: tests/simulator/flow_engine_test.cc.
#include "simulator/engine/flow_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <unordered_map>
#include <utility>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "simulator/engine/alike_positions.h"

namespace paceline::simulator {
namespace {

// The messages of each participant, sent or received.
void add_parts(FlowProgram& program, const PreparedRun& prepared, int first_message,
               std::vector<int>& part_of_position) {
  const int run = static_cast<int>(program.runs.size());
  const auto part_of = [&](int position) -> FlowProgram::Part& {
    const int part = part_of_position[to_size(position)];
    return program.parts[to_size(part)];
  };
  for (const PreparedRun::Participant& p : prepared.participants) {
    part_of_position[to_size(p.position)] = static_cast<int>(program.parts.size());
    program.parts.push_back({.position = p.position, .run = run, .reduced = p.reduced});
  }
  for (const PreparedRun::Message& m : prepared.messages) {
    ++part_of(m.from).sends;
    ++part_of(m.to).receives;
  }
  std::size_t next = program.mine.size();
  for (const PreparedRun::Participant& p : prepared.participants) {
    FlowProgram::Part& part = part_of(p.position);
    part.first_message = next;
    part.end_message = next;
    next += to_size(part.sends + part.receives);
  }
  program.mine.resize(next);
  int message = first_message;
  for (const PreparedRun::Message& m : prepared.messages) {
    program.mine[part_of(m.from).end_message++] = message;
    program.mine[part_of(m.to).end_message++] = message;
    ++message;
  }
}

// Finds the lane of each message: the first between its two ranks that no message of the same run
// has yet, and that stands for as many alike ones on each link.
class Lanes {
 public:
  Lanes(const Routes& routes, Sharing& sharing, LinkNumbers& numbers, PathClasses& kinds)
      : routes_(routes), sharing_(sharing), numbers_(numbers), kinds_(kinds) {}

  int of(const PreparedRun& run, int run_number, const PreparedRun::Message& m,
         FlowProgram& program) {
    const std::int64_t way = std::int64_t{m.from} * routes_.ranks() + m.to_rank;
    const auto [first, is_new] = first_.try_emplace(way, static_cast<int>(program.lanes.size()));
    int lane = is_new ? -1 : first->second;
    int last = -1;
    const auto is_free = [&](const Use& use) {
      return use.run != run_number &&
             std::equal(run.weights.begin() + static_cast<std::ptrdiff_t>(m.first_link),
                        run.weights.begin() + static_cast<std::ptrdiff_t>(m.end_link),
                        weights_.begin() + static_cast<std::ptrdiff_t>(use.first_weight));
    };
    while (lane >= 0 && !is_free(uses_[to_size(lane)])) {
      last = lane;
      lane = uses_[to_size(lane)].next;
    }
    if (lane < 0) {
      lane = add(run, m, program);
      if (last >= 0) uses_[to_size(last)].next = lane;
    }
    uses_[to_size(lane)].run = run_number;
    return lane;
  }

 private:
  struct Use {
    int run = -1;   // the last that has a message on the lane
    int next = -1;  // lane between the same ranks
    std::size_t first_weight =
        0;  // of weights_: as many as there are links from the one to the other
  };

  int add(const PreparedRun& run, const PreparedRun::Message& m, FlowProgram& program) {
    way_.clear();
    for (std::size_t i = m.first_link; i < m.end_link; ++i)
      add_load(way_, {routes_.rate(run.links[i]), run.weights[i]});
    FlowProgram::Lane lane{.kind = kinds_.of(m.distance, way_), .first_link = program.links.size()};
    for (const bool own : {true, false}) {
      for (std::size_t i = m.first_link; i < m.end_link; ++i) {
        const int link = run.links[i];
        if (!routes_.is_shared(link) || routes_.beta_s(link) == 0 ||
            sharing_.is_shared(link) != own)
          continue;
        program.links.push_back(numbers_.of(link));
        program.weights.push_back(run.weights[i]);
      }
      if (own) lane.end_own = program.links.size();
    }
    lane.end_link = program.links.size();
    program.lanes.push_back(lane);
    uses_.push_back({.first_weight = weights_.size()});
    for (std::size_t i = m.first_link; i < m.end_link; ++i) weights_.push_back(run.weights[i]);
    return static_cast<int>(program.lanes.size()) - 1;
  }

  const Routes& routes_;
  Sharing& sharing_;
  LinkNumbers& numbers_;
  PathClasses& kinds_;
  std::vector<RateLoad> way_;
  std::unordered_map<std::int64_t, int> first_;  // of the lanes from a rank to another
  std::vector<Use> uses_;                        // of each lane
  std::vector<double> weights_;
};

void order_by_position(FlowProgram& program, int positions) {
  program.first_of_program.assign(to_size(positions) + 1, 0);
  for (const FlowProgram::Part& part : program.parts)
    ++program.first_of_program[to_size(part.position) + 1];
  std::partial_sum(program.first_of_program.begin(), program.first_of_program.end(),
                   program.first_of_program.begin());
  program.program.resize(program.parts.size());
  std::vector<std::size_t> next = program.first_of_program;
  for (std::size_t part = 0; part < program.parts.size(); ++part) {
    const auto position = to_size(program.parts[part].position);
    program.program[next[position]++] = static_cast<int>(part);
  }
}

// The runs of a schedule, and whether its messages share links.
struct Prepared {
  std::vector<PreparedRun> runs;
  Sharing sharing;
};

Prepared prepared(const models::Schedule& schedule, const Routes& routes,
                  const Positions& positions) {
  Prepared prepared{{}, Sharing(routes, positions)};
  std::size_t messages = 0;
  for_each_run(schedule, routes, positions, [&](const PreparedRun& run) {
    messages += run.messages.size();
    if (messages > most_flow_messages) {
      throw TooManyMessages(
          fmt::format(
              "{} ranks that share links have too little in common to be followed as a few: "
              "they have more than {} messages",
              schedule.ranks(), most_flow_messages),
          "choose --engine step, or fewer ranks");
    }
    prepared.sharing.add(run);
    prepared.runs.push_back(run);
    return true;
  });
  return prepared;
}

FlowProgram make_flow_program(const std::vector<PreparedRun>& runs, Sharing& sharing,
                              const Routes& routes, int positions, LinkNumbers& numbers,
                              PathClasses& kinds) {
  FlowProgram program;
  Lanes lanes(routes, sharing, numbers, kinds);
  std::vector<int> part_of_position(to_size(positions));
  for (const PreparedRun& run : runs) {
    const int first_message = static_cast<int>(program.messages.size());
    const int first_part = static_cast<int>(program.parts.size());
    for (const PreparedRun::Message& m : run.messages) {
      const int lane = lanes.of(run, static_cast<int>(program.runs.size()), m, program);
      program.messages.push_back(
          {.from = m.from, .to = m.to, .lane = lane, .fraction = m.fraction});
    }
    add_parts(program, run, first_message, part_of_position);
    program.runs.push_back({first_message, static_cast<int>(program.messages.size()), first_part,
                            static_cast<int>(program.parts.size()), run.repeats});
  }
  order_by_position(program, positions);
  return program;
}

}  // namespace

FlowPrograms make_flow_programs(std::span<const models::Schedule> schedules, const Routes& routes,
                                Collapse collapse) {
  PACELINE_ASSERT(!schedules.empty(), "there is a schedule to follow");
  FlowPrograms made;
  made.ranks =
      collapse == Collapse::none ? Positions(routes.ranks()) : positions_of(schedules, routes);
  RunsOfSchedules runs;
  std::vector<Sharing> sharing;
  for (const models::Schedule& schedule : schedules) {
    PACELINE_ASSERT(schedule.ranks() == routes.ranks(), "all schedules are over the same ranks");
    Prepared one = prepared(schedule, routes, made.ranks);
    runs.push_back(std::move(one.runs));
    sharing.push_back(std::move(one.sharing));
  }
  made.positions = made.ranks.count();
  std::optional<AlikePositions> alike;
  if (collapse == Collapse::equal_positions) alike = alike_positions(runs, routes, made.ranks);
  if (alike) {
    made.positions = alike->classes;
    made.class_of = std::move(alike->class_of);
    runs = std::move(alike->runs);
  } else {
    made.class_of.resize(to_size(made.positions));
    std::iota(made.class_of.begin(), made.class_of.end(), 0);
  }
  LinkNumbers numbers(routes, made.ranks);
  for (std::size_t i = 0; i < runs.size(); ++i)
    made.programs.push_back(
        make_flow_program(runs[i], sharing[i], routes, made.positions, numbers, made.kinds));
  made.links.assign(numbers.links().begin(), numbers.links().end());
  return made;
}

}  // namespace paceline::simulator
