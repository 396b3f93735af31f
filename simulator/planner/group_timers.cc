// Tests: tests/simulator/sharded_test.cc.
#include "simulator/planner/group_timers.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/base/error.h"
#include "simulator/engine/nccl_routes.h"

namespace paceline::simulator {
namespace {

// The ring of the catalogue for each collective of a sharded plan.
models::PlannedSchedule ring_of(models::Collective collective, int ranks) {
  return models::scheduled(collective == models::Collective::all_reduce ? "ring" : name(collective),
                           {.ranks = ranks});
}

void scale(Figure<BytesPerSecond>& rate, double share) {
  rate.value *= share;
  rate.low *= share;
  rate.high *= share;
}

// Leaves this share of each node's NICs: some of them, or a part of one.
void take_nics(double share, RankGroup& group) {
  models::Cluster& cluster = group.cluster;
  const double nics = share * cluster.nics_per_node;
  cluster.nics_per_node = std::max(1, static_cast<int>(nics));
  group.nic_share = nics / cluster.nics_per_node;
  for (Figure<BytesPerSecond>* rate : {&cluster.nic.line_rate, &cluster.nic.bandwidth})
    scale(*rate, group.nic_share);
}

}  // namespace

models::Profile with_nic_share(models::Profile profile, double share) {
  if (profile.nic_bandwidth) scale(*profile.nic_bandwidth, share);
  profile.curves.clear();
  return profile;
}

RankGroup shard_group(const models::Cluster& cluster, int shards, int ranks) {
  const int g = cluster.ranks_per_node;
  const bool is_on_one_node = ranks <= g || g % shards == 0;
  if (!is_on_one_node && shards % g != 0 && shards != ranks)
    throw InputError({"--group"}, fmt::format("groups of {} ranks on nodes of {}", shards, g),
                     fmt::format("choose a divisor or a multiple of {}", g));
  return {cluster, shards};
}

RankGroup replica_group(const models::Cluster& cluster, int shards, int ranks) {
  RankGroup group{cluster, ranks / shards};
  const int g = cluster.ranks_per_node;
  if (ranks <= g || group.ranks == 1) return group;
  const int on_a_node = std::max(1, g / shards);
  take_nics(static_cast<double>(on_a_node) / g, group);
  group.cluster.ranks_per_node = on_a_node;
  group.cluster.hosts_per_node = 1;
  group.cluster.slots.clear();
  return group;
}

GroupTimers::Group& GroupTimers::group(std::map<int, std::unique_ptr<Group>>& groups, int shards,
                                       bool are_replicas) {
  std::unique_ptr<Group>& found = groups[shards];
  if (!found)
    found = std::make_unique<Group>(Group{are_replicas
                                              ? replica_group(job_.cluster, shards, job_.ranks)
                                              : shard_group(job_.cluster, shards, job_.ranks)});
  return *found;
}

GroupTimers::Timer& GroupTimers::timer(Group& group, models::Collective collective) {
  const auto found = group.timers.find(collective);
  if (found != group.timers.end()) return found->second;
  Timer& timer = group.timers[collective];
  const models::Cluster& cluster = group.of.cluster;
  const int ranks = group.of.ranks;
  const models::Profile* profile = job_.profile;
  std::optional<models::Profile> own;
  if (profile != nullptr && group.of.nic_share != 1)
    profile = &own.emplace(with_nic_share(*profile, group.of.nic_share));
  const CommunicationCost cost = communication_cost(cluster, profile, job_.bound, ranks);
  if (job_.nccl != nullptr)
    timer.curve =
        curve_on_routes(profile, models::Library::nccl,
                        library_job(cluster, ranks, job_.wire, collective), job_.bound, cost);
  if (timer.curve) return timer;
  if (job_.nccl != nullptr) {
    timer.nccl.emplace(*job_.nccl, cluster, ranks, cost, job_.bound, Pace{}, collective);
    return timer;
  }
  timer.engine.emplace(cost, job_.engine);
  timer.ring = ring_of(collective, ranks);
  return timer;
}

Seconds GroupTimers::time(Group& group, models::Collective collective, Bytes bytes) {
  if (group.of.ranks == 1 || bytes <= Bytes{0}) return Seconds{0};
  Timer& by = timer(group, collective);
  if (by.curve) return by.curve->time(bytes);
  if (by.nccl) return by.nccl->time(bytes);
  return by.engine->time(*by.ring, bytes);
}

Seconds GroupTimers::in_shards(int shards, models::Collective collective, Bytes bytes) {
  return time(group(shards_, shards, false), collective, bytes);
}

Seconds GroupTimers::in_replicas(int shards, models::Collective collective, Bytes bytes) {
  return time(group(replicas_, shards, true), collective, bytes);
}

Seconds GroupTimers::in_strided(int apart, int ranks, models::Collective collective, Bytes bytes) {
  const auto found = strided_.find({apart, ranks});
  Group& group = found != strided_.end()
                     ? found->second
                     : strided_
                           .try_emplace({apart, ranks},
                                        Group{replica_group(job_.cluster, apart, apart * ranks)})
                           .first->second;
  return time(group, collective, bytes);
}

std::string GroupTimers::described(int shards) {
  if (job_.ranks == 1) return "no communication on one rank";
  const bool has_shards = shards > 1;
  Group& of = has_shards ? group(shards_, shards, false) : group(replicas_, shards, true);
  Timer& by =
      timer(of, has_shards ? models::Collective::all_gather : models::Collective::all_reduce);
  if (by.curve) return by.curve->described(Bytes{0}, Bytes{0});
  if (by.nccl) return simulator::described(*by.nccl);
  return fmt::format("{}: rings", simulator::described(by.engine->engine(*by.ring)));
}

}  // namespace paceline::simulator
