// Tests: tests/simulator/step_engine_test.cc, tests/agreement/engine_agreement_test.cc.
#include "simulator/engine/prepare.h"

#include <fmt/core.h>

#include <algorithm>
#include <string>
#include <variant>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/enumerate.h"
#include "simulator/engine/effort.h"
#include "simulator/engine/equivalence.h"

namespace paceline::simulator {

LinkNumbers::LinkNumbers(const Routes& routes, const Positions& positions) {
  if (!positions.is_collapsed()) all_.assign(to_size(routes.links()), -1);
}

int LinkNumbers::of(int link) {
  if (all_.empty()) {
    const auto [entry, is_new] = standing_.try_emplace(link, count());
    if (is_new) met_.push_back(link);
    return entry->second;
  }
  int& number = all_[to_size(link)];
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
      const int sender = moved_down(m.from_rank, run.shifts[i]);
      const int receiver = moved_down(m.to_rank, run.shifts[i]);
      const auto number = to_size(numbers_.of(run.links[i]));
      if (number == users_.size()) users_.push_back({.sender = sender, .receiver = receiver});
      Users& users = users_[number];
      users.at_once = users.at_once || users.last_run == runs_ || run.weights[i] > 1;
      users.last_run = runs_;
      users.one_sender = users.one_sender && users.sender == sender &&
                         (routes_->needs_translation() || run.shifts[i] == 0);
      users.one_receiver = users.one_receiver && users.receiver == receiver;
    }
  }
}

bool Sharing::is_shared(int link) {
  const auto number = to_size(numbers_.of(link));
  return number < users_.size() && users_[number].share();
}

bool Sharing::any() const {
  return std::any_of(users_.begin(), users_.end(), [](const Users& u) { return u.share(); });
}

bool shares_links(const models::Schedule& schedule, const CommunicationCost& cost) {
  return shares_links(schedule, Routes(cost, schedule.ranks()));
}

bool shares_links(const models::Schedule& schedule, const Routes& routes) {
  const Positions positions = positions_of({&schedule, 1}, routes);
  Sharing sharing(routes, positions);
  for_each_run(schedule, routes, positions, [&](const PreparedRun& run) {
    sharing.add(run);
    return !sharing.any();
  });
  return sharing.any();
}

namespace {

// What to do about a schedule that has too many messages. It must help: ranks that fill all nodes
// are not told to.
std::string fewer_messages(const models::Schedule& schedule, const Routes& routes) {
  const int unit = routes.unit();
  if (std::holds_alternative<models::Pipelined>(schedule.node()))
    return "choose fewer segments (--segments), or fewer ranks";
  if (unit > 1 && schedule.ranks() % unit != 0)
    return fmt::format("choose fewer ranks, or a multiple of the {} ranks of a node or switch",
                       unit);
  if (unit == 0) return "choose fewer ranks, or equal nodes and a placement node by node";
  return "choose fewer ranks, or another strategy";
}

}  // namespace

TooManyMessages too_many_messages(const models::Schedule& schedule, const Routes& routes,
                                  std::int64_t most) {
  return {
      fmt::format("{} ranks have too little in common to be timed as a few: they have more than "
                  "{:.2g} million messages",
                  schedule.ranks(), static_cast<double>(most) / 1e6),
      fewer_messages(schedule, routes)};
}

namespace {

// Puts the messages of a step together.
class Gatherer {
 public:
  Gatherer(const models::Schedule& schedule, const Routes& routes, const Positions& positions,
           std::int64_t most)
      : schedule_(schedule),
        routes_(routes),
        positions_(positions),
        most_(most),
        reduced_(to_size(positions.count())),
        takes_part_(to_size(positions.count())),
        to_another_unit_(positions.is_collapsed() ? to_size(positions.count()) : 0) {}

