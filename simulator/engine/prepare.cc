// Tests: tests/simulator/step_engine_test.cc, tests/agreement/engine_agreement_test.cc.
#include "simulator/engine/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/collective/enumerate.h"

namespace paceline::simulator {

void for_each_run(const models::Schedule& schedule, const Routes& routes, int positions,
                  const std::function<void(const PreparedRun&)>& sink) {
  constexpr models::Span<double> bucket{0.0, 1.0};
  const bool is_collapsed = positions != schedule.ranks();
  PreparedRun run;
  std::size_t prepared = 0;
  std::vector<int> path;
  std::vector<double> reduced(static_cast<std::size_t>(positions));
  std::vector<bool> takes_part(static_cast<std::size_t>(positions));
  const auto see = [&](const models::Transfer<double>& t) {
    if (++prepared > most_prepared_messages) {
      throw TooManyMessages(
          fmt::format("{} ranks have too little in common to be timed as a few", schedule.ranks()),
          routes.unit() == 0
              ? "choose fewer ranks, or equal nodes and a placement node by node"
              : fmt::format("choose a multiple of the {} ranks of a node or switch, and for "
                            "halving-doubling a power of two",
                            routes.unit()));
    }
    const int to = t.to % positions;
    const double alpha_s = routes.path(t.from, t.to, path);
    const std::size_t first = run.links.size();
    for (const int link : path) run.links.push_back(routes.standing_for(link, positions));
    run.messages.push_back({t.from, to, t.span.size, alpha_s, first, run.links.size()});
    takes_part[static_cast<std::size_t>(t.from)] = true;
    takes_part[static_cast<std::size_t>(to)] = true;
    if (t.reduce) reduced[static_cast<std::size_t>(to)] += t.span.size;
  };
  for (int step = 0; step < schedule.steps(); step += run.repeats) {
    run.messages.clear();
    run.participants.clear();
    run.links.clear();
    run.repeats = schedule.repeats(step);
    if (is_collapsed) {
      for (int rank = 0; rank < positions; ++rank)
        models::for_each_send(schedule, rank, step, bucket, see);
    } else {
      models::for_each_transfer(schedule, step, bucket, see);
    }
    for (int position = 0; position < positions; ++position) {
      const auto i = static_cast<std::size_t>(position);
      if (takes_part[i]) run.participants.push_back({position, reduced[i]});
      takes_part[i] = false;
      reduced[i] = 0;
    }
    sink(run);
  }
}

}  // namespace paceline::simulator
