#include "simulator/cost/server_cost.h"

#include <gtest/gtest.h>

#include "models/collective/algorithms.h"
#include "models/collective/catalogue.h"
#include "simulator/engine/collective_timer.h"
#include "simulator/iteration/dag.h"
#include "simulator/iteration/steady_state.h"
#include "tests/simulator/small_job.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

using namespace paceline::literals;
using models::ServerTransport;
using models::ServerUse;
using models::System;

// 4 ranks a node, 10 GB/s between them; a NIC of 1 GB/s; no latency.
CommunicationCost machines_of_four() {
  return {.ranks_per_node = 4,
          .intra = {0_s, SecondsPerByte{1e-10}},
          .nic = {0_s, SecondsPerByte{1e-9}},
          .nics_per_node = 1};
}

std::vector<Seconds> times(System system, const ServerUse& use, int ranks,
                           const CommunicationCost& cost = machines_of_four()) {
  std::vector<Seconds> longest;
  for (const ServedPhase& phase :
       served_phases({system, use, 120e6 * 1_B, ranks, 10e9 * 1_B / 1_s}, cost, Bound::stated)) {
    Seconds most;
    for (const Occupied& occupied : phase.lanes) most = std::max(most, occupied.time);
    longest.push_back(most);
  }
  return longest;
}

void expect_ms(const std::vector<Seconds>& found, const std::vector<double>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (std::size_t i = 0; i < found.size(); ++i)
    EXPECT_NEAR(found[i].value() * 1e3, expected[i], 1e-9) << "phase " << i;
}

// 120 MB on 3 machines of 4 ranks, a server on each. In a node 3/4 x 12 ms at half the rate, and 3 ms for
// the 30 MB that each rank copies over the same port; a server gets 2 + 2 shares of 40 MB over 1 GB/s; it adds 3 x 40 MB at 12.5 GB/s.
TEST(ServerCost, BytePsByHand) {
  expect_ms(times(System::byteps, {3, false, -1, ServerTransport::rdma}, 12),
            {21, 3, 160, 9.6, 160, 3, 21});
  // Twelve servers of their own: a worker's NIC takes 120 ms, a server's 3 x 10 ms.
  expect_ms(times(System::byteps, {12, true, -1, ServerTransport::rdma}, 12),
            {21, 3, 120, 2.4, 120, 3, 21});
  // One machine: an all-reduce inside it, at the full rate, also where there are servers.
  expect_ms(times(System::byteps, {1, false, -1, ServerTransport::rdma}, 4), {18});
  expect_ms(times(System::byteps, {1, true, -1, ServerTransport::rdma}, 4), {18});
}

// Copies to the host take nothing from ports on NVLink.
TEST(ServerCost, CopiesShareThePortsOfPcieAlone) {
  CommunicationCost cost = machines_of_four();
  cost.by_nvlink = true;
  expect_ms(times(System::byteps, {3, false, -1, ServerTransport::rdma}, 12, cost),
            {18, 3, 160, 9.6, 160, 3, 18});
}

// BytePS runs NCCL inside machines, and nothing else takes the devices.
TEST(ServerCost, KernelsRunInsideMachinesOfBytePs) {
  const auto by_kernels = [](System system, int ranks) {
    const ServerUse use{3, false, system == System::byteps ? -1 : 1, ServerTransport::rdma};
    std::vector<bool> found;
    for (const ServedPhase& phase : served_phases({system, use, 120e6 * 1_B, ranks, std::nullopt},
                                                  machines_of_four(), Bound::stated))
      found.push_back(phase.runs_as_kernels);
    return found;
  };
  EXPECT_EQ(by_kernels(System::byteps, 4), (std::vector<bool>{true}));
  EXPECT_EQ(by_kernels(System::byteps, 12),
            (std::vector<bool>{true, false, false, false, false, false, true}));
  for (const System system : {System::tf_parameter_server, System::tf_distributed_replicated,
                              System::kvstore, System::p3}) {
    for (const bool phase : by_kernels(system, 12)) EXPECT_FALSE(phase);
  }
}

