// Tests: tests/runtime/executor_test.cc, tests/agreement/executor_engine_agreement_test.cc.
//
// IMPLEMENTATION. A transfer is cut into messages, which are numbered from 0. The operations of a
// rank have one order, the program order: for each step the messages that it sends, then those that
// it receives, both by number. Of the messages with one number, a rank sends first the one to the
// rank behind it, so that not all ranks send to the same one at first. It receives, and adds, as
// the schedule enumerates, which makes sums the same on all ranks. Spans are related through maps
// of intervals: operations overlap where both touch an interval.
//
// Why it cannot deadlock although only a window of the receives is posted, and sends are held back:
// of all ranks that are stuck, take one, r, whose awaited receive has the least step s, and among
// those the least number j. Its sender has landed all of its steps before s, and the messages of s
// with numbers before j, and so has issued it. If r does not post it, or cannot land it, then this
// is for a send of its own which its peer x has not received. Either the send is
//  - of a step before s: x has landed those steps, so it has received it; or
//  - of step s itself, and reads what the receive is added to (no receive replaces what is read in
//    its step): r has issued it, because sends are held back only in steps in which none of a later
//    number reads what an earlier one is added to (may_hold_back); and x posts all receives of its
//    step s at once (posted_with).
#include "models/collective/rank_program.h"

#include <algorithm>
#include <map>
#include <set>

#include "models/base/to_size.h"
#include "models/collective/enumerate.h"
#include "models/collective/intervals.h"

namespace paceline::models {
namespace {

struct Message {
  int peer = 0;
  bool reduce = false;
  Elements span;
  int step = 0;
  std::int64_t number = 0;  // among the messages that its transfer is cut into
};

// The messages that a rank sends, or those that it receives, in program order.
struct Messages {
  std::vector<Message> list;
  std::vector<std::size_t> step_ends;  // one past the last message of each step

  // Orders the messages of the step by number, and those of one number by place(peer).
  template <class Place>
  void end_step(Place&& place) {
    const auto first =
        list.begin() + static_cast<std::ptrdiff_t>(step_ends.empty() ? 0 : step_ends.back());
    std::stable_sort(first, list.end(), [&](const Message& a, const Message& b) {
      return a.number != b.number ? a.number < b.number : place(a.peer) < place(b.peer);
    });
    step_ends.push_back(list.size());
  }
  void add(int peer, bool reduce, Elements transfer, int step, std::int64_t message_elements) {
    const std::int64_t count = message_count(transfer, message_elements);
    for (std::int64_t i = 0; i < count; ++i)
      list.push_back({peer, reduce, part(transfer, i, count), step, i});
  }
  [[nodiscard]] std::size_t step_begin(int step) const {
    return step == 0 ? 0 : step_ends[to_size(step) - 1];
  }
  [[nodiscard]] std::size_t step_end(int step) const { return step_ends[to_size(step)]; }
};

class Compiler {
 public:
  Compiler(const Schedule& schedule, int rank, std::int64_t elements,
           const RankProgramOptions& options)
      : schedule_(schedule), elements_(elements), options_(options) {
    const Elements bucket{0, elements};
    for (int step = 0; step < schedule.steps(); ++step) {
      for_each_send(schedule, rank, step, bucket, [&](const Transfer<std::int64_t>& t) {
        sends_.add(t.to, t.reduce, t.span, step, options.message_elements);
      });
      for_each_receive(schedule, rank, step, bucket, [&](const Transfer<std::int64_t>& t) {
        receives_.add(t.from, t.reduce, t.span, step, options.message_elements);
      });
      sends_.end_step(
          [&](int peer) { return (peer - rank + schedule.ranks()) % schedule.ranks(); });
      receives_.end_step([](int) { return 0; });
    }
  }

  RankProgram compiled(WireType wire) {
    for (const Message& m : receives_.list)
      program_.receives.push_back(
          {.from = m.peer, .reduce = m.reduce, .span = m.span, .turn = {m.step, m.number}});
    order_sends();
    relate();
    if (wire != WireType::fp32) find_pieces();
    find_posted();
    for (const RankProgram::Receive& r : program_.receives) {
      if (r.reduce) program_.largest_reduction = std::max(program_.largest_reduction, r.span.size);
    }
    return std::move(program_);
  }

 private:
  // Calls send(index) and receive(index) in program order.
  template <class S, class R>
  void in_program_order(S&& send, R&& receive) {
    for (int step = 0; step < schedule_.steps(); ++step) {
      for (std::size_t i = sends_.step_begin(step); i < sends_.step_end(step); ++i) send(i);
      for (std::size_t i = receives_.step_begin(step); i < receives_.step_end(step); ++i)
        receive(i);
    }
  }

