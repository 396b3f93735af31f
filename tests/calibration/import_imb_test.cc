// Benchmarks of all-reduces that are neither nccl-tests nor OSU: IMB-MPI1 and all_reduce_bench.py.
#include "calibration/import/imb.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/import/torch_bench.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string imb_text() {
  return golden_import("imb/2021.7-several.txt");
}

std::string bench_text() {
  return golden_import("torch_bench/h200-32-ranks.txt");
}

std::string imb_error(const std::string& text) {
  return test::error_of([&] { return parse_imb(text, "run.txt"); });
}

std::string bench_error(const std::string& text) {
  return test::error_of([&] { return parse_torch_bench(text, "run.txt"); });
}

TEST(Imb, EachNumberOfProcessesIsACurve) {
  const Imported imported = parse_imb(imb_text(), "run.txt");
  EXPECT_EQ(imported.tool, "Intel MPI Benchmarks");
  EXPECT_EQ(imported.version, "2021.7");
  ASSERT_EQ(imported.curves.size(), 4u);
  const ImportedCurve& messages = imported.curves[0];
  EXPECT_EQ(messages.kind, models::CurveKind::point_to_point);
  EXPECT_EQ(messages.ranks, Count::of(2));
  EXPECT_EQ(messages.samples.size(), 24u);
  EXPECT_NEAR(messages.samples.back().time.value(), 1.5e-6 + 4194304 * 1e-10, 1e-8);
  for (const auto& [index, ranks, fixed, per_byte] :
       {std::tuple(1u, 4, 12e-6, 0.5e-9), {2u, 8, 20e-6, 0.9e-9}}) {
    const ImportedCurve& curve = imported.curves[index];
    EXPECT_EQ(curve.kind, models::CurveKind::all_reduce);
    EXPECT_EQ(curve.what, "IMB-MPI1 Allreduce");
    EXPECT_EQ(curve.library, "mpi");
    EXPECT_EQ(curve.wire, models::WireType::fp32);
    EXPECT_EQ(curve.ranks, Count::of(ranks));
    EXPECT_FALSE(curve.nodes.is_known());
    ASSERT_EQ(curve.samples.size(), 21u);  // without that of 0 bytes
    EXPECT_EQ(curve.samples.front().bytes, Bytes{4});
    EXPECT_NEAR(curve.samples.back().time.value(), fixed + 4194304 * per_byte, 1e-8);
  }
  EXPECT_EQ(imported.curves[3].kind, models::CurveKind::broadcast);
  EXPECT_TRUE(imported.remarks.empty());
}

TEST(Imb, WhatAnAllReduceAddsIsAskedForWhereItIsNoFloat) {
  const Imported imported = parse_imb(with(imb_text(), "MPI_FLOAT", "MPI_DOUBLE"), "run.txt");
  EXPECT_EQ(imported.curves[2].wire, std::nullopt);
}

// A size of an all-gather is a process's part, and of an all-to-all the message to one process.
TEST(Imb, SizesOfPartsBecomeThoseOfTheBucket) {
  for (const auto& [benchmark, kind, factor] :
       {std::tuple("Allgather", models::CurveKind::all_gather, 8),
        {"Alltoall", models::CurveKind::all_to_all, 8},
        {"Sendrecv", models::CurveKind::neighbour_exchange, 8},
        {"Reduce_scatter", models::CurveKind::reduce_scatter, 1}}) {
    const Imported imported =
        parse_imb(std::string("# Benchmarking ") + benchmark +
                      "\n# #processes = 8\n#bytes #repetitions t_avg[usec]\n0 1 0.1\n64 1 2.5\n",
                  "run.txt");
    ASSERT_EQ(imported.curves.size(), 1u);
    EXPECT_EQ(imported.curves[0].kind, kind);
    const std::vector<Sample> samples = imported.curves[0].samples_of_buckets(8);
    ASSERT_EQ(samples.size(), 1u);
    EXPECT_EQ(samples[0].bytes, Bytes{64.0 * factor});
  }
}

TEST(Imb, ErrorsNameTheLine) {
  EXPECT_EQ(
      imb_error("nothing\n"),
      "run.txt: there is no table of a collective or of PingPong with rows; give the output of a "
      "finished run of IMB-MPI1 Allreduce");
  EXPECT_EQ(imb_error("# Benchmarking Exchange\n#bytes #repetitions t_avg[usec]\n4 1 1.0\n"),
            "run.txt: this is the output of 'Exchange'; give that of a collective or of PingPong");
  const std::string head = "# Benchmarking Allreduce\n# #processes = 8\n";
  EXPECT_EQ(imb_error(head + "#bytes #repetitions t_avg[usec]\n4 1\n"),
            "run.txt:4: 2 columns, where the header has 3; give the output as it is");
  EXPECT_EQ(imb_error("# Benchmarking Allreduce\n# #processes = many\n"),
            "run.txt:2: 'many' is no number of processes; give the output as it is");
  EXPECT_THAT(imb_error(head + "#bytes #repetitions t_avg[usec]\n4 1 nan\n"),
              HasSubstr("run.txt:4: 'nan' is no time"));
}

TEST(TorchBench, PayloadsAreOf1024AndBandwidthsOf1000) {
  const Imported imported = parse_torch_bench(bench_text(), "run.txt");
  EXPECT_EQ(imported.tool, "all_reduce_bench.py");
  ASSERT_EQ(imported.curves.size(), 1u);
  const ImportedCurve& curve = imported.curves[0];
  EXPECT_EQ(curve.ranks, Count::of(32));
  EXPECT_FALSE(curve.nodes.is_known());
  EXPECT_EQ(curve.wire, models::WireType::fp32);
  EXPECT_EQ(curve.library, "nccl");
  ASSERT_EQ(curve.samples.size(), 20u);
  EXPECT_EQ(curve.samples.back().bytes, Bytes{17179869184.0});
  // 80 us + 16 GiB at 190 GB/s, by two decimals of GB/s.
  EXPECT_NEAR(curve.samples.back().time.value(), 80e-6 + 17179869184.0 / 190e9, 5e-6);
}

TEST(TorchBench, ErrorsNameTheLine) {
  const std::string text = bench_text();
  EXPECT_THAT(bench_error(with(text, "over 32 ranks", "over 16 ranks")),
              HasSubstr("busbw is 1.938 algbw, and 1.875 in an all-reduce over 16 ranks"));
  EXPECT_EQ(bench_error(with(text, "of all_reduce over", "of all_gather over")),
            "run.txt:5: this is the bandwidth of 'all_gather'; give that of all_reduce");
  EXPECT_THAT(bench_error(with(text, "|   32KB|", "|   32Kb|")),
              HasSubstr("run.txt:9: '32Kb' is no payload"));
  EXPECT_THAT(bench_error(with(text, "GBps|\n", "|\n")), HasSubstr("is no algbw"));
  EXPECT_THAT(bench_error("|payload|busbw|algbw|\n"), HasSubstr("a table without rows"));
}

}  // namespace
}  // namespace paceline::calibration
