// Tests: tests/models/algorithms_test.cc.
//
// Finds algorithms of the catalogue by name, says which options they take, and checks their ranks.
#include <fmt/format.h>

#include "models/base/names.h"
#include "models/collective/catalogue.h"

namespace paceline::models {
namespace {

const CollectiveAlgorithm& find(std::span<const CollectiveAlgorithm> among,
                                std::string_view wanted) {
  for (const CollectiveAlgorithm& algorithm : among)
    if (algorithm.name == wanted) return algorithm;
  std::vector<std::string> names;
  for (const CollectiveAlgorithm& algorithm : among) names.emplace_back(algorithm.name);
  throw unknown_name("schedule", wanted, names);
}

}  // namespace

const CollectiveAlgorithm& collective_algorithm(std::string_view name) {
  return find(collective_catalogue(), name);
}

const CollectiveAlgorithm& all_reduce_algorithm(std::string_view name) {
  return find(all_reduce_catalogue(), name);
}

std::vector<std::string> collective_names() {
  std::vector<std::string> names;
  for (const CollectiveAlgorithm& algorithm : collective_catalogue())
    names.emplace_back(algorithm.name);
  return names;
}

ScheduleOptions taken_options(const CollectiveAlgorithm& algorithm,
                              const ScheduleOptions& options) {
  ScheduleOptions taken{.ranks = options.ranks};
  if (algorithm.takes_group) taken.group_size = options.group_size;
  if (algorithm.takes_segments) taken.segments = options.segments;
  if (algorithm.takes_rings) taken.rings = options.rings;
  if (algorithm.takes_servers) {
    taken.servers = options.servers;
    taken.first_server = options.first_server;
  }
  return taken;
}

std::string described(std::string_view algorithm, const ScheduleOptions& options) {
  std::string text(algorithm);
  const auto add = [&text](const char* format, int value) {
    if (value > 0) text += fmt::format(fmt::runtime(format), value);
  };
  add(" k={}", options.group_size);
  add(options.segments == 1 ? ", {} segment" : ", {} segments", options.segments);
  add(options.rings == 1 ? ", {} ring" : ", {} rings", options.rings);
  if (options.servers == 1) text += fmt::format(" at rank {}", options.first_server);
  if (options.servers > 1) add(" on {} servers", options.servers);
  return text;
}

void check_rank_count(int ranks) {
  if (ranks < 1 || ranks > max_ranks) {
    throw InputError(fmt::format("{} ranks", ranks),
                     fmt::format("choose 1 to {} ranks", max_ranks));
  }
}

}  // namespace paceline::models
