// The executor engine against the executor: what is timed is what runs. The executor of each rank
// runs on a transport that writes down every send and every landing, and the engine tells which
// sends and landings it times. For every collective of the catalogue, both have the same sends and
// landings on each rank, in the same order, with the same peers and sizes.
//
// All ranks are moved in turn by one thread, so that a run can be repeated.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "models/collective/catalogue.h"
#include "runtime/collective/executor.h"
#include "runtime/transport/thread_transport.h"
#include "simulator/engine/executor_engine.h"
#include "tests/support/recording_transport.h"
#include "tests/support/schedules.h"

namespace paceline {
namespace {

using simulator::ExecutorAction;
using test::RecordingTransport;
using Event = RecordingTransport::Event;

struct Case {
  std::string name;
  models::Schedule schedule;
  std::int64_t elements = 0;
  models::WireType wire = models::WireType::fp32;
};

std::string described(const std::vector<Event>& events) {
  std::string text;
  for (const Event& e : events)
    text += (e.is_send ? " send " : " land ") + std::to_string(e.bytes) +
            (e.is_send ? " to " : " from ") + std::to_string(e.peer) + ",";
  return text;
}

// The executors of all ranks of one job, each on a transport that records.
class Job {
 public:
  Job(int ranks, const models::MessageSizes& message_sizes) {
    for (auto& transport : runtime::thread_transports(ranks)) {
      transports_.push_back(
          std::make_unique<RecordingTransport>(std::move(transport), message_sizes));
      executors_.push_back(std::make_unique<runtime::Executor>(*transports_.back()));
    }
  }

  // Runs the case and returns what each rank did.
  std::vector<std::vector<Event>> run(const Case& c) {
    const double size = static_cast<double>(c.elements) * models::element_size(c.wire).value();
    const auto bytes = static_cast<std::size_t>(size);
    std::vector<std::vector<std::byte>> buckets(executors_.size(), std::vector<std::byte>(bytes));
    std::vector<runtime::Collective> collectives;
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      collectives.push_back(executors_[r]->prepare(c.schedule, c.elements, c.wire));
      executors_[r]->start(collectives[r], buckets[r].data());
    }
    for (bool moved = true; moved;) {
      moved = false;
      for (const auto& executor : executors_) moved |= executor->progress();
    }
    std::vector<std::vector<Event>> events;
    for (std::size_t r = 0; r < executors_.size(); ++r) {
      EXPECT_TRUE(executors_[r]->done(collectives[r])) << c.name << ": rank " << r << " is stuck";
      events.push_back(transports_[r]->take_events());
    }
    return events;
  }

 private:
  std::vector<std::unique_ptr<RecordingTransport>> transports_;
  std::vector<std::unique_ptr<runtime::Executor>> executors_;
};

// The sends and landings of each rank by the engine.
std::vector<std::vector<Event>> predicted(const Case& c,
                                          const models::MessageSizes& message_sizes) {
  const double element = models::element_size(c.wire).value();
  simulator::CommunicationCost cost;
  cost.ranks_per_node = 2;
  cost.intra = {Seconds{2e-6}, SecondsPerByte{1e-10}};
  cost.nic = {Seconds{1e-5}, SecondsPerByte{1e-9}};
  cost.gamma = SecondsPerByte{2e-10};
  cost.transport =
      simulator::TransportCost{.message_sizes = message_sizes, .message_gap = Seconds{1e-6}};
  simulator::ExecutorEngine engine({&c.schedule, 1}, cost, std::llround(element));
  std::vector<std::vector<Event>> events;
  for (const auto& actions : engine.actions(0, Bytes{static_cast<double>(c.elements) * element})) {
    events.emplace_back();
    for (const ExecutorAction& action : actions)
      events.back().push_back({.is_send = action.kind == ExecutorAction::Kind::send,
                               .peer = action.peer,
                               .bytes = static_cast<std::size_t>(action.bytes.value())});
  }
  return events;
}

// Every collective with each of its options: fewer elements than ranks, a few messages for each
// part, and many.
std::vector<Case> cases(int ranks) {
  std::vector<Case> cases;
  for (const models::CollectiveAlgorithm& algorithm : models::collective_catalogue()) {
    for (const models::ScheduleOptions& options : test::option_sets(algorithm, ranks)) {
      for (const std::int64_t elements : {1, 61, 1000}) {
        const bool is_fp16 = cases.size() % 2 == 1;
        cases.push_back({models::described(algorithm.name, options), algorithm.build(options),
                         elements, is_fp16 ? models::WireType::fp16 : models::WireType::fp32});
      }
    }
  }
  return cases;
}

class ExecutorEngineAgreement : public testing::TestWithParam<int> {
 protected:
  void check(const models::MessageSizes& message_sizes) {
    Job job(GetParam(), message_sizes);
    std::size_t messages = 0;
    for (const Case& c : cases(GetParam())) {
      const auto found = job.run(c);
      const auto expected = predicted(c, message_sizes);
      ASSERT_EQ(found.size(), expected.size());
      for (std::size_t r = 0; r < found.size(); ++r) {
        ASSERT_EQ(described(found[r]), described(expected[r]))
            << c.name << ", " << c.elements << " elements, rank " << r;
        messages += found[r].size();
      }
    }
    if (GetParam() > 1) EXPECT_GT(messages, 100U);
  }
};

TEST_P(ExecutorEngineAgreement, RanksSendAndLandAsTheExecutorDoes) {
  check({.smallest_bytes = 44, .largest_bytes = 400});
}

TEST_P(ExecutorEngineAgreement, RanksHoldSendsBackAsTheExecutorDoes) {
  check({.smallest_bytes = 44, .largest_bytes = 100, .ahead_bytes = 200});
}

// Whether holding back is seen at all: a ring of many messages issues fewer sends at its start.
TEST(ExecutorEngineAgreement, SeesThatSendsAreHeldBack) {
  const Case ring{"ring", models::ring_all_reduce(4), 1000, models::WireType::fp32};
  const models::MessageSizes free{.smallest_bytes = 44, .largest_bytes = 100};
  models::MessageSizes held = free;
  held.ahead_bytes = 200;
  const auto at_start = [&](const models::MessageSizes& message_sizes) {
    const auto events = predicted(ring, message_sizes)[0];
    return std::find_if(events.begin(), events.end(), [](const Event& e) { return !e.is_send; }) -
           events.begin();
  };
  EXPECT_EQ(at_start(free), 10);  // 250 elements of 4 bytes in messages of at most 100 bytes
  EXPECT_EQ(at_start(held), 2);   // of at most 200 bytes together
}

INSTANTIATE_TEST_SUITE_P(Ranks, ExecutorEngineAgreement, testing::Range(1, 10));

}  // namespace
}  // namespace paceline
