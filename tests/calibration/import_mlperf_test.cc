// Logs in the shape of MLPerf training of three rounds, and what is wrong with such files.
#include "calibration/import/mlperf.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "calibration/import/import_profile.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;

Imported parsed(const std::string& file) {
  return parse_mlperf(golden_import("mlperf/" + file), "run.log");
}

std::string error_of_text(const std::string& text) {
  return test::error_of([&] { return parse_mlperf(text, "run.log"); });
}

// Blocks of 4 epochs at 20,000, 21,000 and 20,500 samples/s, each with an evaluation of 3 s in it.
TEST(Mlperf, BlocksOfEpochsWithoutTheirEvaluations) {
  const Imported imported = parsed("0.7-resnet-blocks.log");
  EXPECT_EQ(imported.tool, "MLPerf log");
  ASSERT_EQ(imported.throughputs.size(), 1u);
  const ImportedThroughput& throughput = imported.throughputs[0];
  EXPECT_EQ(throughput.benchmark, "resnet");
  EXPECT_EQ(throughput.global_batch, 3200);
  EXPECT_NEAR(throughput.samples.value.value(), 20500, 1);
  EXPECT_LT(throughput.samples.low.value(), 20001);
  EXPECT_GT(throughput.samples.high.value(), 20999);
  EXPECT_EQ(throughput.samples.provenance, Provenance::measured);
  EXPECT_THAT(throughput.samples.source, HasSubstr("median of 3 blocks"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("15374004 samples")));
}

// 14,000 samples/s, an evaluation of 0.7 s after every 250,000.
TEST(Mlperf, LanguageModelsCountSamplesInEpochNum) {
  const Imported imported = parsed("3.1-bert-samples-in-epoch-num.log");
  ASSERT_EQ(imported.throughputs.size(), 1u);
  EXPECT_NEAR(imported.throughputs[0].samples.value.value(), 14000, 1);
  EXPECT_EQ(imported.throughputs[0].global_batch, 448);
  EXPECT_THAT(imported.remarks, Contains("epoch_num counts samples in this log"));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("accumulated over 2 steps")));
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("throughput of 14214.7")));
}

TEST(Mlperf, BlocksBySamplesCount) {
  const Imported imported = parsed("5.0-llm-samples-count.log");
  ASSERT_EQ(imported.throughputs.size(), 1u);
  EXPECT_NEAR(imported.throughputs[0].samples.value.value(), 1.925, 1e-3);
  EXPECT_THAT(imported.throughputs[0].samples.source, HasSubstr("median of 4 blocks"));
}

// Blocks of 4 epochs at 10,000, 10,500 and 10,250 samples/s, with evaluations behind them; each block_start
// stands twice.
TEST(Mlperf, OfRound06) {
  const Imported imported = parsed("0.6-resnet-mll.log");
  ASSERT_EQ(imported.throughputs.size(), 1u);
  EXPECT_EQ(imported.throughputs[0].benchmark, "resnet");
  EXPECT_EQ(imported.throughputs[0].global_batch, 3328);
  EXPECT_NEAR(imported.throughputs[0].samples.value.value(), 10250, 1);
  EXPECT_THAT(imported.throughputs[0].samples.source, HasSubstr("median of 3 blocks"));
}

// The target was reached in 0.3 of the first epoch, at 140,000 samples/s, 20 s after run_start.
TEST(Mlperf, AnEpochThatTheTargetEndsCountsInPart) {
  const Imported imported = parsed("4.0-gnn-part-of-epoch.log");
  ASSERT_EQ(imported.throughputs.size(), 1u);
  const double samples = 0.3 * 94605581;
  EXPECT_NEAR(imported.throughputs[0].samples.value.value(), samples / (samples / 140000 + 20), 10);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("28381674 samples")));
  // The run of dlrm_dcnv2 stops before its epoch does, and epochs count from 0.
  std::string text = golden_import("mlperf/4.0-gnn-part-of-epoch.log");
  const std::size_t stop = text.rfind(":::MLLOG", text.rfind("epoch_stop"));
  const std::size_t end = text.find('\n', stop) + 1;
  const std::string line = text.substr(stop, end - stop);
  text = with(text.erase(stop, end - stop) + line, "\"epoch_num\": 1}", "\"epoch_num\": 0}");
  EXPECT_EQ(parse_mlperf(text, "run.log").throughputs[0].samples.value,
            imported.throughputs[0].samples.value);
}

// 3,360 samples in blocks of 9,447 and 9,505 ms, as 3D U-Net of round 4.0 writes them.
TEST(Mlperf, EpochCountOfSamplesIsToldByTheThroughput) {
  const auto event = [](long time_ms, const std::string& key, const std::string& rest) {
    return fmt::format(":::MLLOG {{\"time_ms\": {}, \"key\": \"{}\", {}}}\n", time_ms, key, rest);
  };
  const auto log = [&](double stated) {
    const std::string block = R"("value": null, "metadata": {"epoch_count": 3360})";
    const std::string stats = fmt::format(R"("value": {{"throughput": {}}})", stated);
    return event(0, "run_start", R"("value": null)") +
           event(3, "train_samples", R"("value": 168)") + event(10, "block_start", block) +
           event(9457, "tracked_stats", stats) + event(9457, "block_stop", block) +
           event(9457, "block_start", block) + event(18962, "tracked_stats", stats) +
           event(18962, "block_stop", block) + event(18963, "run_stop", R"("value": null)");
  };
  const Imported imported = parse_mlperf(log(355.0), "run.log");
  EXPECT_NEAR(imported.throughputs[0].samples.value.value(), 354.6, 0.1);
  EXPECT_THAT(imported.remarks, Contains(HasSubstr("epoch_count counts samples")));
  EXPECT_THAT(error_of_text(log(4000)), HasSubstr("does not say how many samples"));
}

