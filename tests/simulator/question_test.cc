#include "simulator/question/question.h"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "simulator/planner/threshold_fields.h"
#include "simulator/question/question_fields.h"
#include "tests/support/error_of.h"

namespace paceline::simulator {
namespace {

// A value of each field that is not what holds without it.
const std::map<std::string_view, std::string> values = {{"model", "resnet50,vgg16"},
                                                        {"cluster", "jizhi-p40"},
                                                        {"placement", "round-robin"},
                                                        {"nic", "100 Gbit/s"},
                                                        {"batch", "32"},
                                                        {"accumulate", "2"},
                                                        {"global-batch", "4096"},
                                                        {"tensor", "4"},
                                                        {"no-sequence-parallel", ""},
                                                        {"tensor-overlap", ""},
                                                        {"tokens-once", ""},
                                                        {"context", "2"},
                                                        {"expert", "8"},
                                                        {"pipeline", "4"},
                                                        {"chunks", "2"},
                                                        {"pipeline-schedule", "gpipe"},
                                                        {"strategy", "ring,fused-ring"},
                                                        {"sequence", "128"},
                                                        {"precision", "fp32"},
                                                        {"wire", "bf16"},
                                                        {"optimizer", "muon"},
                                                        {"optimizer-states", "2"},
                                                        {"offload", "optimizer"},
                                                        {"attention-kernel", "flash-2"},
                                                        {"theta", "4 MiB"},
                                                        {"eta", "64 KiB"},
                                                        {"group", "8"},
                                                        {"reshard-after-forward", "no"},
                                                        {"recompute", "full"},
                                                        {"segments", "4"},
                                                        {"rings", "2"},
                                                        {"servers", "3"},
                                                        {"server-placement", "round-robin"},
                                                        {"streams", "2"},
                                                        {"overlap", "none"},
                                                        {"others", ""},
                                                        {"horovod", "0.16"},
                                                        {"cycle", "3 ms"},
                                                        {"partition", "1 MiB"},
                                                        {"credit", "2 MiB"},
                                                        {"server-machines", "2"},
                                                        {"server-transport", "rdma"},
                                                        {"factors-every", "10"},
                                                        {"host-copies", ""},
                                                        {"profile", "none"},
                                                        {"throughput", "253.1@64,31@8"},
                                                        {"node-throughput", "1700 images/s"},
                                                        {"slowdown", "1.1"},
                                                        {"beside-traffic", "1.2"},
                                                        {"compute-efficiency", "45%"},
                                                        {"stack", "graphs"},
                                                        {"scale-gradients", "0.5"},
                                                        {"exact-compute", ""},
                                                        {"engine", "flow"},
                                                        {"nccl", "2.20"},
                                                        {"spread", "normal:0.1"},
                                                        {"slow-rank", "3=2"},
                                                        {"slow-node", "1=0.5"},
                                                        {"backup", "1"},
                                                        {"iterations", "100"},
                                                        {"seed", "4"},
                                                        {"ranks", "64"},
                                                        {"nodes", "8"},
                                                        {"plan", "plan.json"},
                                                        {"baseline", "8"},
                                                        {"what-if", "bandwidth=2"},
                                                        {"ignore-memory", ""}};

std::set<std::string_view> given_in(const Question& question) {
  std::set<std::string_view> given;
  for (const Field<Question>& field : question_fields())
    if (field.is_given(question)) given.insert(field.name);
  return given;
}

TEST(QuestionFields, HaveNamesOfTheirOwnAndHelp) {
  std::set<std::string_view> names;
  for (const Field<Question>& field : question_fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_FALSE(field.help.empty()) << field.name;
    EXPECT_FALSE(field.group.empty()) << field.name;
    EXPECT_EQ(&question_field(field.name), &field);
    EXPECT_EQ(field.is_flag(), field.python == "bool") << field.name;
  }
  for (const ThresholdField& field : threshold_fields()) EXPECT_TRUE(names.contains(field.name));
  EXPECT_EQ(names.size(), values.size());
}

TEST(QuestionFields, AreGivenOnceTheyAreReadAndNoOtherIs) {
  EXPECT_TRUE(given_in({}).empty());
  for (const auto& [name, text] : values) {
    Question question;
    read_field(question_field(name), text, question);
    EXPECT_EQ(given_in(question), std::set<std::string_view>{name});
  }
}

// A value of a field reaches the member that it is named after, whatever other fields are read before.
TEST(QuestionFields, AreReadInAnyOrder) {
  Question forward;
  Question backward;
  for (const auto& [name, text] : values) read_field(question_field(name), text, forward);
  for (auto value = values.rbegin(); value != values.rend(); ++value)
    read_field(question_field(value->first), value->second, backward);
  for (const Question& question : {forward, backward}) {
    EXPECT_EQ(given_in(question).size(), values.size());
    EXPECT_EQ(question.networks, (std::vector<std::string>{"resnet50", "vgg16"}));
    EXPECT_EQ(question.batch_per_rank, 32);
    EXPECT_EQ(question.sequence, 128);
    EXPECT_EQ(question.precision, models::Precision::fp32);
    EXPECT_EQ(question.wires, std::vector{models::WireType::bf16});
    EXPECT_EQ(question.thresholds.fusion, Bytes{4.0 * 1024 * 1024});
    EXPECT_EQ(question.thresholds.factors_every, 10);
    EXPECT_TRUE(question.thresholds.through_host);
    EXPECT_TRUE(question.strategies.others);
    EXPECT_EQ(question.strategies.named.size(), 2U);
    EXPECT_EQ(question.compute.throughput,
              (std::vector<StatedRate>{{PerSecond{253.1}, 64}, {PerSecond{31}, 8}}));
    EXPECT_EQ(question.compute.node_throughput, (StatedRate{PerSecond{1700}}));
    EXPECT_EQ(question.stragglers.slow_nodes, "1=0.5");
    EXPECT_EQ(question.baseline_ranks, 8);
  }
}

TEST(QuestionFields, SayWhichOptionIsWrong) {
  const auto error = [](const char* name, const char* text) {
    return test::error_of([&] {
      Question question;
      read_field(question_field(name), text, question);
      return 0;
    });
  };
  EXPECT_EQ(error("batch", "0"), "--batch: '0' is not a whole number from 1 to 1048576");
  EXPECT_EQ(error("strategy", "fussed-ring"),
            "--strategy: unknown strategy 'fussed-ring'; did you mean 'fused-ring'?");
  EXPECT_EQ(error("node-throughput", "100,90@32"),
            "--node-throughput: several rates; give that of one batch");
  EXPECT_EQ(error("theta", "3").substr(0, 24), "--theta: '3' has no unit");
}

TEST(QuestionFields, WhatAPlanTakesThePlaceOfIsItsTravel) {
  Question question;
  for (const auto& [name, text] : values) read_field(question_field(name), text, question);
  const std::vector<std::string> replaced = options_beside_plan(question);
  EXPECT_EQ(replaced.size(),
            4 + threshold_fields().size() + names_of_groups({layout_group}).size());
  EXPECT_EQ(replaced.front(), "--strategy");
  EXPECT_TRUE(options_beside_plan({}).empty());
}

TEST(Question, AsksWhatItsRequestSays) {
  Question question;
  for (const auto& [name, text] : values) read_field(question_field(name), text, question);
  EXPECT_EQ(test::error_of([&] { (void)with_batches(question, 16); }).substr(0, 14),
            "--global-batch");  // beside --accumulate
  question.global_batch.reset();
  const models::NetworkWork network = models::work(models::zoo_network("alexnet"));
  const models::Cluster cluster = models::catalog_cluster("jizhi-p40");
  const PredictionRequest request =
      request_for(question, network, Bytes{5}, cluster, nullptr, 16, models::WireType::fp16);
  EXPECT_EQ(&request.network, &network);
  EXPECT_EQ(&request.cluster, &cluster);
  EXPECT_EQ(request.ranks, 16);
  EXPECT_EQ(request.batch_per_rank, 32);
  EXPECT_EQ(request.accumulate, 2);
  EXPECT_EQ(request.precision, models::Precision::fp32);
  EXPECT_EQ(request.wire, models::WireType::fp16);
  EXPECT_EQ(request.thresholds.streams, 2);
  EXPECT_EQ(request.engine, EngineKind::flow);
  EXPECT_EQ(request.nccl_version, "2.20");
  EXPECT_EQ(request.overlap, models::Overlap::none);
  EXPECT_EQ(request.stored_sample, Bytes{5});
  EXPECT_TRUE(request.compute_is_exact);
  EXPECT_EQ(request.baseline_ranks, 8);

  const models::Cluster other = models::catalog_cluster("h200-ndr");
  const PredictionRequest there = request.on(other, nullptr);
  EXPECT_EQ(&there.cluster, &other);
  EXPECT_EQ(there.ranks, 16);
  EXPECT_EQ(there.batch_per_rank, 32);
  EXPECT_EQ(there.optimizer.states, 2);
  EXPECT_EQ(there.stored_sample, Bytes{5});
}

}  // namespace
}  // namespace paceline::simulator
