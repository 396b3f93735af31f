#include "simulator/export/msccl_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "models/base/error.h"
#include "models/plan/strategy.h"
#include "tests/simulator/small_job.h"
#include "tests/support/error_of.h"
#include "tests/support/msccl_interpreter.h"

namespace paceline::simulator {
namespace {

using test::MscclMachine;

// Whether the interpreter, by the file alone, adds every contribution of every rank once.
void expect_all_reduce(const test::MscclFile& file, const std::string& name) {
  const auto chunks = static_cast<std::size_t>(file.number("nchunksperloop"));
  std::mt19937_64 random(3);
  std::vector<MscclMachine::Buffers> buffers(file.gpus.size());
  MscclMachine::Buffer sum(chunks, 0);
  for (MscclMachine::Buffers& own : buffers) {
    for (std::size_t c = 0; c < chunks; ++c) {
      own.input.push_back(random());
      sum[c] += own.input.back();
    }
  }
  MscclMachine machine(file, 8);
  ASSERT_NO_THROW(machine.run(buffers, 5)) << name;
  for (const MscclMachine::Buffers& own : buffers) ASSERT_EQ(own.input, sum) << name;
}

// Elements that all chunks divide: 2^4 * 3^2 * 5 * 7 times something, of many sizes.
models::NetworkWork network() {
  constexpr std::int64_t multiple = 5040 * 16;
  return test::chain_network({multiple, 40 * multiple, 2 * multiple, 300 * multiple, 7 * multiple,
                              900 * multiple, multiple, 12 * multiple});
}

// For every strategy with schedules: each bucket has exactly one file that a runtime chooses for it,
// that file's schedule is the bucket's, and it is an all-reduce.
TEST(MscclPlan, EveryBucketHasItsFile) {
  const models::NetworkWork work = network();
  int files = 0;
  for (const models::Strategy& strategy : models::strategy_catalogue()) {
    if (strategy.library() || strategy.traits().all_at_once || strategy.other) continue;
    for (const int ranks : {2, 4, 6, 8}) {
      for (const models::WireType wire : {models::WireType::fp32, models::WireType::fp16}) {
        const models::Plan plan = models::make_plan(
            strategy, work.gradients, ranks, wire,
            {.fusion = Bytes{1e6}, .hybrid = Bytes{2e6}, .group_size = 2, .segments = 2});
        const MscclPlan exported = msccl_plan("t", plan);
        const std::string name = std::string(strategy.name) + " p=" + std::to_string(ranks);
        std::vector<test::MscclFile> parsed;
        for (const NamedText& file : exported.files) {
          parsed.push_back(test::parse_msccl(file.text));
          expect_all_reduce(parsed.back(), name);
          ++files;
        }
        if (!exported.notes.empty()) continue;  // elements that the chunks do not divide
        for (const models::Bucket& bucket : plan.buckets) {
          int chosen = 0;
          for (std::size_t i = 0; i < parsed.size(); ++i) {
            const int size = wire == models::WireType::fp32 ? 4 : 2;
            if (!test::msccl_chooses(parsed[i], ranks, bucket.elements, size)) continue;
            EXPECT_TRUE(test::msccl_executor_chooses(parsed[i], ranks, bucket.elements, size));
            ++chosen;
            EXPECT_NE(exported.files[i].name.find(
                          plan.schedules[static_cast<std::size_t>(bucket.schedule)].algorithm),
                      std::string::npos);
          }
          EXPECT_EQ(chosen, 1) << name << " " << bucket.elements;
        }
      }
    }
  }
  EXPECT_GT(files, 80);
}

TEST(MscclPlan, WhatHasNoFileIsSaid) {
  const models::NetworkWork work = test::chain_network({1001, 5});
  models::Plan plan =
      models::make_plan(models::strategy("ring"), work.gradients, 4, models::WireType::fp32, {});
  EXPECT_THAT(
      msccl_plan("t", plan).notes,
      testing::ElementsAre("2 buckets of ring: the elements are no multiple of 4 chunks, so "
                           "that NCCL's own all-reduce runs; pad to a multiple"));
  plan = models::make_plan(models::strategy("nccl"), work.gradients, 4, models::WireType::fp32, {});
  EXPECT_EQ(
      test::error_of([&] { return msccl_plan("t", plan).files.size(); }),
      "no schedule of the plan has a file: nccl (timed by its own model): it has no steps that "
      "we know; choose a plan with schedules of ours on fewer ranks");
  plan =
      models::make_plan(models::strategy("ring"), work.gradients, 400, models::WireType::fp32, {});
  EXPECT_THAT(test::error_of([&] { return msccl_plan("t", plan).files.size(); }),
              testing::HasSubstr("more than 256 steps"));
}

// Two buckets of one size, by two schedules: no file may serve both.
TEST(MscclPlan, OneSizeInTwoWaysHasNoFile) {
  const models::NetworkWork work = test::chain_network({8000, 8000, 16000});
  models::Plan plan =
      models::make_plan(models::strategy("ring"), work.gradients, 4, models::WireType::fp32, {});
  plan.schedules.push_back({"halving-doubling",
                            {.ranks = 4},
                            models::all_reduce_algorithm("halving-doubling").build({.ranks = 4})});
  plan.buckets[1].schedule = 1;
  const MscclPlan exported = msccl_plan("t", plan);
  EXPECT_EQ(exported.files.size(), 1U);
  EXPECT_FALSE(test::msccl_chooses(test::parse_msccl(exported.files[0].text), 4, 8000, 4));
  EXPECT_TRUE(test::msccl_chooses(test::parse_msccl(exported.files[0].text), 4, 16000, 4));
  EXPECT_THAT(exported.notes,
              testing::ElementsAre(testing::HasSubstr("buckets of 32000 B travel in "
                                                      "several ways")));
}

}  // namespace
}  // namespace paceline::simulator
