#include "simulator/export/nccl_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "models/cluster/catalog.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"

namespace paceline::simulator {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

NcclPractice practice_of(int ranks) {
  static const models::Cluster cluster = models::catalog_cluster("h200-ndr");
  return {nccl_tables("2.28"), cluster, ranks,
          communication_cost(cluster, nullptr, Bound::stated, ranks), Bound::stated};
}

// A plan with buckets of these elements, each by the schedule of its place.
models::Plan plan_of(int ranks, const std::vector<std::pair<std::int64_t, const char*>>& buckets) {
  models::Plan plan;
  plan.strategy = "hybrid";
  plan.ranks = ranks;
  int gradient = 0;
  for (const auto& [elements, algorithm] : buckets) {
    const models::PlannedSchedule planned = std::string_view(algorithm) == "nccl"
                                                ? models::called(models::Library::nccl, ranks)
                                                : models::scheduled(algorithm, {.ranks = ranks});
    auto known = std::find(plan.schedules.begin(), plan.schedules.end(), planned);
    if (known == plan.schedules.end()) known = plan.schedules.insert(known, planned);
    plan.buckets.push_back({.first_gradient = gradient++,
                            .gradient_count = 1,
                            .elements = elements,
                            .schedule = static_cast<int>(known - plan.schedules.begin())});
  }
  return plan;
}

// Sizes of buckets that stand next to each other among the plan's become one range, those with another
// schedule between them do not.
TEST(NcclPlan, RingsAndTreesAreAskedForBySize) {
  const models::Plan plan = plan_of(16, {{1000, "ring"},
                                         {50, "double-binary-tree"},
                                         {4000, "multi-ring"},
                                         {10, "double-binary-tree"},
                                         {9000, "nccl"},
                                         {20000, "bidirectional-ring"}});
  const NcclPlan mapped(plan, practice_of(16));
  ASSERT_EQ(mapped.asked().size(), 3U);
  const auto at = [&](std::size_t i) { return mapped.asked()[i]; };
  EXPECT_EQ(std::tuple(at(0).least, at(0).most, at(0).algorithm),
            std::tuple(40, 200, NcclAlgorithm::tree));
  EXPECT_EQ(std::tuple(at(1).least, at(1).most, at(1).algorithm),
            std::tuple(4000, 16000, NcclAlgorithm::ring));
  EXPECT_EQ(std::tuple(at(2).least, at(2).most, at(2).algorithm),
            std::tuple(80000, 80000, NcclAlgorithm::ring));
  EXPECT_THAT(mapped.notes(), IsEmpty());
}

TEST(NcclPlan, WhatNcclHasNotIsSaidOnce) {
  const models::Plan plan = plan_of(
      16, {{1000, "halving-doubling"}, {50, "ring"}, {2000, "halving-doubling"}, {50, "nccl"}});
  const NcclPlan mapped(plan, practice_of(16));
  EXPECT_THAT(mapped.asked(), IsEmpty());
  EXPECT_THAT(
      mapped.notes(),
      testing::ElementsAre(
          "2 buckets of halving-doubling: NCCL has no such all-reduce, and takes another one "
          "for them",
          "buckets of 200 B travel in several ways, which NCCL tells apart by size only"));
}

TEST(NcclPlan, WhatIsTheFrameworksIsSaid) {
  models::Plan plan = plan_of(16, {{1000, "nccl"}});
  plan.buckets[0].gradient_count = 2;
  plan.overlap = models::Overlap::priority;
  EXPECT_THAT(NcclPlan(plan, practice_of(16)).notes(),
              testing::ElementsAre(HasSubstr("which tensors make a bucket is the framework's"),
                                   HasSubstr("overlap priority")));
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(NcclPlan, TheTunersFileCountsItsLinesAndSaysWhatCosts) {
  const models::Plan plan = plan_of(64, {{1000, "ring"}, {1'000'000, "ring"}});
  const ExportedText exported = nccl_tuner_text("t", plan, practice_of(64), false);
  const std::vector<std::string> lines = lines_of(exported.text);
  EXPECT_EQ(lines[0], "paceline.nccl-tuner/1");
  EXPECT_EQ(lines[1], "plan t");
  std::size_t rules = 0;
  for (const std::string& line : lines) {
    EXPECT_LE(line.size(), 255U);
    rules += line.starts_with("rule ") ? 1 : 0;
  }
  EXPECT_EQ(lines.back(), "end " + std::to_string(rules));
  EXPECT_THAT(exported.text, HasSubstr("rule allreduce 64 8 4000 "));
  EXPECT_THAT(exported.text, HasSubstr(" slower than NCCL's own choice"));
  EXPECT_THAT(exported.notes, Contains(HasSubstr("the plan's ring is predicted up to ")));
}

TEST(NcclPlan, ConstantsTakeThePlaceOfTheRulesThatNoPlanAsksFor) {
  const NcclPractice practice = practice_of(16);
  const std::string rules =
      nccl_tuner_text("t", plan_of(16, {{1000, "nccl"}}), practice, false).text;
  const std::string constants =
      nccl_tuner_text("t", plan_of(16, {{1000, "nccl"}}), practice, true).text;
  EXPECT_THAT(rules, HasSubstr("rule allreduce 16 2 "));
  EXPECT_THAT(rules, Not(HasSubstr("constant ")));
  EXPECT_THAT(constants, Not(HasSubstr("rule ")));
  EXPECT_THAT(constants, HasSubstr("constant 16 2 base ring ll "));
  EXPECT_THAT(nccl_tuner_text("t", plan_of(16, {{1000, "ring"}}), practice, true).text,
              HasSubstr("rule allreduce 16 2 4000 4000 ring"));
}

// Every size has a line, for NVIDIA's example gives what has none one channel.
TEST(NcclPlan, TheExamplesFileLeavesNoSizeOut) {
  const ExportedText exported =
      nccl_csv_text("t", plan_of(64, {{1000, "ring"}, {100'000'000, "ring"}}), practice_of(64));
  std::int64_t next = 1;
  for (const std::string& line : lines_of(exported.text)) {
    if (line.starts_with("#")) continue;
    std::istringstream fields(line);
    std::vector<std::string> values;
    for (std::string field; std::getline(fields, field, ',');) values.push_back(field);
    ASSERT_EQ(values.size(), 10U) << line;
    EXPECT_EQ(values[0], "allreduce");
    EXPECT_EQ(std::stoll(values[1]), next);
    next = std::stoll(values[2]) + 1;
    EXPECT_THAT((std::vector<std::string>{"tree", "ring", "nvls", "nvls_tree"}),
                Contains(values[3]));
    EXPECT_THAT((std::vector<std::string>{"ll", "ll128", "simple"}), Contains(values[4]));
    EXPECT_EQ((std::vector<std::string>(values.begin() + 5, values.end())),
              (std::vector<std::string>{"0", "8", "64", "-1", "-1"}));
  }
  EXPECT_EQ(next, most_rule_bytes + 1);
}

TEST(NcclPlan, EachStreamHasACommunicator) {
  models::Plan plan = plan_of(16, {{1000, "ring"}, {1'000'000, "ring"}, {10, "ring"}});
  plan.streams = 2;
  const std::string text = nccl_config_text("t", plan, practice_of(16)).text;
  EXPECT_THAT(text, HasSubstr("\"commName\": \"paceline-1\",\n        \"splitShare\": 1"));
  EXPECT_THAT(text, Not(HasSubstr("paceline-2")));
}

TEST(NcclPlan, ATitleIsPrintableAscii) {
  models::Plan plan;
  plan.strategy = "ring";
  plan.ranks = 4;
  EXPECT_EQ(plan_title("caf\xc3\xa9\n", plan), "caf???, ring, 4 ranks");
  EXPECT_LT(plan_title(std::string(300, 'x'), plan).size(), 120U);
}

}  // namespace
}  // namespace paceline::simulator
