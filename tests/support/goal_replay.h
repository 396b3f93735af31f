// GOAL as LogGOPSim's txt2bin reads it, and two machines that run it. Neither knows schedules.
//
// SynchronousMachine has the synchronous steps of simulator/engine/step_engine.h, with ports that
// carry one message after the other. It shows that a file says of each rank what the schedule says.
// LogGopsMachine is LogGOPSim's model of a host, and shows what that simulator makes of a file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <queue>
#include <regex>
#include <set>
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

// A message leaves when both of its ranks have come to it. It takes the latency, and then, on the
// port of its receiver, its bytes. A rank sends one message after the other, in the order of the
// file where several are ready, and receives one after the other, both at the same time. A send is
// over when its message has arrived.
class SynchronousMachine {
 public:
  SynchronousMachine(const GoalFile& file, double latency, double per_byte)
      : latency_(latency), per_byte_(per_byte) {
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
    finish(receive, free);
    finish(event.send, free);
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
  std::vector<std::size_t> first_;  // node of each rank
  std::vector<Node> nodes_;
  std::map<std::tuple<int, int, std::uint32_t>,
           std::pair<std::optional<std::size_t>, std::optional<std::size_t>>>
      pairs_;
  std::vector<double> out_free_;
  std::vector<double> in_free_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

// LogGOPSim's parameters: L, o, g in nanoseconds, G in nanoseconds for a byte, and S, the largest
// message that is sent eagerly, in bytes. O is 0.
struct LogGops {
  std::int64_t L = 0;
  std::int64_t o = 0;
  std::int64_t g = 0;
  std::int64_t G = 0;
  std::uint64_t S = 0;
};

// What LogGOPSim does with a file, after its paper (Hoefler, Schneider, Lumsdaine 2010) and its
// source (spcl/LogGOPSim d5bb14a, src/LogGOPSim/LogGOPSim.cpp), written anew:
//  - A send of s bytes starts when its rank's CPU and the sending side of its NIC are free. It takes
//    the CPU for o, and the NIC for g + (s-1) G. Its first byte arrives o + L later.
//  - The message is taken in when the receiving rank's CPU and the receiving side of its NIC are
//    free. That takes the CPU for o + (s-1) G, and the NIC for g + (s-1) G: while a rank receives,
//    it cannot start a send.
//  - A send of at most S bytes is over when it starts. A larger one is over when its receiver begins
//    to take it in and has posted the receive.
//  - A calc takes the CPU.
// Events at one time are handled in the order in which they came up.
class LogGopsMachine {
 public:
  LogGopsMachine(const GoalFile& file, const LogGops& parameters)
      : file_(file), parameters_(parameters) {
    for (const auto& operations : file_) {
      hosts_.emplace_back();
      for (std::size_t i = 0; i < operations.size(); ++i) {
        hosts_.back().missing.push_back(operations[i].needs.size());
        hosts_.back().frees.emplace_back();
        for (const std::size_t need : operations[i].needs) hosts_.back().frees[need].push_back(i);
      }
    }
  }

  // When the last rank is done, in nanoseconds. Throws std::runtime_error on a deadlock.
  std::int64_t run() {
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      for (std::size_t i = 0; i < file_[host].size(); ++i) {
        if (file_[host][i].needs.empty()) hosts_[host].free.push_back(i);
      }
      push_free(host);
    }
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      handle(event);
      for (const std::size_t host : touched_) push_free(host);
      touched_.clear();
    }
    std::int64_t last = 0;
    std::size_t left = 0;
    for (const Host& host : hosts_) {
      last = std::max(last, host.cpu);
      left += static_cast<std::size_t>(
          std::count(host.is_done.begin(), host.is_done.end(), std::uint8_t{0}));
      left += host.is_done.size() < host.missing.size() ? 1 : 0;
    }
    if (left > 0) throw std::runtime_error("deadlock");
    return last;
  }

