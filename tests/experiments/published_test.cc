#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "experiments/published/predict_source.h"
#include "experiments/published/summary.h"
#include "experiments/reproduction.h"
#include "models/base/error.h"

namespace paceline::experiments {
namespace {

using ::testing::HasSubstr;

const std::string header =
    "id,where,what,series,role,cluster,model,batch,sequence,precision,ranks,strategy,options,"
    "quantity,against,published,unit,note\n";

Reproduction predicted(const std::string& rows, Faults faults = Faults::are_errors) {
  const Source source = read_source({"t", "t", {{"expected.csv", header + rows}}});
  return predict_source(source, {.faults = faults, .threads = 2});
}

const Row& row(const Reproduction& result, const std::string& id) {
  for (const Row& candidate : result.rows) {
    if (candidate.id == id) return candidate;
  }
  ADD_FAILURE() << "no row " << id;
  return result.rows.front();
}

// A row of ResNet-50 at batch 64 on the cluster of Jizhi.
std::string line(const std::string& id, const std::string& series, const std::string& role,
                 int ranks, const std::string& strategy, const std::string& result) {
  return id + ",,row " + id + "," + series + "," + role + ",jizhi-p40,resnet50,64,,fp32," +
         std::to_string(ranks) + "," + strategy + ",," + result + ",\n";
}

TEST(Published, OneRankCalibratesAndTheRestIsPredicted) {
  const Reproduction result =
      predicted(line("one", "s", "calibrates", 1, "ring", "throughput,,172,images/s") +
                line("node", "s", "predicted", 8, "ring", "throughput,,1300,images/s") +
                line("all", "s", "predicted", 64, "fused-ring", "efficiency,one,97,%") +
                line("time", "s", "predicted", 8, "ring", "iteration,,390,ms") +
                line("gain", "s", "predicted", 64, "fused-ring", "ratio,none,2,x") +
                line("none", "s", "reference", 64, "no-overlap", "throughput,,,"));
  EXPECT_EQ(result.rows.size(), 5U);  // a reference is no row
  EXPECT_EQ(row(result, "one").provenance, Provenance::calibrated);
  EXPECT_NEAR(row(result, "one").ours, 172, 1e-6);
  const Row& node = row(result, "node");
  EXPECT_EQ(node.provenance, Provenance::predicted);
  EXPECT_GT(node.ours, 0.9 * 8 * 172);
  EXPECT_LE(node.ours, 8 * 172 + 1e-6);
  EXPECT_LE(node.low, node.ours);
  EXPECT_GE(node.high, node.ours);
  // An iteration and a throughput of one job are one prediction.
  EXPECT_NEAR(row(result, "time").ours * 1e-3 * node.ours, 8 * 64, 1e-6);
  EXPECT_TRUE(row(result, "time").is_time);
  EXPECT_GT(row(result, "all").ours, 50);
  EXPECT_LE(row(result, "all").ours, 100 + 1e-6);
  EXPECT_GT(row(result, "gain").ours, 1);
}

TEST(Published, ANodeCalibratesAndIsMet) {
  const Reproduction result =
      predicted(line("node", "s", "calibrates", 8, "fused-ring", "throughput,,1300,images/s") +
                line("more", "s", "predicted", 64, "fused-ring", "throughput,,10000,images/s") +
                line("slow", "s", "predicted", 64, "no-overlap", "throughput,,9000,images/s"));
  EXPECT_NEAR(row(result, "node").ours, 1300, 1300e-6);
  EXPECT_GT(row(result, "more").ours, 8000);
  // The one pair differs by more than 5 %, and is in order.
  const Summary summary = summary_of(result.rows, is_training);
  EXPECT_EQ(summary.rows, 2);
  EXPECT_EQ(summary.calibrated, 1);
  EXPECT_EQ(summary.pairs, 1);
  EXPECT_EQ(summary.ordered, 1);
}

// The rate of a rank at the largest scale that calibrates, 1300 / 8, times the ranks.
TEST(Published, StandsBesideTheNaiveGuess) {
  const Reproduction result =
      predicted(line("one", "s", "calibrates", 1, "ring", "throughput,,172,images/s") +
                line("node", "s", "calibrates", 8, "fused-ring", "throughput,,1300,images/s") +
                line("more", "s", "predicted", 64, "fused-ring", "throughput,,10000,images/s") +
                line("time", "s", "predicted", 64, "fused-ring", "iteration,,200,ms") +
                line("share", "s", "predicted", 64, "fused-ring", "efficiency,one,90,%"));
  EXPECT_FALSE(row(result, "node").naive.has_value());
  EXPECT_NEAR(row(result, "more").naive.value(), 64 * 1300 / 8, 1e-6);
  EXPECT_NEAR(row(result, "time").naive.value() * row(result, "more").naive.value(),
              row(result, "time").ours * row(result, "more").ours, 1e-3);
  EXPECT_NEAR(row(result, "share").naive.value(), 100, 1e-9);
  const Summary::Naive naive = summary_of(result.rows, is_training).naive;
  EXPECT_EQ(naive.rows, 3);
  std::vector<double> errors;
  for (const char* id : {"more", "time", "share"})
    errors.push_back(std::abs(row(result, id).speed_error_of(row(result, id).naive.value())));
  std::ranges::sort(errors);
  EXPECT_DOUBLE_EQ(naive.median, errors[1]);
}

TEST(Published, ASecondPointCalibratesOrIsPredicted) {
  const Source source = read_source(
      {"t",
       "t",
       {{"expected.csv",
         header + line("one", "s", "calibrates", 1, "ring", "throughput,,172,images/s") +
             line("node", "s", "second-point", 8, "fused-ring", "throughput,,1000,images/s") +
             line("more", "s", "predicted", 64, "fused-ring", "throughput,,8000,images/s")}}});
  const Reproduction two = predict_source(source, {.points = CalibrationPoints::two});
  EXPECT_EQ(row(two, "node").provenance, Provenance::calibrated);
  EXPECT_NEAR(row(two, "node").ours, 1000, 1000e-6);
  const Reproduction one = predict_source(source, {.points = CalibrationPoints::one});
  EXPECT_EQ(row(one, "node").provenance, Provenance::predicted);
  EXPECT_GT(row(one, "node").ours, 1200);
  // Every larger job loses the same share as the node.
  EXPECT_NEAR(row(two, "more").ours / row(one, "more").ours,
              row(two, "node").ours / row(one, "node").ours, 0.05);
}

TEST(Published, ASecondPointNeedsAFirst) {
  try {
    (void)predicted(line("node", "s", "second-point", 8, "ring", "throughput,,1000,images/s"));
    FAIL();
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "t/expected.csv:2: series 's' has no first point; let a row of it on fewer ranks "
                 "calibrate");
  }
}

TEST(Published, SeriesDoNotShareTheirCalibration) {
  const Reproduction result =
      predicted(line("a1", "a", "calibrates", 1, "ring", "throughput,,172,images/s") +
                line("b1", "b", "calibrates", 1, "ring", "throughput,,86,images/s") +
                line("a8", "a", "predicted", 8, "no-overlap", "throughput,,1300,images/s") +
                line("b8", "b", "predicted", 8, "no-overlap", "throughput,,650,images/s"));
  EXPECT_GT(row(result, "a8").ours, 1.5 * row(result, "b8").ours);
}

TEST(Published, FaultsOfRowsAreErrorsOrListed) {
  const std::string good = line("one", "s", "calibrates", 1, "ring", "throughput,,172,images/s");
  const std::string bad = line("many", "s", "predicted", 1 << 20, "ring", "throughput,,1,images/s");
  try {
    (void)predicted(good + bad);
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), HasSubstr("t/expected.csv:3: "));
  }
  const Reproduction listed = predicted(good + bad, Faults::are_listed);
  ASSERT_EQ(listed.failed.size(), 1U);
  EXPECT_EQ(listed.failed.front().id, "many");
  EXPECT_THAT(listed.failed.front().why, HasSubstr("t/expected.csv:3: "));
}

