// Tests: tests/models/export_goal_test.cc, tests/agreement/goal_agreement_test.cc.
#include "models/collective/export/goal.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <vector>

#include "models/collective/export/messages.h"

namespace paceline::models {
namespace {

// Writes the block of one rank, step after step.
class RankText {
 public:
  RankText(const GoalOptions& options, std::string& text) : options_(options), text_(text) {}

  void send(const Message& m) { operation(m, "send", 's', "to", m.to); }
  void receive(const Message& m) {
    operation(m, "recv", 'r', "from", m.from);
    received_.push_back(ends_.back());
    if (m.reduce) reduced_ += bytes(m);
  }
  void end_step(int step) {
    const double ns =
        options_.gamma ? std::round(static_cast<double>(reduced_) * options_.gamma->value() * 1e9)
                       : 0;
    if (ns > 0) {
      const std::string label = fmt::format("c{}", step + 1);
      line("{}: calc {:.0f}\n", label, ns);
      for (const std::string& received : received_) requires_(label, received);
      std::erase_if(ends_, [](const std::string& end) { return end.front() == 'r'; });
      ends_.push_back(label);
    }
    before_ = std::move(ends_);
    last_step_ = step;
    ends_.clear();
    received_.clear();
    reduced_ = 0;
  }

 private:
  [[nodiscard]] std::int64_t bytes(const Message& m) const {
    return m.span.size * options_.bytes_per_element;
  }
  template <class... Args>
  void line(fmt::format_string<Args...> format, Args&&... args) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<Args>(args)...);
  }
  void requires_(const std::string& later, const std::string& earlier) {
    line("{} requires {}\n", later, earlier);
  }
  void operation(const Message& m, const char* verb, char letter, const char* preposition,
                 int peer) {
    if (ends_.empty() && before_.size() > 2) {
      const std::string join = fmt::format("j{}", last_step_ + 1);
      line("{}: calc 0\n", join);
      for (const std::string& end : before_) requires_(join, end);
      before_ = {join};
    }
    const std::string label = m.index == 0
                                  ? fmt::format("{}{}_{}", letter, m.step + 1, peer)
                                  : fmt::format("{}{}_{}_{}", letter, m.step + 1, peer, m.index);
    line("{}: {} {}b {} {} tag {}\n", label, verb, bytes(m), preposition, peer, m.serial);
    for (const std::string& end : before_) requires_(label, end);
    ends_.push_back(label);
  }

  const GoalOptions& options_;
  std::string& text_;
  std::vector<std::string> before_;    // labels that end the last step in which the rank took part
  std::vector<std::string> ends_;      // labels that end this step
  std::vector<std::string> received_;  // labels of the messages received in this step
  std::int64_t reduced_ = 0;           // bytes that are reduced in this step
  int last_step_ = 0;
};

// How far behind its sender the receiver is, around all ranks. Simulators send in the order of the
// file: if all began with rank 0, they would queue for it.
int distance(const Message& m, int ranks) {
  return m.to > m.from ? m.to - m.from : m.to - m.from + ranks;
}

std::string header(const Schedule& schedule, const GoalOptions& options) {
  std::string text = "// GOAL, for LogGOPSim and ATLAHS; written by paceline export.\n";
  fmt::format_to(std::back_inserter(text), "// {}\n", options.title);
  fmt::format_to(
      std::back_inserter(text),
      "// {} bytes: {} elements of {} bytes; {} step{}. sS_R and rS_R: message of step S "
      "to and from rank R.\n",
      options.elements * options.bytes_per_element, options.elements, options.bytes_per_element,
      schedule.steps(), schedule.steps() == 1 ? "" : "s");
  if (options.gamma) {
    fmt::format_to(std::back_inserter(text), "// Reductions are cS: {:.6g} ns for each byte.\n",
                   options.gamma->value() * 1e9);
  } else {
    text += "// Reductions are left out: no cluster was given to say what they cost.\n";
  }
  text +=
      "// A message waits for both ranks: simulate with rendezvous for every size (LogGOPSim -S "
      "0).\n";
  return text;
}

}  // namespace

void write_goal(const Schedule& schedule, const GoalOptions& options,
                const std::function<void(std::string_view)>& write) {
  check_exported_messages(schedule, options.elements);
  std::string text = header(schedule, options);
  fmt::format_to(std::back_inserter(text), "num_ranks {}\n", schedule.ranks());
  write(text);
  for (int rank = 0; rank < schedule.ranks(); ++rank) {
    text.clear();
    fmt::format_to(std::back_inserter(text), "\nrank {} {{\n", rank);
    RankText out(options, text);
    RankMessages all = messages_of_rank(schedule, rank, options.elements);
    for_each_step(all, [&](auto sent, auto received) {
      std::vector<Message> order(sent.begin(), sent.end());
      std::stable_sort(order.begin(), order.end(), [&](const Message& a, const Message& b) {
        return distance(a, schedule.ranks()) < distance(b, schedule.ranks());
      });
      for (const Message& m : order) out.send(m);
      for (const Message& m : received) out.receive(m);
      out.end_step(sent.empty() ? received.front().step : sent.front().step);
    });
    if (all.sent.empty() && all.received.empty()) text += "idle: calc 0\n";
    text += "}\n";
    write(text);
  }
}

std::string goal(const Schedule& schedule, const GoalOptions& options) {
  std::string text;
  write_goal(schedule, options, [&](std::string_view piece) { text += piece; });
  return text;
}

}  // namespace paceline::models
