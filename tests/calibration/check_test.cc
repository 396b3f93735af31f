// paceline check: faults are told from what they do, and what is as expected is said to be so.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "calibration/check/check.h"
#include "calibration/check/collective_check.h"
#include "calibration/check/faults.h"
#include "calibration/check/machine_check.h"
#include "models/base/error.h"
#include "models/base/to_size.h"
#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/cost/link_factors.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/iteration/all_reduce_time.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int ranks = 32;

// The collectives that NCCL takes on a cluster, as nccl-tests would have measured them.
MeasuredCollective measured_on(const models::Cluster& cluster,
                               models::Collective collective = models::Collective::all_reduce) {
  simulator::AllReduceTimer timer(
      {.cluster = cluster, .ranks = ranks, .wire = models::WireType::bf16});
  MeasuredCollective measured{.file = "perf.txt",
                              .what = "test",
                              .collective = collective,
                              .ranks = ranks,
                              .type = models::WireType::bf16,
                              .times = {}};
  for (double bytes = 1024; bytes <= 1024.0 * 1024 * 1024; bytes *= 4) {
    const Seconds time = timer
                             .by_nccl({.only = {}, .collective = collective},
                                      simulator::bucket_of(collective, ranks, Bytes{bytes}))
                             .time.value;
    measured.times.push_back({Bytes{bytes}, time, time, time});
  }
  return measured;
}

struct Job {
  models::Cluster cluster = models::catalog_cluster("h100-ndr");
  models::NetworkWork network = models::work(models::zoo_network("llama-3-8b"));
  simulator::PredictionRequest request{{}, network, cluster};
  const models::Strategy& strategy = models::strategy("fsdp");

  Job() {
    request.batch_per_rank = 1;
    request.ranks = ranks;
    request.wire = models::WireType::bf16;
  }
  [[nodiscard]] simulator::StrategyPrediction expected() const {
    return simulator::Predictor(request).predict(strategy);
  }
  [[nodiscard]] Check check(const Evidence& evidence) const {
    return calibration::check({.cluster = cluster, .job = &request, .strategy = &strategy},
                              evidence);
  }
  // A log of iterations that take this many times as long as expected.
  [[nodiscard]] LoggedRun log(double factor) const {
    LoggedRun run{"train.log", {.written_as = "step_time"}};
    run.iterations.values.assign(20, factor * expected().iteration.value.value());
    return run;
  }
};

TEST(Check, WhatTakesWhatIsExpectedIsAsExpected) {
  const Job job;
  const Check check = job.check({.runs = {job.log(1)}, .collectives = {measured_on(job.cluster)}});
  EXPECT_FALSE(check.is_slow());
  EXPECT_THAT(check.verdict(), HasSubstr("as expected: an iteration takes"));
  EXPECT_THAT(check.likely, IsEmpty());
  EXPECT_THAT(check.explanations, IsEmpty());
  EXPECT_NEAR(check.collectives.front().bandwidth, 1, 0.01);
}

TEST(Check, TheLimitMayBeAShare) {
  const Job job;
  Check check = job.check({.runs = {job.log(1.2)}});
  EXPECT_FALSE(check.is_slow());  // inside the interval
  check.allowed = 0.1;
  EXPECT_TRUE(check.is_slow());
  check.allowed = 0.3;
  EXPECT_FALSE(check.is_slow());
}

TEST(Check, AllQuantitiesOfALogAreOneIteration) {
  const Job job;
  const simulator::StrategyPrediction expected = job.expected();
  const double seconds = expected.iteration.value.value();
  const double samples = job.request.samples(ranks);
  const double tokens = samples * static_cast<double>(job.network.sequence);
  const std::vector<std::pair<LogQuantity, double>> all = {
      {LogQuantity::seconds, seconds},
      {LogQuantity::iterations_per_second, 1 / seconds},
      {LogQuantity::tokens_per_second_of_a_rank, tokens / seconds / ranks},
      {LogQuantity::tokens_per_second, tokens / seconds},
      {LogQuantity::samples_per_second_of_a_rank, samples / seconds / ranks},
      {LogQuantity::samples_per_second, samples / seconds}};
  for (const auto& [quantity, value] : all) {
    const Check check = job.check({.runs = {{"a.log", {"x", quantity, {value, value, value}}}}});
    EXPECT_NEAR(check.iteration->ratio(), 1, 1e-9);
  }
}

TEST(Check, AnotherGlobalBatchIsRefused) {
  const Job job;
  LoggedRun run = job.log(1);
  run.iterations.global_batch = 64;
  EXPECT_EQ(test::error_of([&] { return job.check({.runs = {run}}).is_slow(); }),
            "train.log: its global batch is 64, and that of the job 32; give the --batch and "
            "--accumulate of the run, or its --global-batch");
}

// Each fault is named by its own collectives, first or beside another that does the same to them.
TEST(Check, FaultsOfLinksAreTold) {
  int told = 0;
  for (const char* name : {"h100-ndr", "dgx-a100-hdr", "b200-ndr"}) {
    const models::Cluster cluster = models::catalog_cluster(name);
    for (const Fault& fault : faults_of(cluster, 4, {})) {
      if (fault.kind == FaultKind::computation) continue;
      SCOPED_TRACE(std::string(name) + ": " + fault.what);
      const MeasuredCollective measured = measured_on(fault.cluster);
      const Expectation expectation{.cluster = cluster};
      const double healthy = ExpectedCollectives(expectation, measured).distance(cluster);
      const Check found = check(expectation, {.collectives = {measured}});
      if (!found.collectives.front().is_slow()) continue;  // it costs less than nobody knows
      ASSERT_FALSE(found.likely.empty());
      EXPECT_NEAR(found.likely.front().distance, 0, 1e-9);
      EXPECT_GT(healthy, 0.1);
      EXPECT_TRUE(std::ranges::any_of(found.likely, [&](const Likely& one) {
        return one.what == fault.what;
      })) << found.likely.front().what;
      EXPECT_TRUE(found.is_slow());
      ++told;
    }
  }
  EXPECT_GE(told, 9);
}