TEST(Mlperf, AnEventThatIsPrintedTwiceIsOne) {
  const std::string text = golden_import("mlperf/0.7-resnet-blocks.log");
  std::string twice;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    const std::string line = text.substr(begin, end - begin);
    twice += line + line;
    begin = end;
  }
  EXPECT_EQ(parse_mlperf(twice, "run.log").throughputs[0].samples.value,
            parse_mlperf(text, "run.log").throughputs[0].samples.value);
}

TEST(Mlperf, RoundsBefore07NameTheLineToo) {
  EXPECT_EQ(error_of_text(":::MLPv0.5.0 resnet 1543785259.5 (benchmark_cnn.py:1271) run_start\n"),
            "run.log:1: this is a log of MLPerf 0.5; give one of round 0.6 or later");
  for (const char* const event : {":::MLL run_start: {}", ":::MLL 1 run_start {}", ":::MLL 1 a: }{",
                                  ":::MLL -1 run_start: {}", ":::MLL 1e300 run_start: {}"})
    EXPECT_THAT(error_of_text(std::string("text\n") + event + "\n"),
                HasSubstr("run.log:2: an event without time, key and value"))
        << event;
  EXPECT_THAT(error_of_text(":::MLL 1.5 run_start: {\"value\": nan}\n"), HasSubstr("run.log:1: "));
}

TEST(Mlperf, AProfileHasTheThroughputOfTheJob) {
  ImportContext context{
      .file = "run.log", .name = "run", .cluster = "lab", .device = "v100", .network = "resnet50"};
  context.ranks = 128;
  const Imported imported = parsed("0.7-resnet-blocks.log");
  const models::Profile profile = profile_of(imported, context).profile;
  ASSERT_EQ(profile.throughputs.size(), 1u);
  EXPECT_EQ(profile.throughputs[0].batch_per_rank, 25);
  EXPECT_EQ(profile.throughputs[0].ranks, 128);
  EXPECT_EQ(profile.throughputs[0].network, "resnet50");
  EXPECT_THAT(profile.throughputs[0].samples.source, HasSubstr("run.log (MLPerf log, median of"));
  context.ranks = 7;
  EXPECT_THAT(test::error_of([&] { return profile_of(imported, context); }),
              HasSubstr("--ranks: 7, among which a batch of 3200 cannot be shared evenly"));
  context.ranks = 0;
  EXPECT_THAT(test::error_of([&] { return profile_of(imported, context); }), HasSubstr("--ranks"));
  context.network = "";
  EXPECT_THAT(test::error_of([&] { return profile_of(imported, context); }), HasSubstr("--model"));
}

TEST(Mlperf, ErrorsNameTheLine) {
  const std::string text = golden_import("mlperf/0.7-resnet-blocks.log");
  EXPECT_EQ(
      error_of_text(""),
      "run.log: there is no run_start; give the log of an MLPerf training run, from run_start "
      "to run_stop");
  EXPECT_EQ(error_of_text(text.substr(0, text.rfind('\n', text.find("run_stop")))),
            "run.log: there is no run_stop; give the log of a run that has ended");
  EXPECT_THAT(error_of_text("\n:::MLLOG {\"key\": \"run_start\"\n"), HasSubstr("run.log:2: "));
  EXPECT_THAT(error_of_text(with(text, "\"time_ms\": 15", "\"time_ms\": -15")),
              HasSubstr("run.log:1: "));
  EXPECT_THAT(error_of_text(with(text, "\"value\": 1281167", "\"value\": \"many\"")),
              HasSubstr("run.log:6: train_samples is no number"));
  EXPECT_THAT(error_of_text(text + text), HasSubstr("run_start stands twice"));
  std::string silent = with(text, "train_samples", "train_sample");
  EXPECT_EQ(error_of_text(silent),
            "run.log: the log does not say how many samples the run took; it has train_samples and "
            "epochs, or samples_count");
}

RC_GTEST_PROP(MlperfProperty, SurvivesDamage, ()) {
  const std::string file = *rc::gen::element<std::string>(
      "0.7-resnet-blocks.log", "3.1-bert-samples-in-epoch-num.log", "5.0-llm-samples-count.log");
  std::string text = golden_import("mlperf/" + file);
  const auto at = *rc::gen::inRange<std::size_t>(0, text.size());
  const auto length = *rc::gen::inRange<std::size_t>(0, 200);
  const std::string put = *rc::gen::element<std::string>("", "{", "}", "\"", "1e999", "-1", "0");
  text.replace(at, length, put);
  const std::string error = error_of_text(text);
  RC_ASSERT(error.find('\n') == std::string::npos);
}

}  // namespace
}  // namespace paceline::calibration
