// Tests: tests/runtime/stream_program_test.cc.
//
// IMPLEMENTATION. Turns are taken one after the other. Exchanges of this rank are numbered, and so
// are batches: the sums that are issued together after one exchange. Lanes run in order, so that a
// lane that waited for a batch has waited for all before it: such waits are left out. A sum whose
// target is still sent by a later exchange of its step is put off until that exchange is issued, and
// with it all sums behind it, so that sums keep their order.
#include "runtime/collective/stream_program.h"

#include <algorithm>
#include <deque>
#include <functional>
#include <map>
#include <queue>
#include <set>

#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/collective/intervals.h"

namespace paceline::runtime {
namespace {

using models::Elements;
using models::RankProgram;
using Program = StreamProgram;
using Array = Program::Array;
using Lane = Program::Lane;

constexpr int none = -1;

// A message's turn, with the messages of this rank in program order.
struct Group {
  std::vector<std::size_t> sends;
  std::vector<std::size_t> receives;
};

class Compiler {
 public:
  Compiler(RankProgram program, std::int64_t elements, models::WireType wire)
      : rank_(std::move(program)),
        elements_(elements),
        has_pieces_(wire != models::WireType::fp32),
        summed_(elements) {
    const std::int64_t line = 64 / (wire == models::WireType::fp32 ? 4 : 2);  // elements
    room_elements_ = (rank_.largest_reduction + line - 1) / line * line;
  }

  Program compiled() {
    add(Program::Wait{Lane::transfers, 0});
    std::map<RankProgram::Turn, Group> groups;
    for (std::size_t i = 0; i < rank_.sends.size(); ++i)
      groups[rank_.sends[i].turn].sends.push_back(i);
    for (std::size_t i = 0; i < rank_.receives.size(); ++i)
      groups[rank_.receives[i].turn].receives.push_back(i);
    mark_last_sends(groups);
    for (const auto& entry : groups) {
      add_exchange(entry.second);
      add_sums();
    }
    PACELINE_ASSERT(put_off_.empty(), "every sum is issued with an exchange of its step");
    wait_for_batch(batches_ - 1);
    number_events();
    program_.scratch_elements = rooms_ * room_elements_;
    program_.wide_elements = rank_.wide.size;
    return std::move(program_);
  }

 private:
  // A sum that is not issued yet.
  struct PutOff {
    std::size_t receive = 0;
    std::int64_t room = 0;
    int needs = none;  // the exchange that must be done
  };
  struct FreeRoom {
    std::int64_t room = 0;
    int batch = none;  // that read it last
  };

  void add(Program::Instruction instruction) {
    program_.instructions.push_back(std::move(instruction));
  }

  // For each receive that is added, the last exchange of its step that sends what it changes.
  void mark_last_sends(const std::map<RankProgram::Turn, Group>& groups) {
    last_send_.assign(rank_.receives.size(), none);
    models::Intervals<int> sent(elements_);
    int exchange = 0;
    for (auto first = groups.begin(); first != groups.end();) {
      auto last = first;
      while (last != groups.end() && last->first.step == first->first.step) ++last;
      const int begin = exchange;
      for (auto group = first; group != last; ++group, ++exchange) {
        for (const std::size_t i : group->second.sends)
          sent.visit(rank_.sends[i].span, [&](Elements, int& at) { at = exchange + 1; });
      }
      for (auto group = first; group != last; ++group) {
        for (const std::size_t i : group->second.receives) {
          sent.visit(rank_.receives[i].span, [&](Elements, int at) {
            if (at > begin) last_send_[i] = std::max(last_send_[i], at - 1);
          });
        }
      }
      first = last;
    }
  }

  // A room whose sum is not of the batch issued last, so that the exchange does not wait for that.
  FreeRoom take_room() {
    if (!free_.empty() && free_.front().batch < batches_ - 1) {
      const FreeRoom room = free_.front();
      free_.pop_front();
      return room;
    }
    return {rooms_++, none};
  }