  const PreparedRun& gather(int step) {
    begin(step);
    const auto see = [this](const models::Transfer<double>& t) { add(t); };
    if (positions_.is_collapsed()) {
      for (int position = 0; position < positions_.count(); ++position) {
        first_of_sender_ = run_.messages.size();
        ++senders_;
        models::for_each_send(schedule_, positions_.rank(position), step, bucket, see);
      }
    } else {
      models::for_each_transfer(schedule_, step, bucket, see);
    }
    return end();
  }

  // Gathers what these ranks, in ascending order, send and receive. No rank stands for others.
  const PreparedRun& gather_of(std::span<const int> ranks, int step) {
    begin(step);
    for (const int rank : ranks) {
      models::for_each_send(schedule_, rank, step, bucket,
                            [this](const models::Transfer<double>& t) { add(t); });
      models::for_each_receive(schedule_, rank, step, bucket,
                               [&](const models::Transfer<double>& t) {
                                 if (!std::binary_search(ranks.begin(), ranks.end(), t.from))
                                   add(t);
                               });
    }
    return end();
  }

 private:
  static constexpr models::Span<double> bucket{0.0, 1.0};

  void begin(int step) {
    run_.messages.clear();
    run_.participants.clear();
    run_.links.clear();
    run_.shifts.clear();
    run_.weights.clear();
    run_.repeats = schedule_.repeats(step);
  }
  const PreparedRun& end() {
    weigh();
    take_part();
    return run_;
  }

  // Messages that one rank sends are compared with this many of those before at most: more kinds
  // than that are not put together.
  static constexpr std::size_t most_compared = 64;

  void add(const models::Transfer<double>& t) {
    if (++seen_ > most_) throw too_many_messages(schedule_, routes_, most_);
    PreparedRun::Message message{.from = positions_.of(t.from),
                                 .to = positions_.of(t.to),
                                 .from_rank = t.from,
                                 .to_rank = t.to,
                                 .fraction = t.span.size,
                                 .distance = {},
                                 .first_link = run_.links.size(),
                                 .end_link = run_.links.size()};
    if (t.reduce) reduced_[to_size(message.to)] += reduced_by_each(message);
    if (joins_one_to_another_unit(message)) return;
    message.distance = routes_.way(t.from, t.to, path_);
    message.end_link += path_.size();
    if (!positions_.is_collapsed()) {
      run_.links.insert(run_.links.end(), path_.begin(), path_.end());
      run_.messages.push_back(message);
      return;
    }
    for (const int link : path_) run_.links.push_back(routes_.standing_for(link, positions_));
    if (joins_another(message)) {
      run_.links.resize(message.first_link);
      return;
    }
    for (const int link : path_) run_.shifts.push_back(routes_.shift(link, positions_));
    for (const int link : path_) run_.weights.push_back(routes_.alike(link, positions_));
    if (is_to_another_unit(message))
      to_another_unit_[to_size(message.to)] = {senders_, run_.messages.size()};
    run_.messages.push_back(message);
  }

  // To ranks of one position outside the sender's unit all ways are alike (Routes::unit). In a torus
  // they are not, and those of a tail are alone in their positions.
  [[nodiscard]] bool is_to_another_unit(const PreparedRun::Message& m) const {
    return positions_.is_collapsed() && !routes_.needs_translation() &&
           std::max(m.from_rank, m.to_rank) < positions_.whole() &&
           m.from_rank / routes_.unit() != m.to_rank / routes_.unit();
  }

  // Counts a message to another unit with the one before that its sender has sent to that position
  // there, without looking at its way: a rank of a direct exchange sends as many as there are ranks.
  bool joins_one_to_another_unit(const PreparedRun::Message& m) {
    if (!is_to_another_unit(m)) return false;
    const Sent first = to_another_unit_[to_size(m.to)];
    if (first.sender != senders_) return false;
    PreparedRun::Message& other = run_.messages[first.message];
    if (other.fraction != m.fraction) return false;
    ++other.count;
    return true;
  }

  [[nodiscard]] double reduced_by_each(const PreparedRun::Message& m) const {
    return m.fraction * positions_.size(m.from) / positions_.size(m.to);
  }