// Each tower copies 120 MB to the CPU in 12 ms, which adds 480 MB at 15 GB/s, and back.
TEST(ServerCost, ParameterServerOfTensorFlowByHand) {
  expect_ms(times(System::tf_parameter_server, {1, false, 0, ServerTransport::grpc}, 4),
            {12, 32, 12});
  // On 3 machines the server receives 3 x 120 MB at 0.55 GB/s, its own machine's among them. It sends
  // two over its NIC in 240 ms; a worker receives one in 218 ms.
  expect_ms(times(System::tf_parameter_server, {3, false, 1, ServerTransport::grpc}, 12),
            {12, 32, 360 / 0.55, 24, 240, 12});
  CommunicationCost fast = machines_of_four();
  fast.nic.beta = SecondsPerByte{1e-11};
  expect_ms(times(System::tf_parameter_server, {3, false, 1, ServerTransport::grpc}, 12, fast),
            {12, 32, 360 / 0.55, 24, 120 / 0.55, 12});
}

// A ring in a node has what binds it first.
TEST(ServerCost, ARingInANodeKnowsWhatItsRanksShare) {
  CommunicationCost cost = machines_of_four();
  const ServerUse use{1, false, -1, ServerTransport::rdma};
  cost.host = HostCost{.sockets = 2, .crossing = SecondsPerByte{2e-10}};
  expect_ms(times(System::byteps, use, 4, cost), {36});
  expect_ms(times(System::byteps, use, 2, cost), {12});  // on one socket
  cost.host->staged = true;
  cost.host->memory = SecondsPerByte{1e-10};
  expect_ms(times(System::byteps, use, 4, cost), {72});
}

// Summed on the devices, round-robin; one rank of the node copies each variable.
TEST(ServerCost, DistributedReplicatedByHand) {
  expect_ms(times(System::tf_distributed_replicated, {2, true, 0, ServerTransport::rdma}, 12),
            {9, 3, 360, 24, 360, 12});
}

TEST(ServerCost, KvstoreByHand) {
  // 4 x 120 MB on the host at 12.5 GB/s. The server of the key gets 2 + 2 times 120 MB.
  expect_ms(times(System::kvstore, {3, false, 2, ServerTransport::rdma}, 12),
            {12, 38.4, 480, 28.8, 480, 12});
  // Over ZMQ a process gets 2.25 GB/s, which is more than the NIC here.
  expect_ms(times(System::kvstore, {3, false, -1, ServerTransport::tcp}, 12),
            {12, 38.4, 160, 9.6, 160, 12});
}

// Three buckets that are pushed in 2 s each; the first two are there at 0, the third at 5. The first is
// acknowledged at 2, when the second was queued; the second at 4, before the third is there.
TEST(ServerCost, ARequestPassesThePushesThatAreQueued) {
  const std::vector<ServedPhase> phases = {
      {{{3, 2_s}, {7, 1_s}}}, {{{8, 1_s}}}, {{{4, 2_s}}, false, false, true}};
  const std::vector<const std::vector<ServedPhase>*> three(3, &phases);
  EXPECT_EQ(push_before_request(phases), 0u);
  EXPECT_EQ(last_push_before_request(std::vector{0_s, 0_s, 5_s}, three),
            (std::vector<std::size_t>{1, 1, 2}));
  EXPECT_EQ(last_push_before_request(std::vector{0_s, 0_s, 0_s}, three),
            (std::vector<std::size_t>{2, 2, 2}));
  EXPECT_EQ(last_push_before_request(std::vector{0_s, 10_s, 20_s}, three),
            (std::vector<std::size_t>{0, 1, 2}));
  EXPECT_EQ(longest_on_a_lane(phases), 2_s);
  EXPECT_EQ(longest_on_lanes_in_turn(phases), 4_s);
}

