// A machine for programs of streams (runtime/collective/stream_program.h), without CUDA: ranks with
// two lanes each, run in any order that the lanes, their events and their messages allow. And the
// check that a program orders its own accesses.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "models/base/random.h"
#include "runtime/collective/stream_program.h"
#include "runtime/device/cpu_device.h"

namespace paceline::test {

using runtime::StreamProgram;

// For each wait, the record that it means: the last of its event before it; nothing for the
// bucket's readiness.
inline std::vector<std::optional<std::size_t>> records_of_waits(const StreamProgram& program) {
  std::vector<std::optional<std::size_t>> meant(program.instructions.size());
  std::map<int, std::size_t> last;
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    if (const auto* record = std::get_if<StreamProgram::Record>(&program.instructions[i]))
      last[record->event] = i;
    if (const auto* wait = std::get_if<StreamProgram::Wait>(&program.instructions[i])) {
      if (last.contains(wait->event)) meant[i] = last[wait->event];
    }
  }
  return meant;
}

inline StreamProgram::Lane lane_of(const StreamProgram::Instruction& instruction) {
  if (const auto* record = std::get_if<StreamProgram::Record>(&instruction)) return record->lane;
  if (const auto* wait = std::get_if<StreamProgram::Wait>(&instruction)) return wait->lane;
  return std::holds_alternative<StreamProgram::Sum>(instruction) ? StreamProgram::Lane::sums
                                                                 : StreamProgram::Lane::transfers;
}

// Whether each two accesses of one rank that touch the same elements, and of which one writes, are
// ordered by lanes and events: among them whoever made the bucket ready, and whoever reads the
// result behind the lane of transfers. No order between ranks is assumed, and messages of one
// exchange are in none.
inline bool is_ordered(const StreamProgram& program, std::int64_t elements,
                       std::optional<std::size_t> without = {}) {
  using Clock = std::array<std::size_t, 3>;  // lanes, and who made the bucket ready
  struct Access {
    StreamProgram::Place place;
    bool writes = false;
    std::size_t lane = 0;
    std::size_t number = 0;  // in its lane
  };
  std::vector<Access> done;
  std::array<Clock, 2> clocks{};
  std::array<std::size_t, 2> count{};
  std::vector<Clock> records(program.instructions.size());
  const auto meant = records_of_waits(program);
  const StreamProgram::Place whole{StreamProgram::Array::bucket, {0, elements}};
  done.push_back({whole, true, 2, 1});

  bool ordered = true;
  const auto touch = [&](std::size_t lane, const StreamProgram::Place& place, bool writes) {
    if (place.span.size == 0) return;
    for (const Access& a : done) {
      if ((a.writes || writes) && a.place.array == place.array &&
          models::overlap(a.place.span, place.span) && clocks[lane][a.lane] < a.number)
        ordered = false;
    }
    done.push_back({place, writes, lane, count[lane]});
  };
  for (std::size_t i = 0; i < program.instructions.size(); ++i) {
    const auto& instruction = program.instructions[i];
    const auto lane = static_cast<std::size_t>(lane_of(instruction));
    ++count[lane];
    if (const auto* exchange = std::get_if<StreamProgram::Exchange>(&instruction)) {
      for (const auto& m : exchange->sends) touch(lane, m.place, false);
      for (const auto& m : exchange->receives) touch(lane, m.place, true);
    } else if (const auto* sum = std::get_if<StreamProgram::Sum>(&instruction)) {
      touch(lane, sum->source, false);
      touch(lane, sum->target, true);
    }
    clocks[lane][lane] = count[lane];
    if (std::holds_alternative<StreamProgram::Record>(instruction)) records[i] = clocks[lane];
    if (std::holds_alternative<StreamProgram::Wait>(instruction) && without != i) {
      Clock other{0, 0, 1};
      if (meant[i]) other = records[*meant[i]];
      for (std::size_t k = 0; k < other.size(); ++k)
        clocks[lane][k] = std::max(clocks[lane][k], other[k]);
    }
  }
  ++count[0];
  touch(0, whole, false);
  return ordered;
}

// When a send completes: with its receive (rendezvous), or at once (eager).
enum class Sends { rendezvous, eager };

// Ranks that run a program each.
class StreamMachine {
 public:
  struct Rank {
    StreamProgram program;
    runtime::StreamArrays arrays;
  };

  StreamMachine(std::vector<Rank> ranks, Sends sends, std::uint64_t seed)
      : ranks_(std::move(ranks)), sends_(sends), random_(seed) {
    for (std::size_t r = 0; r < ranks_.size(); ++r) states_.emplace_back(ranks_[r].program);
  }

