// Tests: tests/simulator/step_engine_test.cc, tests/agreement/engine_agreement_test.cc.
#include "simulator/engine/prepare.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/error.h"
#include "models/collective/enumerate.h"
#include "simulator/engine/equivalence.h"

namespace paceline::simulator {

LinkNumbers::LinkNumbers(const Routes& routes, int positions) {
  if (positions == routes.ranks()) all_.assign(static_cast<std::size_t>(routes.links()), -1);
}

int LinkNumbers::of(int link) {
  if (all_.empty()) {
    const auto [entry, is_new] = standing_.try_emplace(link, count());
    if (is_new) met_.push_back(link);
    return entry->second;
  }
  int& number = all_[static_cast<std::size_t>(link)];
  if (number < 0) {
    number = count();
    met_.push_back(link);
  }
  return number;
}

// A message over a link stands for those over the links that it stands for. Moved by the shift, it
// is one over the standing link itself; its sender is then the true one where the schedule is
// translated, or the shift is none. Its receiver always is: without translation, links that are
// shifted are on the receiver's side.
void Sharing::add(const PreparedRun& run) {
  ++runs_;
  const int ranks = routes_->ranks();
  const auto moved_down = [ranks](int rank, int by) {
    return ((rank - by) % ranks + ranks) % ranks;
  };
  for (const PreparedRun::Message& m : run.messages) {
    for (std::size_t i = m.first_link; i < m.end_link; ++i) {
      if (!routes_->is_shared(run.links[i])) continue;
      const int sender = moved_down(m.from, run.shifts[i]);
      const int receiver = moved_down(m.to_rank, run.shifts[i]);
      const auto number = static_cast<std::size_t>(numbers_.of(run.links[i]));
      if (number == users_.size()) {
        users_.push_back({.sender = sender,
                          .receiver = receiver,
                          .at_once = routes_->weight(run.links[i], positions_) > 1});
      }
      Users& users = users_[number];
      users.at_once = users.at_once || users.last_run == runs_;
      users.last_run = runs_;
      users.one_sender = users.one_sender && users.sender == sender &&
                         (routes_->needs_translation() || run.shifts[i] == 0);
      users.one_receiver = users.one_receiver && users.receiver == receiver;
    }
  }
}

bool Sharing::is_shared(int link) {
  const auto number = static_cast<std::size_t>(numbers_.of(link));
  return number < users_.size() && users_[number].share();
}

bool Sharing::any() const {
  return std::any_of(users_.begin(), users_.end(), [](const Users& u) { return u.share(); });
}

bool shares_links(const models::Schedule& schedule, const CommunicationCost& cost) {
  const Routes routes(cost, schedule.ranks());
  const int positions = collapsed_ranks({&schedule, 1}, routes);
  Sharing sharing(routes, positions);
  for_each_run(schedule, routes, positions, [&](const PreparedRun& run) { sharing.add(run); });
  return sharing.any();
}

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
    for (const int link : path) {
      run.links.push_back(routes.standing_for(link, positions));
      run.shifts.push_back(routes.shift(link, positions));
    }
    run.messages.push_back({t.from, to, t.to, t.span.size, alpha_s, first, run.links.size()});
    takes_part[static_cast<std::size_t>(t.from)] = true;
    takes_part[static_cast<std::size_t>(to)] = true;
    if (t.reduce) reduced[static_cast<std::size_t>(to)] += t.span.size;
  };
  for (int step = 0; step < schedule.steps(); step += run.repeats) {
    run.messages.clear();
    run.participants.clear();
    run.links.clear();
    run.shifts.clear();
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