TEST(ServerCost, BoundsAreOrdered) {
  for (const System system : {System::byteps, System::tf_parameter_server,
                              System::tf_distributed_replicated, System::kvstore, System::p3}) {
    const ServerUse use{3, false, system == System::byteps ? -1 : 1, ServerTransport::grpc};
    const auto at = [&](Bound bound) {
      return time_alone(served_phases({system, use, 1_MiB, 12}, machines_of_four(), bound));
    };
    EXPECT_LT(at(Bound::fast), at(Bound::stated));
    EXPECT_LT(at(Bound::stated), at(Bound::slow));
  }
}

// Where both apply: one rank a machine, one bucket on one server among the workers, nothing added and
// nothing copied. The flow engine follows p - 1 messages to the server and back, one after the other.
TEST(ServerCost, IsTheFlowEnginesTimeWhereBothApply) {
  for (const int ranks : {2, 3, 8, 16}) {
    const CommunicationCost cost = {.ranks_per_node = 1,
                                    .intra = {0_s, SecondsPerByte{1e-10}},
                                    .nic = {0_s, SecondsPerByte{1e-9}},
                                    .nics_per_node = 1};
    const auto& entry = models::all_reduce_algorithm("parameter-server");
    const auto options = models::taken_options(entry, {.ranks = ranks, .servers = 1});
    CollectiveTimer engine(cost, EngineKind::flow);
    const Bytes bytes = 64_MiB;
    const Seconds flow = engine.time({"parameter-server", options, entry.build(options)}, bytes);
    const ServerUse use{1, false, 0, ServerTransport::rdma};
    Seconds wire;
    for (const ServedPhase& phase :
         served_phases({System::kvstore, use, bytes, ranks}, cost, Bound::stated)) {
      for (const Occupied& occupied : phase.lanes)
        if (phase.lanes.size() > 1) wire += occupied.lane >= 7 ? occupied.time : Seconds{0};
    }
    EXPECT_NEAR(wire.value(), flow.value(), 1e-6 * flow.value()) << ranks;
  }
}

// Two buckets on two servers; push 4 s on the workers' lane and 6 s on each server's, pull as much after
// all. Layer 0's forward starts at 0. Its pull, which goes first, took 6 s from when all was pushed;
// that of layer 1 takes until 2. Forward 0-1 and 2-4, backward 4-6 and 6-10. Pushes 6-12 and 10-16, then
// the update to 17 beside the pull of layer 0, which is there at 22.
TEST(ServedDag, ALayerWaitsForItsOwnPullByHand) {
  const models::NetworkWork network = test::chain_network({10, 10});
  ComputeTimes compute{
      .layers = {{1_s, 4_s}, {2_s, 2_s}}, .update = 1_s, .provenance = {}, .source = {}};
  models::Plan plan = models::make_plan(models::strategy("tf-parameter-server"), network.gradients,
                                        2, models::WireType::fp32, {.servers = 2});
  ASSERT_EQ(plan.buckets.size(), 2u);
  std::vector<BucketTimes> buckets(2);
  for (int b = 0; b < 2; ++b)
    buckets[static_cast<std::size_t>(b)].by_way =
        ServedPhases{{{{0, 4_s}, {2 + b, 6_s}}}, {{{1, 4_s}, {4 + b, 6_s}}, true}};
  const IterationDag dag(network, plan, compute, buckets, {});
  EXPECT_DOUBLE_EQ(steady_state(dag).period.value(), 22);
}

// The same, but pulls come in no order: forward 0-3, backward 3-5 and 5-9. Pushes 5-11 and 9-15, pulls
// 15-21 and 15-23.
TEST(ServedDag, ALayerWaitsForAllPullsThatComeInNoOrderByHand) {
  const models::NetworkWork network = test::chain_network({10, 10});
  ComputeTimes compute{
      .layers = {{1_s, 4_s}, {2_s, 2_s}}, .update = 1_s, .provenance = {}, .source = {}};
  const models::Plan plan =
      models::make_plan(models::strategy("tf-parameter-server"), network.gradients, 2,
                        models::WireType::fp32, {.servers = 2});
  std::vector<BucketTimes> buckets(2);
  for (int b = 0; b < 2; ++b)
    buckets[static_cast<std::size_t>(b)].by_way =
        ServedPhases{{{{0, 4_s}, {2 + b, 6_s}}}, {{{1, 4_s}, {4 + b, 6_s}}, true, true}};
  const IterationDag dag(network, plan, compute, buckets, {});
  EXPECT_DOUBLE_EQ(steady_state(dag).period.value(), 23);
}