  // Counts a message with one of the same sender that is alike, if there is one.
  bool joins_another(const PreparedRun::Message& m) {
    const auto links = run_.path(m);
    const std::size_t end = std::min(run_.messages.size(), first_of_sender_ + most_compared);
    for (std::size_t i = first_of_sender_; i < end; ++i) {
      PreparedRun::Message& other = run_.messages[i];
      if (other.to != m.to || other.fraction != m.fraction || other.distance != m.distance)
        continue;
      const auto others = run_.path(other);
      if (!std::equal(links.begin(), links.end(), others.begin(), others.end())) continue;
      ++other.count;
      return true;
    }
    return false;
  }

  // All messages of a kind are count x (ranks of the sender's position). They pass as many links as
  // are alike, each of those equally often, because positions are equitable.
  void weigh() {
    run_.shifts.resize(run_.links.size(), 0);
    run_.weights.resize(run_.links.size(), 1);
    for (const PreparedRun::Message& m : run_.messages) {
      const double all = static_cast<double>(m.count) * positions_.size(m.from);
      for (std::size_t i = m.first_link; i < m.end_link; ++i)
        run_.weights[i] = all / run_.weights[i];
      takes_part_[to_size(m.from)] = true;
      takes_part_[to_size(m.to)] = true;
    }
  }

  void take_part() {
    for (int position = 0; position < positions_.count(); ++position) {
      const auto i = to_size(position);
      if (takes_part_[i]) run_.participants.push_back({position, reduced_[i]});
      takes_part_[i] = false;
      reduced_[i] = 0;
    }
  }

  const models::Schedule& schedule_;
  const Routes& routes_;
  const Positions& positions_;
  std::int64_t most_;
  std::int64_t seen_ = 0;
  PreparedRun run_;
  std::size_t first_of_sender_ = 0;  // of the messages: those of the rank that is looked at
  std::vector<int> path_;
  std::vector<double> reduced_;
  std::vector<bool> takes_part_;
  // The last message to each position outside the sender's unit, and whose it was.
  struct Sent {
    std::int64_t sender = 0;  // by the count of senders_
    std::size_t message = 0;
  };
  std::vector<Sent> to_another_unit_;
  std::int64_t senders_ = 0;  // that were looked at, in all steps
};

}  // namespace

// Refused before they are counted one by one: a schedule of parts that run in parallel may have fewer
// than this, but not by much.
void check_messages(const models::Schedule& schedule, const Routes& routes,
                    const Positions& positions, std::int64_t most) {
  const double share = static_cast<double>(positions.count()) / schedule.ranks();
  if (message_count(schedule).distinct * share > 2.0 * static_cast<double>(most))
    throw too_many_messages(schedule, routes, most);
}

void for_each_run(const models::Schedule& schedule, const Routes& routes,
                  const Positions& positions, const std::function<bool(const PreparedRun&)>& sink,
                  std::int64_t most) {
  check_messages(schedule, routes, positions, most);
  Gatherer gatherer(schedule, routes, positions, most);
  for (int step = 0; step < schedule.steps();) {
    const PreparedRun& run = gatherer.gather(step);
    step += run.repeats;
    if (!sink(run)) return;
  }
}

void for_each_step(const models::Schedule& schedule, const Routes& routes,
                   const Positions& positions, const std::function<void(const PreparedRun&)>& sink,
                   std::int64_t most) {
  check_messages(schedule, routes, positions, most);
  Gatherer gatherer(schedule, routes, positions, most);
  for (int step = 0; step < schedule.steps(); ++step) sink(gatherer.gather(step));
}

void for_each_run_of(std::span<const int> ranks, const models::Schedule& schedule,
                     const Routes& routes, const std::function<void(const PreparedRun&)>& sink,
                     std::int64_t most) {
  const Positions every_rank(schedule.ranks());
  Gatherer gatherer(schedule, routes, every_rank, most);
  for (int step = 0; step < schedule.steps();) {
    const PreparedRun& run = gatherer.gather_of(ranks, step);
    step += run.repeats;
    sink(run);
  }
}

}  // namespace paceline::simulator
