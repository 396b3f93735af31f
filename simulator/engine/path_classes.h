// Kinds of messages: those that take the same time whatever the figures of the links are.
//
// A message's time rests on how far it goes, which says what alpha it has, and on how much of the
// bucket passes each of its links. Links of one rate have one bandwidth at every bound of the
// figures, so that of the links of one rate the one with the largest load alone matters. A schedule
// has few kinds of messages, and what a kind takes follows from the figures at once: a schedule is
// prepared once for all bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "simulator/engine/routes.h"

namespace paceline::simulator {

// What passes links of one rate (Routes::rate): a share of the bucket, or a number of messages.
struct RateLoad {
  int rate = 0;
  double load = 0;
  bool operator==(const RateLoad&) const = default;
};

// Adds the load of one more link of a way, whose loads are of different rates.
void add_load(std::vector<RateLoad>& way, RateLoad load);

// Seconds: alpha, and for each unit of load where one unit takes beta of its link.
struct PathTime {
  double alpha_s = 0;
  double per_byte_s = 0;
};

class PathClasses {
 public:
  // The kind of a way with these loads: the number of the first one that was equal.
  [[nodiscard]] int of(Routes::Distance distance, std::span<const RateLoad> loads);
  // The times that messages of each kind take on links with the figures of `routes`.
  [[nodiscard]] std::vector<PathTime> times(const Routes& routes) const;

 private:
  struct Kind {
    Routes::Distance distance;
    std::size_t first_load = 0;
    std::size_t end_load = 0;
    int next = -1;  // kind with the same hash
  };
  [[nodiscard]] std::span<const RateLoad> loads_of(const Kind& kind) const {
    return std::span(loads_).subspan(kind.first_load, kind.end_load - kind.first_load);
  }
  std::vector<Kind> kinds_;
  std::vector<RateLoad> loads_;
  std::unordered_map<std::uint64_t, int> first_of_hash_;
};

}  // namespace paceline::simulator
