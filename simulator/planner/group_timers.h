// The times of the collectives of a sharded plan, which run in groups of its ranks.
//
// The ranks are a mesh (models/layout/sharding.h): groups of neighbours, inside which parameters are gathered
// and gradients reduced to shards, and replicas, between which an all-reduce sums each shard. All groups run
// their collectives at the same time, so that the replicas of a node share its NICs: those of one shard have
// their part of them. Like all-reduces, collectives take a calibrated curve of the device's library
// where there is one, else what NCCL's own model chooses where that is the library, else a ring by an engine.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "models/cluster/cluster.h"
#include "models/layout/sharding.h"
#include "models/profile/profile.h"
#include "simulator/cost/library_curve.h"
#include "simulator/cost/nccl_tables.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/engine/nccl_practice.h"

namespace paceline::simulator {

// The job whose ranks form the groups. Keeps references to the cluster, the profile and the tables of NCCL.
struct GroupJob {
  const models::Cluster& cluster;
  const models::Profile* profile = nullptr;  // may be null
  const NcclTables* nccl = nullptr;          // null where the device's library is another
  int ranks = 1;
  models::WireType wire = models::WireType::fp32;
  Bound bound = Bound::stated;
  EngineKind engine = EngineKind::automatic;
};

// Where the ranks of a group sit: on the cluster, with what is theirs of its NICs.
struct RankGroup {
  models::Cluster cluster;
  int ranks = 1;
  double nic_share = 1;  // of the bandwidth of each NIC of `cluster` in its own; 1: all
};

// The group of `shards` neighbours of a job of `ranks`, and that of the replicas of one of them. Throw
// InputError where groups neither divide nodes nor are made of whole ones.
[[nodiscard]] RankGroup shard_group(const models::Cluster& cluster, int shards, int ranks);
[[nodiscard]] RankGroup replica_group(const models::Cluster& cluster, int shards, int ranks);

// The profile with this share of each NIC, and without curves, which were measured in other groups.
[[nodiscard]] models::Profile with_nic_share(models::Profile profile, double share);

class GroupTimers {
 public:
  explicit GroupTimers(const GroupJob& job) : job_(job) {}

  // Completion time over the shards of a group, and over the replicas of one of them, of a bucket of
  // `bytes`; 0 in a group of one.
  [[nodiscard]] Seconds in_shards(int shards, models::Collective collective, Bytes bytes);
  [[nodiscard]] Seconds in_replicas(int shards, models::Collective collective, Bytes bytes);
  // The same over `ranks` ranks, of which each is `apart` behind the one before.
  [[nodiscard]] Seconds in_strided(int apart, int ranks, models::Collective collective,
                                   Bytes bytes);
  // Whether NCCL's own model times what no curve does.
  [[nodiscard]] bool are_by_nccl() const { return job_.nccl != nullptr; }
  // A text that says what times them.
  [[nodiscard]] std::string described(int shards);

 private:
  struct Timer {
    std::optional<LibraryCurve> curve = {};
    std::optional<NcclPractice> nccl = {};
    std::optional<CollectiveTimer> engine = {};
    std::optional<models::PlannedSchedule> ring = {};
  };
  struct Group {
    RankGroup of;
    std::map<models::Collective, Timer> timers = {};
  };
  Timer& timer(Group& group, models::Collective collective);
  Seconds time(Group& group, models::Collective collective, Bytes bytes);
  Group& group(std::map<int, std::unique_ptr<Group>>& groups, int shards, bool are_replicas);

  GroupJob job_;
  std::map<int, std::unique_ptr<Group>> shards_;    // by ranks of a group
  std::map<int, std::unique_ptr<Group>> replicas_;  // the same
  std::map<std::pair<int, int>, Group> strided_;    // by their distance and their number
};

}  // namespace paceline::simulator
