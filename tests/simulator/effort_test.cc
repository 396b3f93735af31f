#include "simulator/engine/effort.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <set>
#include <utility>

#include "models/collective/enumerate.h"
#include "simulator/engine/flow_engine.h"
#include "tests/support/generators.h"
#include "tests/support/schedules.h"

namespace paceline::simulator {
namespace {

struct Enumerated {
  double all = 0;
  double distinct = 0;
};

Enumerated enumerated(const models::Schedule& schedule) {
  Enumerated count;
  int repeats = 1;
  for (int step = 0; step < schedule.steps(); ++step) {
    repeats = repeats > 1 ? repeats - 1 : schedule.repeats(step);
    const bool is_new = step == 0 || schedule.repeats(step - 1) == 1;
    models::for_each_transfer(schedule, step, models::Span<double>{0.0, 1.0},
                              [&](const models::Transfer<double>&) {
                                count.all += 1;
                                count.distinct += is_new ? 1 : 0;
                              });
  }
  return count;
}

// Fewer than counted where parts that run in parallel end at different steps, or a primitive leaves
// some ranks out; never more.
RC_GTEST_PROP(MessageCount, IsNeverLessThanWhatIsEnumerated, ()) {
  const models::Schedule schedule = *test::all_reduce_schedules(40);
  const MessageCount count = message_count(schedule);
  RC_ASSERT(count.all >= enumerated(schedule).all);
}

TEST(MessageCount, EqualsWhatIsEnumeratedForTheCatalogue) {
  for (const int p : {2, 4, 8, 16, 32}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      const MessageCount count = message_count(schedule);
      const Enumerated by_force = enumerated(schedule);
      EXPECT_EQ(count.all, by_force.all) << name << " p=" << p;
      EXPECT_GE(count.distinct, 0.5 * by_force.distinct) << name << " p=" << p;
      EXPECT_LE(count.distinct, count.all) << name << " p=" << p;
    }
  }
}

// What is told before is close to what the engine then follows.
TEST(FollowedMessages, AreThoseOfTheFlowEngine) {
  CommunicationCost cost;
  cost.ranks_per_node = 4;
  cost.intra = {Seconds{2e-6}, SecondsPerByte{1e-10}};
  cost.nic = {Seconds{5e-6}, SecondsPerByte{1e-9}};
  for (const int p : {16, 18, 32}) {
    for (const auto& [name, schedule] : test::all_reduces(p)) {
      FlowEngine engine({&schedule, 1}, cost);
      (void)engine.completion(0, Bytes{1e6});
      EXPECT_LE(static_cast<double>(engine.flows()), 16 * followed_messages(schedule, cost))
          << name << " p=" << p;
      if (engine.positions() == p) {
        EXPECT_LE(static_cast<double>(engine.flows()), followed_messages(schedule, cost))
            << name << " p=" << p;
      }
    }
  }
}

}  // namespace
}  // namespace paceline::simulator
