// Tests: tests/models/strategy_test.cc.
#include "models/plan/strategy.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <variant>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "models/plan/tuned.h"

namespace paceline::models {
namespace {

constexpr std::array catalogue = {
    Strategy{.name = "ring",
             .summary = "a ring all-reduce for each tensor",
             .source = "Jizhi 4.3, its baseline",
             .fusion = Fusion::never,
             .all_reduce = Scheduled{"ring"}},
    Strategy{.name = "fused-ring",
             .summary = "tensors fused up to theta, ring all-reduce",
             .source = "Jizhi 4.3; Horovod 2018",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"}},
    Strategy{.name = "halving-doubling",
             .summary = "recursive halving and doubling for each tensor",
             .source = "Hitchhiker VI; Goyal 2017",
             .all_reduce = Scheduled{"halving-doubling"}},
    Strategy{.name = "hierarchical",
             .summary = "three phases in groups of k, for each tensor",
             .source = "Jizhi 4.3",
             .all_reduce = Scheduled{"hierarchical"}},
    Strategy{.name = "hybrid",
             .summary = "fused; hierarchical up to eta, ring above",
             .source = "Jizhi 4.3",
             .fusion = Fusion::by_default,
             .all_reduce = Hybrid{.small = "hierarchical", .large = "ring"}},
    Strategy{.name = "bidirectional-ring",
             .summary = "fused; half of each bucket around the ring in each direction",
             .source = "Jain & Sabharwal 2010",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"bidirectional-ring"}},
    Strategy{.name = "multi-ring",
             .summary = "fused; a share of each bucket around each of several disjoint rings",
             .source = "Cho 2017 (PowerAI DDL)",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"multi-ring"}},
    Strategy{.name = "recursive-doubling",
             .summary = "fused; all of a bucket with partners at doubling distance",
             .source = "Thakur 2005",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"recursive-doubling"}},
    Strategy{.name = "binary-blocks",
             .summary = "fused; halving-doubling in blocks of powers of two",
             .source = "Hitchhiker VII",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"binary-blocks"}},
    Strategy{.name = "hierarchical-scatter",
             .summary = "fused; reduce-scatter in groups of k, halving-doubling across",
             .source = "Goyal 2017, 3.2; NCCL",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"hierarchical-scatter"}},
    Strategy{.name = "goyal",
             .summary = "for each tensor; through the masters up to 256 KB, scattered above",
             .source = "Goyal 2017, 3.2",
             .all_reduce = Hybrid{.small = "hierarchical-direct",
                                  .large = "hierarchical-scatter",
                                  .threshold = Bytes{256e3}}},
    Strategy{.name = "torus-2d",
             .summary = "fused; reduce-scatter along rows of k, ring along columns, all-gather",
             .source = "Mikami 2018 (Sony)",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"torus-2d"}},
    Strategy{.name = "double-binary-tree",
             .summary = "fused; half of each bucket over each of two trees, in segments",
             .source = "Sanders 2009; NCCL 2.4",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"double-binary-tree"}},
    Strategy{.name = "direct-exchange",
             .summary = "fused; each rank sums its part of every bucket",
             .source = "Hitchhiker IV",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"direct-exchange"}},
    Strategy{.name = "parameter-server",
             .summary = "each tensor on one of s servers among the ranks, all at once",
             .source = "Li 2014; PAISoar 2",
             .all_reduce = OnServers{"parameter-server"}},
    Strategy{.name = "nccl",
             .summary = "fused; NCCL's own choice of ring or tree, timed by its tuning model",
             .source = "NVIDIA NCCL 2.28, src/graph/tuning.cc; NCCL tuning",
             .fusion = Fusion::by_default,
             .all_reduce = Library::nccl},
    Strategy{.name = "open-mpi",
             .summary = "fused; MPI_Allreduce of Open MPI, timed by its calibrated curve",
             .source = "Open MPI; the profile",
             .fusion = Fusion::by_default,
             .all_reduce = Library::open_mpi},
    Strategy{.name = "no-overlap",
             .summary = "fused-ring after the whole backward pass",
             .source = "for comparison",
             .fusion = Fusion::by_default,
             .all_reduce = Scheduled{"ring"},
             .overlap = Overlap::none},
};

