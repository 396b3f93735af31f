// Tests: tests/simulator/path_classes_test.cc.
#include "simulator/engine/path_classes.h"

#include <algorithm>
#include <bit>

#include "models/base/to_size.h"

namespace paceline::simulator {
namespace {

std::uint64_t mixed(std::uint64_t hash, std::uint64_t value) {
  constexpr std::uint64_t golden = 0x9e3779b97f4a7c15;
  hash = (hash ^ value) * golden;
  return hash ^ (hash >> 32);
}

std::uint64_t hash_of(Routes::Distance distance, std::span<const RateLoad> loads) {
  std::uint64_t hash = mixed(static_cast<std::uint64_t>(distance.hops),
                             std::bit_cast<std::uint64_t>(distance.alpha_s));
  for (const RateLoad& load : loads)
    hash = mixed(hash, std::bit_cast<std::uint64_t>(load.load) +
                           (static_cast<std::uint64_t>(load.rate) << 52));
  return hash;
}

}  // namespace

void add_load(std::vector<RateLoad>& way, RateLoad load) {
  const auto known = std::find_if(way.begin(), way.end(),
                                  [&](const RateLoad& other) { return other.rate == load.rate; });
  if (known == way.end()) {
    way.push_back(load);
  } else {
    known->load = std::max(known->load, load.load);
  }
}

int PathClasses::of(Routes::Distance distance, std::span<const RateLoad> loads) {
  const auto number = static_cast<int>(kinds_.size());
  const auto [entry, is_new] = first_of_hash_.try_emplace(hash_of(distance, loads), number);
  int* link = &entry->second;
  if (!is_new) {
    while (*link >= 0) {
      Kind& known = kinds_[to_size(*link)];
      if (known.distance == distance && std::ranges::equal(loads_of(known), loads)) return *link;
      link = &known.next;
    }
    *link = number;
  }
  const std::size_t first = loads_.size();
  loads_.insert(loads_.end(), loads.begin(), loads.end());
  kinds_.push_back({distance, first, loads_.size()});
  return number;
}

std::vector<PathTime> PathClasses::times(const Routes& routes) const {
  std::vector<PathTime> times;
  times.reserve(kinds_.size());
  for (const Kind& kind : kinds_) {
    PathTime time{.alpha_s = routes.alpha_s(kind.distance)};
    for (const RateLoad& load : loads_of(kind))
      time.per_byte_s = std::max(time.per_byte_s, load.load * routes.beta_s_of_rate(load.rate));
    times.push_back(time);
  }
  return times;
}

}  // namespace paceline::simulator
