// Logs of trainers: what each prints of an iteration, and loss logs with dates.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <fmt/core.h>

#include <string>
#include <vector>

#include "calibration/fit/statistics.h"
#include "calibration/import/import_file.h"
#include "calibration/import/training_log.h"
#include "models/base/error.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::HasSubstr;

constexpr int lines = 20;

// A line of a trainer, and what it says.
struct Line {
  const char* text;
  LogQuantity quantity;
  double value;
  double global_batch = 0;
};

const std::vector<Line>& trainers() {
  static const std::vector<Line> all = {
      {" [2026-11-01 10:00:12] iteration       10/     500 | consumed samples:          640 | "
       "elapsed time per iteration (ms): 2514.5 | throughput per GPU (TFLOP/s/GPU): 190.1 | global "
       "batch size:    64 | lm loss: 1.0E+01 |",
       LogQuantity::seconds, 2.5145, 64},
      {"Step Time : 12.25s GPU utilization: 650.1MODEL_TFLOP/s/GPU", LogQuantity::seconds, 12.25},
      {"Training epoch 0, iteration 10/99 | lr: 1e-05 | global_batch_size: 512 | global_step: 10 | "
       "reduced_train_loss: 10.1 | train_step_timing in s: 3.42 | consumed_samples: 5632",
       LogQuantity::seconds, 3.42, 512},
      {"[titan] 2026-11-01 10:00:01,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  7.9000  "
       "\x1b[33mmemory: 47.00GiB(59.5%)  \x1b[34mtps: 7,520  \x1b[36mtflops: 435.5  \x1b[35mmfu: "
       "44.03%\x1b[39m",
       LogQuantity::tokens_per_second_of_a_rank, 7520},
      {"iteration: 10 / 100 | consumed_tokens: 1.31M | elapsed_time_per_iteration_ms: 1.2K | "
       "tokens_per_sec: 100K | tokens_per_sec_per_gpu: 12.5K | global_batch_size: 1.02K | lm_loss: "
       "9.1",
       LogQuantity::seconds, 1.2, 1020},
      {"\t Train throughput/device/tokens_per_sec: 9876.5",
       LogQuantity::tokens_per_second_of_a_rank, 9876.5},
      {"\t Train throughput/tokens_per_sec: 1.5e+06", LogQuantity::tokens_per_second, 1.5e6},
      {"current token per gpu per sec: 1000", LogQuantity::tokens_per_second_of_a_rank, 1000},
      {"completed step: 10, seconds: 12.345, TFLOP/s/device: 234.5, Tokens/s/device: 1234.5, "
       "total_weights: 65536, loss: 10.1",
       LogQuantity::seconds, 12.345},
      {"    throughput/device/tokens_per_second=7,520", LogQuantity::tokens_per_second_of_a_rank,
       7520},
      {"[2026-11-01 10:00:01,000] [INFO] [timer.py:199:stop] epoch=0/micro_step=10/global_step=10, "
       "RunningAvgSamplesPerSec=100.5, CurrSamplesPerSec=98.25, MemAllocated=10.1GB",
       LogQuantity::samples_per_second, 98.25},
      {" 12%|#2        | 12/100 [00:30<03:20,  2.53s/it]", LogQuantity::seconds, 2.53},
      {" 12%|#2        | 12/100 [00:30<03:20,  1.25it/s, loss=2.1]",
       LogQuantity::iterations_per_second, 1.25},
      {R"({"step": 10, "loss": 2.5, "train/step_time": 1, "tokens_per_sec_per_gpu": 7520.25})",
       LogQuantity::tokens_per_second_of_a_rank, 7520.25}};
  return all;
}

std::string repeated(const std::string& line, int times = lines) {
  std::string text;
  for (int i = 0; i < times; ++i) text += line + "\n";
  return text;
}

TEST(TrainingLog, EachTrainerIsUnderstood) {
  for (const Line& line : trainers()) {
    SCOPED_TRACE(line.text);
    const std::string text = "Loading data\n" + repeated(line.text) + "done\n";
    EXPECT_EQ(guessed_format(text, "run.log"), ImportFormat::training_log);
    const Imported imported = parse_training_log(text, "run.log");
    ASSERT_TRUE(imported.training);
    EXPECT_EQ(imported.training->quantity, line.quantity);
    EXPECT_EQ(imported.training->values.size(), lines - lines / 10U);
    EXPECT_DOUBLE_EQ(imported.training->values.back(), line.value);
    EXPECT_DOUBLE_EQ(imported.training->global_batch, line.global_batch);
  }
}

TEST(TrainingLog, AProgressBarOverwritesItsLine) {
  std::string text;
  for (int i = 0; i < lines; ++i)
    text += fmt::format("\r {}/100 [00:30<03:20,  2.{:02}s/it]", i, i);
  const Imported imported = parse_training_log(text, "run.log");
  EXPECT_DOUBLE_EQ(imported.training->values.back(), 2.19);
}

TEST(TrainingLog, ALossLogWithDatesTellsItsIterations) {
  std::string text;
  for (int i = 0; i <= lines; ++i)
    text += fmt::format("2026-11-30T23:59:{:02}.500 INFO step={} loss=2.5\n", 10 + 2 * i, 10 * i);
  const Imported imported = parse_training_log(text, "loss.log");
  EXPECT_EQ(imported.training->quantity, LogQuantity::seconds);
  EXPECT_DOUBLE_EQ(median(imported.training->values), 0.2);
}

TEST(TrainingLog, TooFewIterationsAreRefused) {
  EXPECT_EQ(test::error_of([] { return parse_training_log("step_time: 1\nstep_time: 2\n", "a"); }),
            "a: it has 2 iterations, of which the first 1 warm up; give a log of more iterations");
  EXPECT_THAT(test::error_of([] { return guessed_format("loss: 2.5\nloss: 2.4\n", "a"); }),
              HasSubstr("no tool that is known"));
}

TEST(TrainingLog, ANameInsideAnotherIsNoValue) {
  const std::string text = repeated("steps_time: 3 https: 4 max_tps: 5 my_step_time_left: 6") +
                           repeated("step_time: 0.5");
  EXPECT_DOUBLE_EQ(parse_training_log(text, "a").training->values.front(), 0.5);
}

RC_GTEST_PROP(TrainingLog, AnyTextIsReadOrRefused, (const std::string& noise)) {
  const std::string text = repeated("step_time: 0.5 " + noise) + noise;
  try {
    (void)parse_training_log(text, "a");
  } catch (const InputError&) {
  }
  (void)looks_like_training_log(noise);
}

}  // namespace
}  // namespace paceline::calibration
