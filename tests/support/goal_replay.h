// GOAL as LogGOPSim's txt2bin reads it, and a small LogGP machine that runs it. Written from the
// grammar and the model alone; knows nothing of schedules.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <regex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

namespace paceline::test {

struct GoalOperation {
  char kind = 'c';  // s(end), r(ecv) or c(alc)
  std::uint64_t size = 0;
  int peer = -1;
  std::uint32_t tag = 0;
  std::vector<std::size_t> needs;  // operations of the rank, all before this one
};
using GoalFile = std::vector<std::vector<GoalOperation>>;  // by rank

// Throws std::runtime_error with the line where txt2bin would stop.
inline GoalFile parse_goal(const std::string& text) {
  static const std::regex ranks_line("num_ranks ([0-9]+)");
  static const std::regex rank_line("rank ([0-9]+) \\{");
  static const std::regex calc_line("([a-zA-Z][a-zA-Z0-9_]*): calc ([0-9]+)");
  static const std::regex message_line(
      "([a-zA-Z][a-zA-Z0-9_]*): (send|recv) ([0-9]+)b (to|from) ([0-9]+) tag ([0-9]+)");
  static const std::regex needs_line("([a-zA-Z][a-zA-Z0-9_]*) requires ([a-zA-Z][a-zA-Z0-9_]*)");
  GoalFile file;
  std::map<std::string, std::size_t> labels;
  std::vector<GoalOperation>* rank = nullptr;
  std::size_t next_rank = 0;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const auto refuse = [&line](const char* why) {
      throw std::runtime_error(std::string(why) + ": " + line);
    };
    if (line.empty() || line.starts_with("//")) continue;
    std::smatch m;
    if (std::regex_match(line, m, ranks_line)) {
      file.resize(std::stoul(m[1]));
    } else if (std::regex_match(line, m, rank_line)) {
      if (rank != nullptr || std::stoul(m[1]) != next_rank || next_rank >= file.size())
        refuse("ranks come in order");
      rank = &file[next_rank++];
      labels.clear();
    } else if (line == "}") {
      if (rank == nullptr || rank->empty()) refuse("nothing to close");
      rank = nullptr;
    } else if (rank == nullptr) {
      refuse("outside of a rank");
    } else if (std::regex_match(line, m, needs_line)) {
      if (!labels.contains(m[1]) || !labels.contains(m[2])) refuse("undefined label");
      if (labels[m[2]] >= labels[m[1]]) refuse("needs what comes later");
      (*rank)[labels[m[1]]].needs.push_back(labels[m[2]]);
    } else if (std::regex_match(line, m, calc_line)) {
      if (!labels.emplace(m[1], rank->size()).second) refuse("label used twice");
      rank->push_back({'c', std::stoull(m[2]), -1, 0, {}});
    } else if (std::regex_match(line, m, message_line)) {
      if (!labels.emplace(m[1], rank->size()).second) refuse("label used twice");
      if ((m[2] == "send") != (m[4] == "to")) refuse("send to, recv from");
      if (std::stoull(m[3]) == 0) refuse("size - 1 is negative");
      if (std::stoull(m[6]) >= 0xFFFFFFFF || std::stoul(m[5]) >= file.size())
        refuse("out of range");
      rank->push_back({m[2] == "send" ? 's' : 'r',
                       std::stoull(m[3]),
                       std::stoi(m[5]),
                       static_cast<std::uint32_t>(std::stoul(m[6])),
                       {}});
    } else {
      refuse("no such line");
    }
  }
  if (rank != nullptr || next_rank != file.size()) throw std::runtime_error("ends too early");
  return file;
}

// When does a message leave: as soon as its sender has come to it (LogGOPSim), or when both ranks
// have (synchronous steps, step_engine.h)?
enum class Departure { sender, both };