// Whatever reads an algorithm from it reads the plan's schedules instead (tuned.h).
constexpr Strategy tuned = {
    .name = "tuned",
    .summary = "the best all-reduce for each bucket, as paceline tune finds",
    .source = "docs/models.md, Plans",
    .fusion = Fusion::by_default,
    .all_reduce = Scheduled{"ring"}};

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

template <class... Cases>
struct Overloaded : Cases... {
  using Cases::operator()...;
};
template <class... Cases>  // clang up to 16 does not deduce it
Overloaded(Cases...)->Overloaded<Cases...>;

template <class Takes>
bool any_algorithm(const Strategy& strategy, Takes takes) {
  const std::vector<std::string_view> names = strategy.algorithms();
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view entry) { return all_reduce_algorithm(entry).*takes; });
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

}  // namespace

std::span<const Strategy> strategy_catalogue() {
  return catalogue;
}

std::vector<std::string> strategy_names() {
  std::vector<std::string> names;
  for (const Strategy& entry : catalogue) names.emplace_back(entry.name);
  for (const Strategy& entry : other_system_catalogue()) names.emplace_back(entry.name);
  for (const Strategy& entry : optimizer_catalogue()) names.emplace_back(entry.name);
  return names;
}

const Strategy& strategy(std::string_view name) {
  for (const auto& entries :
       {strategy_catalogue(), other_system_catalogue(), optimizer_catalogue()}) {
    for (const Strategy& entry : entries) {
      if (entry.name == name) return entry;
    }
  }
  if (name == tuned.name) return tuned;
  throw unknown_name("strategy", name, strategy_names());
}

const Strategy& tuned_strategy() {
  return tuned;
}

bool is_tuned(const Strategy& strategy) {
  return strategy.name == tuned.name;
}

std::string_view strategy_of(std::span<const PlannedSchedule> all_reduces) {
  const bool is_by_library = all_reduces.size() == 1 && all_reduces.front().library.has_value();
  return is_by_library ? name(*all_reduces.front().library) : tuned.name;
}

std::optional<Library> Strategy::library() const {
  const Library* library = std::get_if<Library>(&all_reduce);
  return library == nullptr ? std::nullopt : std::optional(*library);
}

bool Strategy::is_runnable() const {
  return !other || other->system == System::ddp || other->system == System::inductor ||
         other->system == System::mg_wfbp;
}

bool Strategy::is_replayable() const {
  return is_runnable() || (other->system == System::horovod && !other->dispatch.through_host);
}

bool Strategy::needs_times() const {
  return other && (other->dispatch.cycle > Seconds{0} || other->system == System::inductor ||
                   other->system == System::mg_wfbp);
}

std::vector<std::string_view> Strategy::algorithms() const {
  using Names = std::vector<std::string_view>;
  return std::visit(
      Overloaded{[](const Scheduled& s) { return Names{s.algorithm}; },
                 [](const Hybrid& h) {
                   return Names{h.small, h.large};
                 },
                 [](const OnServers& s) { return Names{s.algorithm}; },
                 [](Library) { return Names{}; }, [](const Served&) { return Names{}; },
                 [](Preconditioned) { return Names{}; }},
      all_reduce);
}

bool Strategy::takes_group() const {
  return any_algorithm(*this, &CollectiveAlgorithm::takes_group);
}

bool Strategy::takes_segments() const {
  return any_algorithm(*this, &CollectiveAlgorithm::takes_segments);
}

bool Strategy::takes_rings() const {
  return any_algorithm(*this, &CollectiveAlgorithm::takes_rings);
}

void take_buckets_of_ddp(const OtherSystem& ddp, WireType wire, std::int64_t parameters,
                         Thresholds& thresholds) {
  const double of_fp32 = element_size(wire) / element_size(WireType::fp32);
  thresholds.fusion = ddp.fusion > Bytes{0} ? of_fp32 * ddp.fusion
                                            : static_cast<double>(parameters) * element_size(wire);
  if (ddp.first_fusion) thresholds.first_fusion = of_fp32 * *ddp.first_fusion;
}