TEST(Published, ASeriesWithoutCalibrationRestsOnTheRoofline) {
  const Reproduction result =
      predicted(line("node", "s", "predicted", 8, "ring", "throughput,,1300,images/s"));
  EXPECT_THAT(row(result, "node").configuration, HasSubstr("roofline of p40"));
  ASSERT_EQ(result.notes.size(), 1U);
  EXPECT_THAT(result.notes.front(), HasSubstr("No row calibrates series s"));
}

TEST(Published, AllReducesAreTimed) {
  const std::string table =
      "id,where,series,role,cluster,ranks,library,algorithm,bytes,published_us,note\n"
      "r,,s,predicted,jizhi-p40,16,NCCL 2.8.3,ring,1048576,400,\n"
      "t,,s,predicted,jizhi-p40,16,NCCL 2.8.3,double-binary-tree,4096,100,\n"
      "n,,s,predicted,jizhi-p40,16,NCCL 2.8.3,nccl,1048576,400,\n"
      "c,,s,calibrates,jizhi-p40,16,NCCL 2.8.3,ring,8,100,\n"
      "x,,s,left-out,,,SHARP,,,,no such switch\n";
  const Reproduction result =
      predict_source(read_source({"t", "t", {{"all_reduce.csv", table}}}), {.threads = 2});
  ASSERT_EQ(result.rows.size(), 4U);
  EXPECT_EQ(result.left_out.size(), 1U);
  for (const Row& r : result.rows) {
    EXPECT_GT(r.ours, 1) << r.id;
    EXPECT_LT(r.ours, 1e4) << r.id;
    EXPECT_LE(r.low, r.ours);
    EXPECT_GE(r.high, r.ours);
  }
  EXPECT_EQ(summary_of(result.rows, is_training).rows, 0);
  EXPECT_EQ(summary_of(result.rows, is_small_all_reduce).rows, 1);
  EXPECT_EQ(summary_of(result.rows, is_small_all_reduce).calibrated, 1);
  EXPECT_EQ(summary_of(result.rows, is_large_all_reduce).rows, 2);
  EXPECT_THAT(row(result, "n").configuration, HasSubstr("NCCL"));
}