 private:
  struct Host {
    std::int64_t cpu = 0;  // when it is free again, as the two sides of the NIC
    std::int64_t receiving = 0;
    std::int64_t sending = 0;
    std::vector<std::size_t> missing;  // how many operations each one waits for
    std::vector<std::vector<std::size_t>> frees;
    std::vector<std::size_t> free;  // operations that wait for nothing and are not queued yet
    std::vector<std::uint8_t> is_done = {};
    std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> posted = {};   // by sender and tag
    std::map<std::pair<std::size_t, std::uint32_t>, std::size_t> arrived = {};  // sends, likewise
  };
  struct Event {
    std::int64_t time = 0;
    std::uint64_t order = 0;
    std::size_t host = 0;
    std::size_t operation = 0;  // of the sender, for a message
    bool is_message = false;
    std::size_t sender = 0;
    bool operator>(const Event& other) const {
      return std::tie(time, order) > std::tie(other.time, other.order);
    }
  };

  // Queues what has become free: sends, then receives, then calcs.
  void push_free(std::size_t index) {
    Host& host = hosts_[index];
    const auto rank = [&](std::size_t i) {
      const char kind = file_[index][i].kind;
      return kind == 's' ? 0 : kind == 'r' ? 1 : 2;
    };
    std::stable_sort(host.free.begin(), host.free.end(),
                     [&](std::size_t a, std::size_t b) { return rank(a) < rank(b); });
    for (const std::size_t i : host.free) {
      const std::int64_t time =
          file_[index][i].kind == 's' ? std::max(host.cpu, host.sending) : host.cpu;
      events_.push({time, order_++, index, i});
    }
    host.free.clear();
  }
  void done(std::size_t index, std::size_t operation) {
    Host& host = hosts_[index];
    host.is_done.resize(host.missing.size());
    host.is_done[operation] = 1;
    for (const std::size_t i : host.frees[operation]) {
      if (--host.missing[i] == 0) host.free.push_back(i);
    }
    touched_.insert(index);
  }
  void handle(Event event) {
    if (event.is_message) return take_in(event);
    Host& host = hosts_[event.host];
    const GoalOperation& operation = file_[event.host][event.operation];
    if (operation.kind == 'r') return post(event, operation);
    const bool is_send = operation.kind == 's';
    const std::int64_t free = is_send ? std::max(host.cpu, host.sending) : host.cpu;
    if (free > event.time) {
      event.time = free;
      return events_.push(event);
    }
    if (!is_send) {
      host.cpu = event.time + static_cast<std::int64_t>(operation.size);
      return done(event.host, event.operation);
    }
    host.cpu = event.time + parameters_.o;
    host.sending = event.time + parameters_.g + bytes_time(operation);
    events_.push({event.time + parameters_.o + parameters_.L, order_++,
                  static_cast<std::size_t>(operation.peer), event.operation, true, event.host});
    if (operation.size <= parameters_.S) done(event.host, event.operation);
  }
  void post(const Event& event, const GoalOperation& operation) {
    Host& host = hosts_[event.host];
    const std::pair key{static_cast<std::size_t>(operation.peer), operation.tag};
    const auto message = host.arrived.find(key);
    if (message == host.arrived.end()) {
      host.posted.emplace(key, event.operation);
      return;
    }
    release_sender(key.first, message->second, event.time);
    done(event.host, event.operation);
  }
  void take_in(Event event) {
    Host& host = hosts_[event.host];
    const std::int64_t free = std::max(host.cpu, host.receiving);
    if (free > event.time) {
      event.time = free;
      return events_.push(event);
    }
    const GoalOperation& send = file_[event.sender][event.operation];
    host.cpu = event.time + parameters_.o + bytes_time(send);
    host.receiving = event.time + parameters_.g + bytes_time(send);
    const std::pair key{event.sender, send.tag};
    const auto receive = host.posted.find(key);
    if (receive == host.posted.end()) {
      host.arrived.emplace(key, event.operation);
      return;
    }
    release_sender(event.sender, event.operation, event.time);
    done(event.host, receive->second);
  }
  void release_sender(std::size_t index, std::size_t operation, std::int64_t time) {
    if (file_[index][operation].size <= parameters_.S) return;
    Host& sender = hosts_[index];
    sender.cpu = std::max(sender.cpu, time);
    sender.sending = std::max(sender.sending, time);
    done(index, operation);
  }
  [[nodiscard]] std::int64_t bytes_time(const GoalOperation& operation) const {
    return (static_cast<std::int64_t>(operation.size) - 1) * parameters_.G;
  }

  GoalFile file_;
  LogGops parameters_;
  std::vector<Host> hosts_;
  std::set<std::size_t> touched_;  // hosts on which an operation was done
  std::uint64_t order_ = 0;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace paceline::test