  void add_exchange(const Group& group) {
    Program::Exchange exchange;
    int awaited = none;  // batch
    const int own = exchanges_;
    for (const std::size_t i : group.sends) {
      const RankProgram::Send& send = rank_.sends[i];
      exchange.sends.push_back({send.to, {Array::bucket, send.span}});
      awaited = std::max(awaited, last_batch(send.span));
    }
    for (const std::size_t i : group.receives) {
      const RankProgram::Receive& receive = rank_.receives[i];
      if (receive.reduce) {
        const FreeRoom room = take_room();
        awaited = std::max(awaited, room.batch);
        exchange.receives.push_back(
            {receive.from, {Array::scratch, {room.room * room_elements_, receive.span.size}}});
        put_off_.push_back({i, room.room, std::max(own, last_send_[i])});
      } else {
        exchange.receives.push_back({receive.from, {Array::bucket, receive.span}});
        awaited = std::max(awaited, last_batch(receive.span));
      }
    }
    wait_for_batch(awaited);
    add(std::move(exchange));
    ++exchanges_;
  }

  // The last batch of sums that changed the span.
  [[nodiscard]] int last_batch(Elements span) {
    int last = none;
    summed_.visit(span, [&](Elements, int next) { last = std::max(last, next - 1); });
    return last;
  }

  // Issues the sums that no exchange of their step is in the way of any more. The first of them
  // waited for the exchange issued last, and the others for it.
  void add_sums() {
    std::size_t ready = 0;
    while (ready < put_off_.size() && put_off_[ready].needs < exchanges_) ++ready;
    if (ready == 0) return;
    const int event = next_event_++;
    add(Program::Record{Lane::transfers, event});
    add(Program::Wait{Lane::sums, event});
    for (std::size_t i = 0; i < ready; ++i) {
      const PutOff& sum = put_off_[i];
      add_sum(rank_.receives[sum.receive], sum.room);
      summed_.visit(rank_.receives[sum.receive].span,
                    [&](Elements, int& next) { next = batches_ + 1; });
      free_.push_back({sum.room, batches_});
    }
    put_off_.erase(put_off_.begin(), put_off_.begin() + static_cast<std::ptrdiff_t>(ready));
    batch_events_.push_back(next_event_++);
    add(Program::Record{Lane::sums, batch_events_.back()});
    ++batches_;
  }

  void add_sum(const RankProgram::Receive& receive, std::int64_t room) {
    const auto source = [&](Elements span) {
      return Program::Place{Array::scratch,
                            {room * room_elements_ + span.begin - receive.span.begin, span.size}};
    };
    if (!has_pieces_) {
      add(Program::Sum{false, source(receive.span), {Array::bucket, receive.span}});
      return;
    }
    for (std::uint32_t i = receive.pieces.first; i < receive.pieces.last; ++i) {
      const RankProgram::Piece& piece = rank_.pieces[i];
      const Program::Place target{Array::bucket, piece.span};
      const Program::Place sum{Array::wide, {piece.span.begin - rank_.wide.begin, piece.span.size}};
      if (!piece.sum_is_wide && !piece.stays_wide) {
        add(Program::Sum{false, source(piece.span), target});
        continue;
      }
      if (!piece.sum_is_wide) add(Program::Sum{true, target, sum});
      add(Program::Sum{false, source(piece.span), sum});
      if (!piece.stays_wide) add(Program::Sum{true, sum, target});
    }
  }

  void wait_for_batch(int batch) {
    if (batch <= seen_batch_) return;
    add(Program::Wait{Lane::transfers, batch_events_[to_size(batch)]});
    seen_batch_ = batch;
  }