Plan make_plan(const Strategy& strategy, std::span<const Gradient> gradients, int ranks,
               WireType wire, const Thresholds& thresholds) {
  if (is_tuned(strategy))
    throw InputError({"--strategy"}, "a tuned plan is made bucket by bucket",
                     "let paceline tune --plan-out write it, and give it by --plan");
  check_rank_count(ranks);
  const bool on_servers = strategy.on_servers() != nullptr;
  if (on_servers) check_server_count(thresholds.servers, ranks);
  Plan plan{.strategy = std::string(strategy.name),
            .ranks = ranks,
            .wire = wire,
            .overlap = strategy.overlap,
            .streams = std::max(1, thresholds.streams),
            .schedules = {},
            .buckets = {},
            .dispatch = thresholds.dispatch};
  // All gradients of K-FAC travel together.
  constexpr Bytes whole{1e300};
  const Bytes theta = strategy.preconditions()           ? whole
                      : strategy.fusion == Fusion::never ? Bytes{0}
                                                         : thresholds.fusion;
  // Inductor lets no bucket grow beyond theta; all others close one that holds theta or more.
  const bool closes_before = strategy.other && strategy.other->system == System::inductor;
  ScheduleOptions options{.ranks = ranks,
                          .group_size = thresholds.group_size,
                          .segments = thresholds.segments,
                          .rings = thresholds.rings,
                          .servers = 1};
  const Served* served = strategy.served();
  if (served != nullptr) check_served(thresholds.servers);
  Placer placer(on_servers || served != nullptr ? thresholds.servers : 1,
                served != nullptr ? served->placement.value_or(ServerPlacement::balanced)
                                  : thresholds.placement);
  // The server that sums a bucket, or -1 if all servers share it. A slice of a tensor counts with
  // its own size.
  const auto server_of = [&](const Served& s, const Bucket& bucket, Placer& by_bytes) {
    if (bucket.elements >= s.shared_from) return -1;
    if (s.placement) return by_bytes.place(bucket.elements);
    // Slices are keys of their own.
    const auto key = thresholds.partition > Bytes{0}
                         ? static_cast<std::int64_t>(plan.buckets.size())
                         : static_cast<std::int64_t>(gradients.size()) - 1 - bucket.first_gradient;
    return static_cast<int>(9973 * key % thresholds.servers);
  };
  const auto schedule_of = [&](const Bucket& bucket) {
    return std::visit(
        Overloaded{[&](const Scheduled& s) { return planned(plan, s.algorithm, options); },
                   [&](const Hybrid& h) {
                     const bool is_small = plan.bytes(bucket) <= thresholds.hybrid;
                     return planned(plan, is_small ? h.small : h.large, options);
                   },
                   [&](const OnServers& s) {
                     options.first_server =
                         server_rank(placer.place(bucket.elements), ranks, thresholds.servers);
                     return planned(plan, s.algorithm, options);
                   },
                   [&](Library library) { return planned(plan, library); },
                   [&](const Served& s) {
                     return planned(plan, {thresholds.servers, thresholds.own_machines,
                                           server_of(s, bucket, placer), thresholds.transport});
                   },
                   [&](Preconditioned) {
                     return planned(plan, KfacUse{thresholds.factors_every, thresholds.placement});
                   }},
        strategy.all_reduce);
  };
  // A gradient by itself, cut into parts of `part` elements and a last one.
  const auto part =
      thresholds.partition > Bytes{0}
          ? std::max<std::int64_t>(1, std::llround(thresholds.partition / element_size(wire)))
          : 0;
  if (part > 0) check_parts(gradients, part, thresholds.partition);
  const auto add_parts = [&](std::int64_t elements, std::int64_t most, Bucket bucket) {
    bucket.gradient_count = 1;
    for (std::int64_t first = 0; first < elements; first += most) {
      bucket.first_element = first;
      bucket.elements = std::min(most, elements - first);
      bucket.schedule = schedule_of(bucket);
      plan.buckets.push_back(bucket);
    }
  };
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
    if (part > 0) {
      add_parts(gradients[i].elements, part, open);
      open = Bucket{.first_gradient = static_cast<int>(i) + 1};
      continue;
    }
    open.elements += gradients[i].elements;
    ++open.gradient_count;
    if (i + 1 < gradients.size() && stays_open(open, gradients[i + 1])) continue;
    open.schedule = schedule_of(open);
    plan.buckets.push_back(open);
    open = Bucket{.first_gradient = static_cast<int>(i) + 1};
  }
  if (on_servers) plan.streams = std::max<int>(1, static_cast<int>(plan.buckets.size()));
  if (strategy.preconditions()) plan.streams = 1;
  return plan;
}

}  // namespace paceline::models