// Runs a file with o = g = 0: a message takes latency and then, on the port of its receiver, its
// bytes; a rank sends one message after the other, in the order of the file where several are
// ready, and receives one after the other. A send is over when its message has arrived.
class GoalMachine {
 public:
  GoalMachine(const GoalFile& file, double latency, double per_byte, Departure departure)
      : latency_(latency), per_byte_(per_byte), departure_(departure) {
    for (std::size_t rank = 0; rank < file.size(); ++rank) {
      first_.push_back(nodes_.size());
      for (const GoalOperation& op : file[rank]) nodes_.push_back({op, static_cast<int>(rank)});
    }
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      Node& node = nodes_[n];
      for (const std::size_t need : node.op.needs)
        nodes_[first_[static_cast<std::size_t>(node.rank)] + need].frees.push_back(n);
      node.missing = node.op.needs.size();
      if (node.op.kind == 'c') continue;
      const bool sends = node.op.kind == 's';
      const auto key = std::make_tuple(sends ? node.rank : node.op.peer,
                                       sends ? node.op.peer : node.rank, node.op.tag);
      std::optional<std::size_t>& end = sends ? pairs_[key].first : pairs_[key].second;
      if (end) throw std::runtime_error("two messages with one tag");
      end = n;
    }
    for (auto& [key, pair] : pairs_) {
      if (!pair.first || !pair.second) throw std::runtime_error("a message has one end");
      nodes_[*pair.first].other = *pair.second;
      nodes_[*pair.second].other = *pair.first;
      if (nodes_[*pair.first].op.size != nodes_[*pair.second].op.size)
        throw std::runtime_error("the ends of a message differ in size");
    }
    out_free_.assign(file.size(), 0);
    in_free_.assign(file.size(), 0);
  }

  // When the last rank is done. Throws std::runtime_error on a deadlock.
  double run() {
    for (std::size_t n = 0; n < nodes_.size(); ++n) {
      if (nodes_[n].missing == 0) posted(n, 0);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      if (event.arrival) {
        arrive(event);
      } else {
        depart(event);
      }
    }
    double last = 0;
    for (const Node& node : nodes_) {
      if (node.end < 0) throw std::runtime_error("deadlock");
      last = std::max(last, node.end);
    }
    return last;
  }

 private:
  struct Node {
    GoalOperation op;
    int rank = 0;
    std::size_t missing = 0;
    std::vector<std::size_t> frees = {};
    std::size_t other = 0;  // end of the message
    double ready = 0;       // the latest end of what it needs
    double posted = -1;
    double end = -1;
  };
  struct Event {
    double time;
    std::size_t send;
    bool arrival;
    bool operator>(const Event& other) const {
      return std::tie(time, send) > std::tie(other.time, other.send);
    }
  };

  void posted(std::size_t n, double time) {
    Node& node = nodes_[n];
    node.posted = time;
    if (node.op.kind == 'c') return finish(n, time + static_cast<double>(node.op.size));
    if (departure_ == Departure::sender) {
      if (node.op.kind == 's') events_.push({time, n, false});
      if (node.op.kind == 'r' && node.end >= 0) over(n);  // it has been waiting here
      return;
    }
    const Node& other = nodes_[node.other];
    if (other.posted >= 0)
      events_.push({std::max(time, other.posted), node.op.kind == 's' ? n : node.other, false});
  }
  void depart(const Event& event) {
    double& free = out_free_[static_cast<std::size_t>(nodes_[event.send].rank)];
    if (free > event.time) return events_.push({free, event.send, false});
    free = event.time + bytes_time(event.send);
    events_.push({event.time + latency_, event.send, true});
  }
  void arrive(const Event& event) {
    const std::size_t receive = nodes_[event.send].other;
    double& free = in_free_[static_cast<std::size_t>(nodes_[receive].rank)];
    if (free > event.time) return events_.push({free, event.send, true});
    free = event.time + bytes_time(event.send);
    nodes_[receive].end = free;
    if (nodes_[receive].posted >= 0) over(receive);
  }
  void over(std::size_t receive) {
    const double time = std::max(nodes_[receive].end, nodes_[receive].posted);
    finish(receive, time);
    finish(nodes_[receive].other, time);
  }
  void finish(std::size_t n, double time) {
    nodes_[n].end = time;
    for (const std::size_t freed : nodes_[n].frees) {
      Node& node = nodes_[freed];
      node.ready = std::max(node.ready, time);
      if (--node.missing == 0) posted(freed, node.ready);
    }
  }
  [[nodiscard]] double bytes_time(std::size_t n) const {
    return static_cast<double>(nodes_[n].op.size) * per_byte_;
  }

  double latency_;
  double per_byte_;
  Departure departure_;
  std::vector<std::size_t> first_;  // node of each rank
  std::vector<Node> nodes_;
  std::map<std::tuple<int, int, std::uint32_t>,
           std::pair<std::optional<std::size_t>, std::optional<std::size_t>>>
      pairs_;
  std::vector<double> out_free_;
  std::vector<double> in_free_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace paceline::test