  // Runs all programs, one instruction at a time. Returns whether they came to their ends.
  bool run() {
    for (;;) {
      std::vector<std::pair<std::size_t, std::size_t>> heads;
      bool all = true;
      for (std::size_t r = 0; r < ranks_.size(); ++r) {
        for (std::size_t lane = 0; lane < 2; ++lane) {
          if (states_[r].lanes[lane].empty()) continue;
          all = false;
          heads.emplace_back(r, lane);
        }
      }
      if (all) return true;
      const auto first =
          static_cast<std::size_t>(random_.uniform() * static_cast<double>(heads.size()));
      bool moved = false;
      for (std::size_t k = 0; k < heads.size() && !moved; ++k) {
        const auto [rank, lane] = heads[(first + k) % heads.size()];
        moved = step(rank, lane);
      }
      if (!moved) return false;
    }
  }

 private:
  struct Posted {
    std::vector<std::byte> copy;  // of an eager send
    runtime::ArrayView view;
    bool done = false;
  };
  using Channel = std::deque<Posted*>;
  struct State {
    explicit State(const StreamProgram& program)
        : done(program.instructions.size()), meant(records_of_waits(program)) {
      for (std::size_t i = 0; i < program.instructions.size(); ++i)
        lanes[static_cast<std::size_t>(lane_of(program.instructions[i]))].push_back(i);
    }
    std::array<std::deque<std::size_t>, 2> lanes;
    std::vector<bool> done;
    std::vector<std::optional<std::size_t>> meant;
    std::deque<Posted> posted;  // of the exchange at the head of the lane
    bool active = false;
  };

  // Returns whether anything changed.
  bool step(std::size_t rank, std::size_t lane) {
    State& state = states_[rank];
    const std::size_t i = state.lanes[lane].front();
    const auto& instruction = ranks_[rank].program.instructions[i];
    bool changed = true;
    if (std::holds_alternative<StreamProgram::Wait>(instruction)) {
      if (state.meant[i] && !state.done[*state.meant[i]]) return false;
    } else if (const auto* sum = std::get_if<StreamProgram::Sum>(&instruction)) {
      const runtime::ArrayView source = ranks_[rank].arrays.at(sum->source);
      const runtime::ArrayView target = ranks_[rank].arrays.at(sum->target);
      if (sum->casts)
        runtime::run_on_cpu(runtime::Cast{source, target});
      else
        runtime::run_on_cpu(runtime::Add{source, target});
    } else if (const auto* exchange = std::get_if<StreamProgram::Exchange>(&instruction)) {
      changed = !state.active;
      if (!state.active) activate(rank, *exchange);
      const bool finished = std::all_of(state.posted.begin(), state.posted.end(),
                                        [](const Posted& p) { return p.done; });
      if (!finished) return changed;
      state.posted.clear();
      state.active = false;
    }
    state.done[i] = true;
    state.lanes[lane].pop_front();
    return true;
  }

  void activate(std::size_t rank, const StreamProgram::Exchange& exchange) {
    State& state = states_[rank];
    state.active = true;
    const int own = static_cast<int>(rank);
    for (const auto& m : exchange.sends) {
      const runtime::ArrayView view = ranks_[rank].arrays.at(m.place);
      Posted* send = nullptr;
      if (sends_ == Sends::eager) {
        send = &eager_.emplace_back();
        send->copy.assign(view.data, view.data + view.bytes());
        send->view = view;
        send->view.data = send->copy.data();
      } else {
        send = &state.posted.emplace_back();
        send->view = view;
      }
      channels_[{own, m.peer}].push_back(send);
      match(own, m.peer);
    }
    for (const auto& m : exchange.receives) {
      Posted* receive = &state.posted.emplace_back();
      receive->view = ranks_[rank].arrays.at(m.place);
      rooms_[{m.peer, own}].push_back(receive);
      match(m.peer, own);
    }
  }

  void match(int from, int to) {
    Channel& sent = channels_[{from, to}];
    Channel& rooms = rooms_[{from, to}];
    while (!sent.empty() && !rooms.empty()) {
      Posted& source = *sent.front();
      Posted& target = *rooms.front();
      PACELINE_ASSERT(source.view.elements == target.view.elements,
                      "sender and receiver agree on a message's size");
      std::copy_n(source.view.data, source.view.bytes(), target.view.data);
      source.done = target.done = true;
      sent.pop_front();
      rooms.pop_front();
    }
  }

  std::vector<Rank> ranks_;
  Sends sends_;
  Random random_;
  std::vector<State> states_;
  std::map<std::pair<int, int>, Channel> channels_;
  std::map<std::pair<int, int>, Channel> rooms_;
  std::deque<Posted> eager_;
};

}  // namespace paceline::test
