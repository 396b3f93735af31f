// DeepSpeed's communication logger: tables, tables with stragglers, lines.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <string>

#include "calibration/import/deepspeed.h"
#include "calibration/import/import_file.h"
#include "models/base/error.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

const std::string header =
    "Comm. Op            Message Size        Count               Total Latency(ms)   Avg "
    "Latency(ms)     tput_avg (Gbps)     busbw_avg (Gbps)    \n";

// A row of 16 ranks as the newest version has it: an all-gather's size is a rank's part.
std::string row(double mebibytes, double ms, double buckets, int count = 40) {
  const double tput = buckets * mebibytes * 1048576 * 8 / (ms * 1e-3) / 1e9;
  return fmt::format("{:<20}{:<20}{:<20}{:<20.2f}{:<20.2f}{:<20.2f}{:<20.2f}\n", "",
                     fmt::format("{} MB", mebibytes), count, count * ms, ms, tput, tput * 15 / 16);
}

std::string error_of_text(const std::string& text) {
  return test::error_of([&] { return parse_deepspeed(text, "job.log").curves.size(); });
}

TEST(DeepSpeed, EachCollectiveOfATableIsACurve) {
  const std::string text = "step 10\n" + header + "broadcast\n" +
                           "                    0B                  3                   0.10  "
                           "0.03  0.00  0.00\n" +
                           row(2, 0.08, 1) + "all_reduce\n" + row(1, 0.25, 2) + row(64, 4.5, 2) +
                           "reduce_scatter_tensor | [Caller Func: reduce_scatter_fn]\n" +
                           row(678.86, 9.69, 1) + "all_gather_into_tensor\n" + row(6, 1.1, 16) +
                           "barrier\n" + row(1, 5, 1) + "step 11\n1 2 3\n";
  EXPECT_EQ(guessed_format(text, "job.log"), ImportFormat::deepspeed);
  const Imported imported = parse_deepspeed(text, "job.log");
  EXPECT_EQ(imported.tool, "DeepSpeed");
  ASSERT_EQ(imported.curves.size(), 4U);
  const ImportedCurve& sums = imported.curves[0];
  EXPECT_EQ(sums.kind, models::CurveKind::all_reduce);
  EXPECT_EQ(sums.what, "DeepSpeed's all-reduce");
  EXPECT_EQ(sums.library, "nccl");
  EXPECT_EQ(sums.wire, std::nullopt);
  EXPECT_EQ(sums.ranks, (Count{.least = 2, .most = 16}));
  ASSERT_EQ(sums.samples.size(), 2U);
  EXPECT_EQ(sums.samples[1].bytes, Bytes{64.0 * 1048576});
  EXPECT_DOUBLE_EQ(sums.samples[1].time.value(), 4.5e-3);
  EXPECT_EQ(imported.curves[1].kind, models::CurveKind::reduce_scatter);
  const ImportedCurve& gathers = imported.curves[2];
  EXPECT_EQ(gathers.kind, models::CurveKind::all_gather);
  EXPECT_EQ(gathers.samples_of_buckets(16)[0].bytes, Bytes{16 * 6.0 * 1048576});
  EXPECT_EQ(imported.curves[3].kind, models::CurveKind::broadcast);
  EXPECT_THAT(imported.remarks,
              testing::ElementsAre("calls that are no collective of ours are left out: barrier"));
}