  // Takes out the records that nobody waits for, and gives numbers to events again.
  void number_events() {
    std::vector<std::size_t> last_wait(to_size(next_event_), 0);
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      if (const auto* wait = std::get_if<Program::Wait>(&program_.instructions[i]))
        last_wait[to_size(wait->event)] = i;
    }
    std::vector<int> number(last_wait.size(), 0);
    std::priority_queue<int, std::vector<int>, std::greater<>> unused;
    std::vector<Program::Instruction> kept;
    for (std::size_t i = 0; i < program_.instructions.size(); ++i) {
      Program::Instruction& instruction = program_.instructions[i];
      if (auto* record = std::get_if<Program::Record>(&instruction)) {
        const auto event = to_size(record->event);
        if (last_wait[event] == 0) continue;
        if (unused.empty()) unused.push(program_.events++);
        record->event = number[event] = unused.top();
        unused.pop();
      } else if (auto* wait = std::get_if<Program::Wait>(&instruction)) {
        const auto event = to_size(wait->event);
        wait->event = number[event];
        if (last_wait[event] == i) unused.push(wait->event);
      }
      kept.push_back(std::move(instruction));
    }
    program_.instructions = std::move(kept);
  }

  RankProgram rank_;
  std::int64_t elements_ = 0;
  bool has_pieces_ = false;
  models::Intervals<int> summed_;  // 1 + the last batch that changed an element
  std::int64_t room_elements_ = 0;
  std::vector<int> last_send_;  // by receive
  std::vector<PutOff> put_off_;
  std::deque<FreeRoom> free_;
  std::int64_t rooms_ = 0;
  int exchanges_ = 0;
  int batches_ = 0;
  int seen_batch_ = none;  // by the lane of transfers
  int next_event_ = 1;
  std::vector<int> batch_events_;
  Program program_;
};

}  // namespace

StreamProgram compile_for_streams(const models::Schedule& schedule, int rank, std::int64_t elements,
                                  models::WireType wire, std::int64_t message_elements) {
  RankProgram program =
      compile(schedule, rank, elements, wire,
              {.message_elements = message_elements, .window_elements = 1, .ahead_elements = 0});
  return Compiler(std::move(program), elements, wire).compiled();
}

std::vector<int> peers(const StreamProgram& program) {
  std::set<int> all;
  for (const Program::Instruction& instruction : program.instructions) {
    if (const auto* exchange = std::get_if<Program::Exchange>(&instruction)) {
      for (const Program::Message& m : exchange->sends) all.insert(m.peer);
      for (const Program::Message& m : exchange->receives) all.insert(m.peer);
    }
  }
  return {all.begin(), all.end()};
}

ArrayView StreamArrays::at(const StreamProgram::Place& place) const {
  const ArrayView& array = place.array == Array::bucket    ? bucket
                           : place.array == Array::scratch ? scratch
                                                           : wide;
  return array.part(to_size(place.span.begin), to_size(place.span.size));
}

void issue(const StreamProgram& program, const StreamArrays& arrays, const StreamLanes& lanes,
           std::span<Token> events,
           const std::function<void(const StreamProgram::Exchange&)>& exchange) {
  const auto stream = [&](Lane lane) -> Stream& {
    return lane == Lane::transfers ? lanes.transfers : lanes.sums;
  };
  struct Visitor {
    decltype(stream)& stream_of;
    const StreamArrays& arrays;
    std::span<Token> events;
    const std::function<void(const StreamProgram::Exchange&)>& exchange;

    void operator()(const Program::Exchange& e) const { exchange(e); }
    void operator()(const Program::Sum& sum) const {
      const ArrayView source = arrays.at(sum.source);
      const ArrayView target = arrays.at(sum.target);
      Stream& sums = stream_of(Lane::sums);
      if (sum.casts)
        sums.start(Cast{source, target});
      else
        sums.start(Add{source, target});
    }
    void operator()(const Program::Record& record) const {
      events[to_size(record.event)] = stream_of(record.lane).record();
    }
    void operator()(const Program::Wait& wait) const {
      stream_of(wait.lane).wait_for(events[to_size(wait.event)]);
    }
  };
  const Visitor visitor{stream, arrays, events, exchange};
  for (const Program::Instruction& instruction : program.instructions)
    std::visit(visitor, instruction);
}

}  // namespace paceline::runtime