  // Whether no send of the step reads what a receive with an earlier number is added to.
  [[nodiscard]] bool may_hold_back(int step) const {
    Intervals<std::int64_t> sent(elements_);  // 1 + the last number
    for (std::size_t i = sends_.step_begin(step); i < sends_.step_end(step); ++i) {
      const Message& m = sends_.list[i];
      sent.visit(m.span,
                 [&](Elements, std::int64_t& last) { last = std::max(last, m.number + 1); });
    }
    bool may = true;
    for (std::size_t i = receives_.step_begin(step); i < receives_.step_end(step); ++i) {
      const Message& m = receives_.list[i];
      sent.visit(m.span, [&](Elements, std::int64_t last) { may = may && last <= m.number + 1; });
    }
    return may;
  }

  // How many transfers the rank sends in a step, as a rule each to a receiver of its own: the
  // messages with number 0.
  [[nodiscard]] std::int64_t first_messages(int step) const {
    const auto first = sends_.list.begin() + static_cast<std::ptrdiff_t>(sends_.step_begin(step));
    const auto last = sends_.list.begin() + static_cast<std::ptrdiff_t>(sends_.step_end(step));
    return std::count_if(first, last, [](const Message& m) { return m.number == 0; });
  }

  // For each send, how many receives must have landed so that it does not run further ahead than it
  // may. They are of earlier steps, or of its own step with earlier numbers. What a rank sends in a
  // step beyond what it has received before does not count against later steps.
  [[nodiscard]] std::vector<std::int64_t> held_back() const {
    std::vector<std::int64_t> after(sends_.list.size(), 0);
    if (options_.ahead_elements == 0) return after;
    const std::int64_t own_ahead = std::max(options_.ahead_elements, 2 * options_.message_elements);
    std::int64_t sent = 0;
    std::int64_t received = 0;  // in receives before `landed`
    std::size_t landed = 0;
    for (int step = 0; step < schedule_.steps(); ++step) {
      const std::size_t begin = receives_.step_begin(step);
      std::int64_t before = received;
      for (std::size_t i = landed; i < begin; ++i) before += receives_.list[i].span.size;
      sent = std::min(sent, before);
      const bool within = may_hold_back(step);
      const std::int64_t ahead = own_ahead * first_messages(step);
      for (std::size_t i = sends_.step_begin(step); i < sends_.step_end(step); ++i) {
        const Message& m = sends_.list[i];
        sent += m.span.size;
        while (sent - received > ahead && landed < receives_.step_end(step)) {
          const Message& next = receives_.list[landed];
          if (landed >= begin && !(within && next.number < m.number)) break;
          received += next.span.size;
          ++landed;
        }
        after[i] = static_cast<std::int64_t>(landed);
      }
    }
    return after;
  }

  // A send is issued once the receives of earlier steps have landed in its span. Sends to one peer
  // are issued in program order.
  void order_sends() {
    Intervals<std::int64_t> landed(elements_);  // 1 + the last receive
    std::vector<std::int64_t> after = held_back();
    std::map<int, std::int64_t> latest;  // by peer
    in_program_order(
        [&](std::size_t i) {
          std::int64_t& own = latest[sends_.list[i].peer];
          own = std::max(own, after[i]);
          landed.visit(sends_.list[i].span,
                       [&](Elements, std::int64_t last) { own = std::max(own, last); });
          after[i] = own;
        },
        [&](std::size_t i) {
          landed.visit(receives_.list[i].span, [&](Elements, std::int64_t& last) {
            last = static_cast<std::int64_t>(i) + 1;
          });
        });
    std::vector<std::uint32_t> order(after.size());
    for (std::uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::uint32_t a, std::uint32_t b) { return after[a] < after[b]; });
    place_.resize(order.size());
    for (const std::uint32_t i : order) {
      place_[i] = static_cast<std::uint32_t>(program_.sends.size());
      const Message& m = sends_.list[i];
      program_.sends.push_back({m.peer, m.span, {m.step, m.number}});
      if (after[i] == 0) ++program_.sends_at_start;
    }
    std::uint32_t issued = program_.sends_at_start;
    for (std::size_t i = 0; i < program_.receives.size(); ++i) {
      while (issued < order.size() && after[order[issued]] <= static_cast<std::int64_t>(i) + 1)
        ++issued;
      program_.receives[i].sends_after = issued;
    }
  }

  // What must be over before a receive lands.
  void relate() {
    struct Touched {
      std::int64_t receive = -1;
      std::vector<std::uint32_t> sends;  // since then
    };
    Intervals<Touched> touched(elements_);
    std::set<std::uint32_t> before;
    in_program_order(
        [&](std::size_t i) {
          touched.visit(sends_.list[i].span,
                        [&](Elements, Touched& t) { t.sends.push_back(place_[i]); });
        },
        [&](std::size_t i) {
          RankProgram::Receive& receive = program_.receives[i];
          before.clear();
          touched.visit(receive.span, [&](Elements, Touched& t) {
            receive.receive_before = std::max(receive.receive_before, t.receive);
            before.insert(t.sends.begin(), t.sends.end());
            t = {static_cast<std::int64_t>(i), {}};
          });
          receive.sends_before.first = static_cast<std::uint32_t>(program_.awaited.size());
          program_.awaited.insert(program_.awaited.end(), before.begin(), before.end());
          receive.sends_before.last = static_cast<std::uint32_t>(program_.awaited.size());
        });
  }