RC_GTEST_PROP(Check, ThePaceOfLinksIsFound, ()) {
  static const models::Cluster cluster = models::catalog_cluster("h100-ndr");
  const double bandwidth = *rc::gen::inRange(10, 100) / 100.0;
  const models::Cluster slower = simulator::with_links(
      cluster, {.bandwidth = bandwidth, .links = simulator::Links::between_nodes});
  const MeasuredCollective measured = measured_on(slower);
  const Expectation expectation{.cluster = cluster};
  const CheckedCollective found = ExpectedCollectives(expectation, measured).checked();
  RC_ASSERT(std::abs(std::log(found.bandwidth / bandwidth)) < 0.05);
}

TracedRun traced(const Job& job, double computes, double exposed, double input, double idle) {
  const double whole = job.expected().iteration.value.value();
  const auto of = [&](double share) { return Seconds{share * whole}; };
  return {"trace.json",
          {.steps = 4,
           .iteration = of(computes + exposed + input + idle),
           .computation = of(computes),
           .communication = of(exposed),
           .exposed = of(exposed),
           .input = of(input),
           .idle = of(idle)}};
}

TEST(Check, TheLargestPartOfATraceIsNamed) {
  const Job job;
  const std::vector<std::pair<TracedRun, std::string>> all = {
      {traced(job, 3, 0.05, 0, 0), "computation explains"},
      {traced(job, 0.9, 2, 0, 0), "exposed communication explains"},
      {traced(job, 0.9, 0.05, 2, 0), "waiting for input explains"},
      {traced(job, 0.9, 0.05, 0, 2), "waiting for the host explains"}};
  for (const auto& [trace, said] : all) {
    const Check check = job.check({.traces = {trace}});
    EXPECT_TRUE(check.is_slow());
    EXPECT_THAT(check.verdict(), HasSubstr(said));
    EXPECT_GT(check.explained(), 0.8);
    EXPECT_FALSE(check.advice.empty());
  }
}

TEST(Check, SlowCollectivesExplainASlowIteration) {
  Job job;
  models::Cluster one_nic = job.cluster;
  one_nic.nics_per_node = 1;
  const auto slower = simulator::Predictor(job.request.on(one_nic, nullptr)).predict(job.strategy);
  LoggedRun run = job.log(slower.iteration.value / job.expected().iteration.value);
  const Check check = job.check({.runs = {run}, .collectives = {measured_on(one_nic)}});
  ASSERT_FALSE(check.explanations.empty());
  EXPECT_EQ(check.explanations.front().part, "the pace of all-reduces");
  EXPECT_NEAR(check.explained(), 1, 0.25);
  EXPECT_THAT(check.likely.front().what, HasSubstr("1 of its 8 NICs"));
}

TEST(Check, HealthyCollectivesBesideExposedCommunicationMeanRanksThatWait) {
  const Job job;
  const Check check =
      job.check({.traces = {traced(job, 0.9, 2, 0, 0)}, .collectives = {measured_on(job.cluster)}});
  EXPECT_THAT(check.advice, testing::Contains(HasSubstr("ranks wait for the slowest")));
}

TEST(Check, MachinesDifferInWhatTheyLack) {
  const models::Cluster cluster = models::catalog_cluster("h100-ndr");
  const auto texts = [&](const ImportedMachine& machine) {
    return differences(cluster, {"topo.txt", machine}).texts;
  };
  ImportedMachine machine;
  machine.gpus_per_node = 8;
  machine.device = "h100";
  machine.inside = Inside::nvlink;
  machine.nvlinks = 18;
  machine.nics.assign(8, {.name = "mlx5", .kind = NicKind::infiniband, .gbit_per_s = 400});
  EXPECT_THAT(texts(machine), IsEmpty());
  ImportedMachine other = machine;
  other.gpus_per_node = 7;
  EXPECT_THAT(texts(other),
              ElementsAre("topo.txt: it shows 7 GPUs of a host, of which there should be 8"));
  other = machine;
  other.nvlinks = 12;
  EXPECT_THAT(texts(other),
              ElementsAre("topo.txt: a GPU has 12 NVLinks, of which there should be 18"));
  other = machine;
  other.inside = Inside::pcie;
  EXPECT_THAT(texts(other),
              ElementsAre("topo.txt: GPUs reach each other over PCI Express, not NVLink"));
  other = machine;
  other.nics[3] = {.name = "mlx5_3", .gbit_per_s = 200};
  EXPECT_THAT(texts(other),
              ElementsAre("topo.txt: mlx5_3 runs at 200 Gbit/s, which should be 400"));
  other = machine;
  other.nics[3].distance = models::NicDistance::sys;
  EXPECT_THAT(texts(other), ElementsAre(HasSubstr("stands away from every GPU")));
  other.nics.push_back(machine.nics.front());  // one more than a job uses
  EXPECT_THAT(texts(other), IsEmpty());
  other = machine;
  for (ImportedNic& nic : other.nics) nic.kind = NicKind::sockets;
  EXPECT_THAT(texts(other), ElementsAre(HasSubstr("over TCP, and no RDMA")));
  other = machine;
  other.nics.resize(4);
  EXPECT_THAT(texts(other),
              ElementsAre("topo.txt: it shows 4 NICs of a host, of which there should be 8"));
  other = machine;
  other.device = "a100";
  EXPECT_THROW((void)texts(other), InputError);
}

}  // namespace
}  // namespace paceline::calibration
