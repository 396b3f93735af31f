// Estimates how much work it is to time a schedule, from its structure, before anything is prepared.
#pragma once

#include "models/collective/schedule.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

// Messages of all ranks in all steps, and in all steps but those that repeat the step before.
// Messages between the same two ranks in one step count each; steps of parallel parts and of
// segments that are under way together count once for each part or segment. O(nodes of the tree).
struct MessageCount {
  double all = 0;
  double distinct = 0;
};
[[nodiscard]] MessageCount message_count(const models::Schedule& schedule);

// How many messages the flow engine follows for one bucket, at most, on this cluster. Where ranks are
// collapsed, steps that repeat others count once: they are cut short. Elsewhere what one rank does
// differs from what its neighbour does, and they seldom are. O(p) for a placement in a round, else
// O(nodes of the tree x divisors of p).
[[nodiscard]] double followed_messages(const models::Schedule& schedule,
                                       const CommunicationCost& cost);

// A row of a table that answers at once may follow this many messages, at all bounds together. The
// flow engine follows 0.8 to 7 million messages a second (November 2026, a 2-core EPYC VM), and so
// such a row takes 10 to 100 ms.
inline constexpr double most_followed_in_time = 75'000;
// The same where the flow engine was asked for, and the row has no answer by another one: at most a
// second.
inline constexpr double most_followed_when_asked = 750'000;
// The same for a row that was named, without an engine: half a minute at most.
inline constexpr double most_followed_when_named = 12'000'000;
// Whatever was asked for, buckets that travel together may have this many messages at one bound. The
// flow engine keeps about 250 bytes for each, which makes 1 GB.
inline constexpr double most_followed_together = 4'000'000;
inline constexpr double bytes_of_a_followed_message = 250;
// The same for messages that the step engine prepares for one schedule, at 10 to 20 million a second.
inline constexpr std::int64_t most_prepared_in_time = 1'500'000;

// The same for one schedule that a planner tries for such a row, with either engine: it tries some
// ten for each strategy.
inline constexpr double most_planned_in_time = 20'000;

}  // namespace paceline::simulator
