// Tests: tests/models/strategy_test.cc.
#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/plan/strategy.h"
#include "models/plan/tuned.h"

namespace paceline::models {
namespace {

// Returns the index of an all-reduce of the catalogue in plan.schedules, where it is added if it is
// not there yet.
int planned(Plan& plan, std::string_view name, const ScheduleOptions& wanted) {
  const CollectiveAlgorithm& algorithm = all_reduce_algorithm(name);
  const ScheduleOptions options = taken_options(algorithm, wanted);
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    if (plan.schedules[i].algorithm == name && plan.schedules[i].options == options)
      return static_cast<int>(i);
  }
  plan.schedules.push_back({std::string(name), options, algorithm.build(options)});
  return static_cast<int>(plan.schedules.size()) - 1;
}

// The same for a library's own all-reduce.
int planned(Plan& plan, Library library) {
  if (plan.schedules.empty())
    plan.schedules.push_back({std::string(name(library)), {.ranks = plan.ranks}, {}, library});
  return 0;
}

// The same for servers of another system.
int planned(Plan& plan, const ServerUse& use) {
  for (std::size_t i = 0; i < plan.schedules.size(); ++i) {
    if (plan.schedules[i].served == use) return static_cast<int>(i);
  }
  plan.schedules.push_back({plan.strategy, {.ranks = plan.ranks}, {}, std::nullopt, use});
  return static_cast<int>(plan.schedules.size()) - 1;
}

// The same for K-FAC.
int planned(Plan& plan, const KfacUse& use) {
  if (plan.schedules.empty())
    plan.schedules.push_back(
        {plan.strategy, {.ranks = plan.ranks}, {}, std::nullopt, std::nullopt, use});
  return 0;
}

void check_served(int servers) {
  if (servers < 1 || servers > most_servers)
    throw InputError({"--servers"}, fmt::format("{} servers", servers),
                     fmt::format("choose 1 to {}", most_servers));
}

// Chooses a server for each bucket. Buckets come in the order of the plan.
class Placer {
 public:
  Placer(int servers, ServerPlacement placement)
      : held_(static_cast<std::size_t>(servers)), placement_(placement) {}
  int place(std::int64_t elements) {
    const std::size_t server =
        placement_ == ServerPlacement::round_robin
            ? next_++ % held_.size()
            : static_cast<std::size_t>(std::min_element(held_.begin(), held_.end()) -
                                       held_.begin());
    held_[server] += elements;
    return static_cast<int>(server);
  }

 private:
  std::vector<std::int64_t> held_;
  ServerPlacement placement_;
  std::size_t next_ = 0;
};

// Each part is a bucket of the plan, so that there may be no more than a plan has room for.
void check_parts(std::span<const Gradient> gradients, std::int64_t part, Bytes partition) {
  constexpr std::int64_t most_parts = 100'000;
  std::int64_t parts = 0;
  for (const Gradient& gradient : gradients) parts += (gradient.elements - 1) / part + 1;
  if (parts > most_parts)
    throw InputError(
        fmt::format("partitions of {} cut the gradients into {} parts", to_text(partition), parts),
        fmt::format("choose a size that gives at most {}", most_parts));
}

// How a bucket of each way travels: visit it with the way. Buckets come in the order of the plan, which
// gets what they need.
class BucketSchedules {
 public:
  BucketSchedules(const Strategy& strategy, const Thresholds& thresholds, std::size_t gradients,
                  Plan& plan)
      : thresholds_(thresholds),
        gradients_(static_cast<std::int64_t>(gradients)),
        plan_(plan),
        placer_(is_on_servers(strategy) ? thresholds.servers : 1, placement_of(strategy)) {}

  // Each returns an index of the plan's schedules.
  int operator()(const Bucket&, const Scheduled& way) {
    return planned(plan_, way.algorithm, options());
  }

  int operator()(const Bucket& bucket, const Hybrid& way) {
    const bool is_small = plan_.bytes(bucket) <= thresholds_.hybrid;
    return planned(plan_, is_small ? way.small : way.large, options());
  }

  int operator()(const Bucket& bucket, const OnServers& way) {
    ScheduleOptions chosen = options();
    chosen.first_server =
        server_rank(placer_.place(bucket.elements), plan_.ranks, thresholds_.servers);
    return planned(plan_, way.algorithm, chosen);
  }

  int operator()(const Bucket&, Library library) { return planned(plan_, library); }

  int operator()(const Bucket& bucket, const Served& way) {
    return planned(plan_, ServerUse{thresholds_.servers, thresholds_.own_machines,
                                    server_of(way, bucket), thresholds_.transport});
  }

  int operator()(const Bucket&, Preconditioned) {
    return planned(plan_, KfacUse{thresholds_.factors_every, thresholds_.placement});
  }

 private:
  static bool is_on_servers(const Strategy& strategy) {
    return strategy.on_servers() != nullptr || strategy.served() != nullptr;
  }