// Four buckets of which all are there at 2 s, pushed and pulled in 1 s each. Without requests the last
// pull ends at 2 + 4 + 1; behind the queue the first begins at 6, and the last ends at 10.
TEST(ServedDag, WhereTheNetworkIsSlowAllIsPushedFirstByHand) {
  const models::NetworkWork network = test::chain_network({40});
  ComputeTimes compute;
  compute.layers.assign(1, {1_s, 1_s});
  const models::Plan plan = models::make_plan(models::strategy("byteps"), network.gradients, 2,
                                              models::WireType::fp32, {.partition = 40_B});
  ASSERT_EQ(plan.buckets.size(), 4u);
  const auto period = [&](bool is_requested) {
    BucketTimes times;
    times.by_way = ServedPhases{{{{3, 1_s}}}, {{{4, 1_s}}, false, false, is_requested}};
    const IterationDag dag(network, plan, compute, std::vector<BucketTimes>(4, times), {});
    return steady_state(dag).period.value();
  };
  EXPECT_DOUBLE_EQ(period(false), 7);
  EXPECT_DOUBLE_EQ(period(true), 10);
}

// Three parts of a gradient by priority, each 1 s on its stream to be handed over, then 2 s on each of
// two lanes. Handed over at 2, 3, 4: lane 0 takes 3-5, 5-7, 7-9, lane 1 two seconds later.
TEST(ServedDag, UpdatesKeepNothingWaitingByHand) {
  const models::NetworkWork network = test::chain_network({30});
  ComputeTimes compute;
  compute.layers.assign(1, {1_s, 1_s});
  models::Plan plan = models::make_plan(models::strategy("p3"), network.gradients, 2,
                                        models::WireType::fp32, {.partition = 40_B});
  ASSERT_EQ(plan.buckets.size(), 3u);
  BucketTimes times;
  times.negotiation = 1_s;
  times.by_way = ServedPhases{{{{0, 2_s}}}, {{{1, 2_s}}}};
  const IterationDag dag(network, plan, compute, std::vector<BucketTimes>(3, times), {});
  EXPECT_DOUBLE_EQ(steady_state(dag).period.value(), 11);
}

TEST(Served, PlansChooseServersAsTheirSystems) {
  std::vector<std::int64_t> elements = {2'000'000, 10, 500'000, 10};
  const auto gradients = test::chain_network(elements).gradients;  // backward: 10, 500000, 10, 2e6
  const auto servers = [&](const char* name) {
    const models::Plan plan = models::make_plan(models::strategy(name), gradients, 8,
                                                models::WireType::fp32, {.servers = 4});
    std::vector<int> found;
    for (const models::Bucket& bucket : plan.buckets)
      found.push_back(
          std::get<ServerUse>(plan.schedules[static_cast<std::size_t>(bucket.schedule)].way)
              .server);
    return found;
  };
  // 9973 mod 4 is 1: keys 3, 2, 1; key 0 is large.
  EXPECT_EQ(servers("kvstore"), (std::vector<int>{3, 2, 1, -1}));
  EXPECT_EQ(servers("tf-distributed-replicated"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(servers("tf-parameter-server"), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(servers("byteps"), (std::vector<int>{-1, -1, -1, -1}));
}

TEST(ServerTransport, HasNames) {
  for (const ServerTransport transport :
       {ServerTransport::grpc, ServerTransport::tcp, ServerTransport::rdma})
    EXPECT_EQ(models::server_transport_from_name(name(transport)), transport);
  EXPECT_NE(test::error_of([] {
              (void)models::server_transport_from_name("rmda");
            }).find("did you mean 'rdma'"),
            std::string::npos);
}

}  // namespace
}  // namespace paceline::simulator