  // A sum stays in FP32 as long as the next operation on it adds to it. Backwards: is it so? Then
  // forwards: was it so?
  void find_pieces() {
    struct Kept {
      Elements span;
      bool stays_wide = false;
    };
    std::vector<std::vector<Kept>> kept(receives_.list.size());
    Intervals<bool> added_to(elements_);
    for (int step = schedule_.steps() - 1; step >= 0; --step) {
      for (std::size_t i = receives_.step_end(step); i-- > receives_.step_begin(step);) {
        const Message& m = receives_.list[i];
        added_to.visit(m.span, [&](Elements span, bool& next) {
          if (m.reduce) kept[i].push_back({span, next});
          next = m.reduce;
        });
      }
      for (std::size_t i = sends_.step_begin(step); i < sends_.step_end(step); ++i)
        added_to.visit(sends_.list[i].span, [](Elements, bool& next) { next = false; });
    }
    Intervals<bool> wide(elements_);
    for (std::size_t i = 0; i < kept.size(); ++i) {
      RankProgram::Range& range = program_.receives[i].pieces;
      range.first = static_cast<std::uint32_t>(program_.pieces.size());
      for (const Kept& k : kept[i]) {
        wide.visit(k.span, [&](Elements span, bool& is_wide) {
          add_piece(range.first, {span, is_wide, k.stays_wide});
          is_wide = k.stays_wide;
        });
      }
      range.last = static_cast<std::uint32_t>(program_.pieces.size());
    }
  }

  void add_piece(std::uint32_t first, const RankProgram::Piece& piece) {
    if (program_.pieces.size() > first) {
      RankProgram::Piece& last = program_.pieces.back();
      if (last.sum_is_wide == piece.sum_is_wide && last.stays_wide == piece.stays_wide &&
          last.span.end() == piece.span.begin) {
        last.span.size += piece.span.size;
        widen(piece);
        return;
      }
    }
    program_.pieces.push_back(piece);
    widen(piece);
  }
  void widen(const RankProgram::Piece& piece) {
    if (!piece.sum_is_wide && !piece.stays_wide) return;
    Elements& wide = program_.wide;
    const std::int64_t begin =
        wide.size == 0 ? piece.span.begin : std::min(wide.begin, piece.span.begin);
    const std::int64_t end = std::max(wide.size == 0 ? 0 : wide.end(), piece.span.end());
    wide = {begin, end - begin};
  }

  [[nodiscard]] std::uint32_t window() const {
    std::int64_t largest = 1;
    for (const Message& m : receives_.list) largest = std::max(largest, m.span.size);
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(options_.window_elements / largest, 2, 16));
  }

  void find_posted() {
    const std::uint32_t most = window();
    const auto count = static_cast<std::uint32_t>(program_.receives.size());
    for (int step = 0; step < schedule_.steps(); ++step) {
      const auto begin = static_cast<std::uint32_t>(receives_.step_begin(step));
      const auto end = static_cast<std::uint32_t>(receives_.step_end(step));
      const bool whole = end - begin > most && some_sender_adds_to_what_it_sends(step);
      for (std::uint32_t i = begin; i < end; ++i) {
        std::uint32_t posted = std::min(count, i + most);
        if (whole) posted = std::max(posted, end);
        program_.receives[i].posted_with = posted;
        program_.most_posted = std::max(program_.most_posted, posted - i);
      }
    }
  }

  [[nodiscard]] bool some_sender_adds_to_what_it_sends(int step) const {
    std::map<int, std::vector<Elements>> sent;
    for (std::size_t i = receives_.step_begin(step); i < receives_.step_end(step); ++i)
      sent[receives_.list[i].peer].push_back(receives_.list[i].span);
    for (const auto& entry : sent) {  // no structured binding: clang up to 15 captures none
      const std::vector<Elements>& spans = entry.second;
      bool found = false;
      for_each_receive(schedule_, entry.first, step, Elements{0, elements_},
                       [&](const Transfer<std::int64_t>& t) {
                         found = found || std::any_of(spans.begin(), spans.end(), [&](Elements s) {
                                   return overlap(s, t.span);
                                 });
                       });
      if (found) return true;
    }
    return false;
  }

  const Schedule& schedule_;
  std::int64_t elements_;
  RankProgramOptions options_;
  Messages sends_;
  Messages receives_;
  std::vector<std::uint32_t> place_;  // of sends_.list in the program
  RankProgram program_;
};

}  // namespace

std::int64_t message_count(Elements transfer, std::int64_t message_elements) {
  return transfer.size / message_elements + (transfer.size % message_elements != 0 ? 1 : 0);
}

RankProgram compile(const Schedule& schedule, int rank, std::int64_t elements, WireType wire,
                    const RankProgramOptions& options) {
  return Compiler(schedule, rank, elements, options).compiled(wire);
}

}  // namespace paceline::models