// The numbers are cumulative: the last table has them all.
TEST(DeepSpeed, TheLastTableIsReadAndTheOneOfStragglersBeforeThat) {
  const std::string first = header + "all_reduce\n" + row(1, 3, 2) + row(2, 4, 2);
  const std::string last = header + "all_reduce\n" + row(1, 2, 2) + row(2, 3, 2);
  const Imported plain = parse_deepspeed(first + "\n" + last, "job.log");
  ASSERT_EQ(plain.curves.size(), 1U);
  ASSERT_EQ(plain.curves[0].samples.size(), 2U);
  EXPECT_DOUBLE_EQ(plain.curves[0].samples[0].time.value(), 2e-3);
  const std::string stragglers =
      "_______________________________\nBreakdown with straggler effect\n"
      "-------------------------------\n"
      "Comm. Op            Message Size        Count               Total comm lat(ms)  Total "
      "straggler(ms) Avg comm lat(ms)    Avg straggler(ms)   \n"
      "all_reduce\n"
      "                    1.0 MB              40                  60.00               20.00  "
      "1.50  0.50\n"
      "                    2.0 MB              40                  80.00               20.00  "
      "2.00  0.50\n";
  const Imported least = parse_deepspeed(last + stragglers, "job.log");
  ASSERT_EQ(least.curves.size(), 1U);
  EXPECT_EQ(least.curves[0].ranks, (Count{.least = 2, .most = 16}));
  ASSERT_EQ(least.curves[0].samples.size(), 2U);
  EXPECT_DOUBLE_EQ(least.curves[0].samples[1].time.value(), 2e-3);
}

TEST(DeepSpeed, OfLinesTheMedianOfEachSizeIsTaken) {
  std::string text;
  for (const double ms : {9.46, 1.0, 1.2, 1.1, 0.9}) {
    const double tput = 6 * 1048576 * 8 / (ms * 1e-3) / 1e9;
    text += fmt::format(
        "[2025-06-26 01:39:56,470] [INFO] [logging.py:69:log_dist] [Rank 0] rank=0 | comm op: "
        "broadcast | time (ms): {:.2f} | msg size: 6.0 MB | algbw (Gbps): {:.2f}  | busbw (Gbps): "
        "{:.2f}\n",
        ms, tput, tput);
  }
  EXPECT_EQ(guessed_format(text, "job.log"), ImportFormat::deepspeed);
  const Imported imported = parse_deepspeed(text, "job.log");
  ASSERT_EQ(imported.curves.size(), 1U);
  ASSERT_EQ(imported.curves[0].samples.size(), 1U);
  EXPECT_DOUBLE_EQ(imported.curves[0].samples[0].time.value(), 1.1e-3);
  EXPECT_EQ(imported.curves[0].ranks, Count{.least = 2});
  EXPECT_THAT(imported.remarks, IsEmpty());
}

// Before 2023 the throughput was twice that of the size, whatever the ranks.
TEST(DeepSpeed, AllGathersBySizesOfResultsAreLeftOut) {
  const std::string table =
      header + "broadcast\n" + row(8, 1, 1) + "all_gather_into_tensor\n" + row(6, 0.11, 2);
  const Imported imported = parse_deepspeed(table, "job.log");
  ASSERT_EQ(imported.curves.size(), 1U);
  EXPECT_EQ(imported.curves[0].kind, models::CurveKind::broadcast);
  EXPECT_THAT(imported.remarks,
              testing::ElementsAre("all-gathers are left out, because this version of DeepSpeed "
                                   "logs the sizes of their results: 1"));
}

TEST(DeepSpeed, ErrorsNameTheLine) {
  EXPECT_EQ(error_of_text(header + "barrier\n" + row(1, 1, 1)),
            "job.log: no call of a collective was logged that takes 0.01 ms or more; give the "
            "output of deepspeed.comm.log_summary()");
  EXPECT_EQ(error_of_text(header + "all_reduce\n 1.0 MB 40 1 1\n"),
            "job.log:3: 5 columns, where the header has 7; give the output as it is");
  EXPECT_EQ(error_of_text(header + "all_reduce\n 1.0 XB 40 1 1 1 1\n"),
            "job.log:3: '1.0 XB' is no size; sizes are as in 98.25 MB");
  EXPECT_EQ(error_of_text(header + "all_reduce\n 1.0 MB 40 1 nan 1 1\n"),
            "job.log:3: 'nan' is no time in milliseconds; give the output as it is");
  EXPECT_EQ(error_of_text("rank=0 | comm op: all_reduce | time (ms): 1 | msg size: 1 KB\n"),
            "job.log:1: a call without 'algbw (Gbps): '; give the output as it is");
}

}  // namespace
}  // namespace paceline::calibration
