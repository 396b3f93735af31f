// Facts that are true of every plan of a way to travel, whatever its strategy.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline::models {

struct WayTraits {
  // Which thresholds its plans depend on, besides the options of its algorithms.
  bool takes_streams = false;
  bool takes_host_copies = false;
  bool takes_servers = false;
  bool takes_machines = false;   // machines of the servers' own, and their transport
  bool takes_placement = false;  // of buckets on servers, or of layers on owners
  bool takes_factors = false;    // how often factors are refreshed
  bool in_one_bucket = false;    // all gradients travel together
  bool all_at_once = false;      // all buckets are in flight at once, whatever the streams
  // Whether an iteration may start before all updates of the one before are done.
  bool may_overlap_iterations = true;
  bool may_straggle = true;  // whether stragglers are simulated
  // Kernels of the devices sum, unless a bucket goes through the host.
  bool by_kernels = true;
};

struct Bucket;
struct PlannedSchedule;
struct Thresholds;
class PlanInMaking;

// A way to travel, as a strategy has it, is a type with these members:
//
//   static constexpr WayTraits traits;
//   // The algorithms that buckets may take, that of small buckets first.
//   std::vector<std::string_view> algorithms() const;
//   // Whether a plan of the strategy may have the schedule, and a text that says what it may have.
//   bool allows(const PlannedSchedule&) const;
//   std::string allowed() const;
//   // Which of the plan's schedules sums the bucket. Buckets come in the order of the plan.
//   int schedule_of(const Bucket&, PlanInMaking&) const;
//   // Throws InputError where the thresholds do not fit the ranks.
//   void check(int ranks, const Thresholds&) const;

}  // namespace paceline::models