  [[nodiscard]] ServerPlacement placement_of(const Strategy& strategy) const {
    const Served* served = strategy.served();
    return served == nullptr ? thresholds_.placement
                             : served->placement.value_or(ServerPlacement::balanced);
  }

  [[nodiscard]] ScheduleOptions options() const {
    return {.ranks = plan_.ranks,
            .group_size = thresholds_.group_size,
            .segments = thresholds_.segments,
            .rings = thresholds_.rings,
            .servers = 1};
  }

  // The server that sums a bucket, or -1 if all servers share it. A slice of a tensor counts with
  // its own size, and is a key of its own.
  int server_of(const Served& way, const Bucket& bucket) {
    if (bucket.elements >= way.shared_from) return -1;
    if (way.placement) return placer_.place(bucket.elements);
    const auto key = thresholds_.partition > Bytes{0}
                         ? static_cast<std::int64_t>(plan_.buckets.size())
                         : gradients_ - 1 - bucket.first_gradient;
    return static_cast<int>(9973 * key % thresholds_.servers);
  }

  const Thresholds& thresholds_;
  std::int64_t gradients_;
  Plan& plan_;
  Placer placer_;
};

// Cuts each gradient by itself into parts of this many elements and a last one.
template <class Add>
void cut_into_parts(std::span<const Gradient> gradients, std::int64_t part, Add add) {
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    for (std::int64_t first = 0; first < gradients[i].elements; first += part)
      add(Bucket{.first_gradient = static_cast<int>(i),
                 .gradient_count = 1,
                 .elements = std::min(part, gradients[i].elements - first),
                 .first_element = first});
  }
}

// Joins gradients until a bucket holds theta or more. Inductor lets no bucket grow beyond theta.
template <class Add>
void join_up_to_theta(const Strategy& strategy, std::span<const Gradient> gradients,
                      const Thresholds& thresholds, const Plan& plan, Add add) {
  constexpr Bytes whole{1e300};  // all gradients of K-FAC travel together
  const Bytes theta = strategy.preconditions()           ? whole
                      : strategy.fusion == Fusion::never ? Bytes{0}
                                                         : thresholds.fusion;
  const bool closes_before = strategy.other && strategy.other->system == System::inductor;
  // Whether the bucket waits for the gradient behind it.
  const auto stays_open = [&](Bucket bucket, const Gradient& next) {
    const Bytes limit =
        plan.buckets.empty() && theta > Bytes{0} ? thresholds.first_fusion.value_or(theta) : theta;
    if (!closes_before) return plan.bytes(bucket) < limit;
    bucket.elements += next.elements;
    return plan.bytes(bucket) <= limit;
  };
  Bucket open;
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    open.elements += gradients[i].elements;
    ++open.gradient_count;
    if (i + 1 < gradients.size() && stays_open(open, gradients[i + 1])) continue;
    add(open);
    open = Bucket{.first_gradient = static_cast<int>(i) + 1};
  }
}

void check_makes_plans(const Strategy& strategy, int ranks, const Thresholds& thresholds) {
  if (is_tuned(strategy))
    throw InputError({"--strategy"}, "a tuned plan is made bucket by bucket",
                     "let paceline tune --plan-out write it, and give it by --plan");
  check_rank_count(ranks);
  if (strategy.on_servers() != nullptr) check_server_count(thresholds.servers, ranks);
  if (strategy.served() != nullptr) check_served(thresholds.servers);
}

}  // namespace

Plan make_plan(const Strategy& strategy, std::span<const Gradient> gradients, int ranks,
               WireType wire, const Thresholds& thresholds) {
  check_makes_plans(strategy, ranks, thresholds);
  Plan plan{.strategy = std::string(strategy.name),
            .ranks = ranks,
            .wire = wire,
            .overlap = strategy.overlap,
            .streams = std::max(1, thresholds.streams),
            .schedules = {},
            .buckets = {},
            .dispatch = thresholds.dispatch};
  BucketSchedules schedules(strategy, thresholds, gradients.size(), plan);
  const auto add = [&](Bucket bucket) {
    bucket.schedule =
        std::visit([&](const auto& way) { return schedules(bucket, way); }, strategy.all_reduce);
    plan.buckets.push_back(bucket);
  };
  if (thresholds.partition > Bytes{0}) {
    const auto part =
        std::max<std::int64_t>(1, std::llround(thresholds.partition / element_size(wire)));
    check_parts(gradients, part, thresholds.partition);
    cut_into_parts(gradients, part, add);
  } else {
    join_up_to_theta(strategy, gradients, thresholds, plan, add);
  }
  if (strategy.on_servers() != nullptr)
    plan.streams = std::max<int>(1, static_cast<int>(plan.buckets.size()));
  if (strategy.preconditions()) plan.streams = 1;
  return plan;
}

}  // namespace paceline::models