// Layouts of a job as times in seconds: the first is ours, the second is published.
std::vector<Row> sweep_of(const std::vector<std::pair<double, double>>& times,
                          const std::string& job = "job") {
  std::vector<Row> rows;
  for (const auto& [ours, published] : times)
    rows.push_back({.published = published, .ours = ours, .is_time = true, .sweep = job});
  return rows;
}

TEST(Published, ASweepSaysWhatTheLayoutThatWePutFirstLoses) {
  const Sweeps sweeps = sweeps_of(sweep_of({{1, 12}, {2, 10}, {3, 15}, {4, 20}}));
  EXPECT_EQ(sweeps.sweeps, 1);
  EXPECT_EQ(sweeps.rows, 4);
  EXPECT_NEAR(sweeps.median_regret, 0.2, 1e-12);
  EXPECT_NEAR(sweeps.worst_regret, 0.2, 1e-12);
  EXPECT_DOUBLE_EQ(sweeps.median_tau, 4.0 / 6);
}

TEST(Published, TwoLayoutsAreNoSweepAndCalibratedOnesAreOfNone) {
  EXPECT_EQ(sweeps_of(sweep_of({{1, 2}, {2, 3}})).sweeps, 0);
  std::vector<Row> rows = sweep_of({{1, 2}, {2, 3}, {3, 4}});
  rows[1].provenance = Provenance::calibrated;
  EXPECT_EQ(sweeps_of(rows).sweeps, 0);
  std::vector<Row> two = sweep_of({{1, 2}, {2, 3}, {3, 4}});
  for (Row& row : sweep_of({{3, 2}, {2, 3}, {1, 4}}, "another")) two.push_back(std::move(row));
  const Sweeps sweeps = sweeps_of(two);
  EXPECT_EQ(sweeps.sweeps, 2);
  EXPECT_NEAR(sweeps.median_regret, 0.5, 1e-12);  // of 0 and 1
  EXPECT_DOUBLE_EQ(sweeps.median_tau, 0);         // of 1 and -1
}

RC_GTEST_PROP(Sweeps, InThePublishedOrderNothingIsLost, ()) {
  const auto published = *rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1000000));
  RC_PRE(published.size() >= 3 && std::set(published.begin(), published.end()).size() > 1);
  std::vector<std::pair<double, double>> times;
  std::vector<std::pair<double, double>> reversed;
  for (const int time : published) {
    times.emplace_back(std::sqrt(time), time);
    reversed.emplace_back(1.0 / time, time);
  }
  RC_ASSERT(sweeps_of(sweep_of(times)).worst_regret == 0);
  RC_ASSERT(sweeps_of(sweep_of(times)).median_tau == 1);
  RC_ASSERT(sweeps_of(sweep_of(reversed)).median_tau == -1);
}

TEST(Published, SummariesAreOfSpeeds) {
  std::vector<Row> rows(4);
  rows[0] = {.published = 100, .ours = 110, .low = 99, .high = 120};
  rows[1] = {.published = 2, .ours = 1, .low = 1, .high = 1.5, .is_time = true};  // twice as fast
  rows[2] = {.published = 100, .ours = 80, .low = 70, .high = 90};
  rows[3] = {.provenance = Provenance::calibrated, .published = 1, .ours = 1};
  const Summary summary = summary_of(rows, is_training);
  EXPECT_EQ(summary.rows, 3);
  EXPECT_EQ(summary.calibrated, 1);
  EXPECT_NEAR(summary.median, 0.2, 1e-12);
  EXPECT_NEAR(summary.worst, 1, 1e-12);
  EXPECT_NEAR(summary.bias, 0.1, 1e-12);
  EXPECT_EQ(summary.inside, 1);
}

}  // namespace
}  // namespace paceline::experiments
