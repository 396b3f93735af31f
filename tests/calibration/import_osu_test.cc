// Tables in the shape of OSU micro-benchmarks 5 and 7, and what is wrong with them.
#include "calibration/import/osu.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::HasSubstr;

Imported parsed(const std::string& file) {
  return parse_osu(golden_import("osu/" + file), "osu.txt");
}

std::string error_of_text(const std::string& text) {
  return test::error_of([&] { return parse_osu(text, "osu.txt"); });
}

TEST(Osu, AllReduceOfVersion5) {
  const Imported imported = parsed("5.6.2-allreduce.txt");
  EXPECT_EQ(imported.version, "5.6.2");
  ASSERT_EQ(imported.curves.size(), 1u);
  const ImportedCurve& curve = imported.curves[0];
  EXPECT_EQ(curve.kind, models::CurveKind::all_reduce);
  EXPECT_EQ(curve.what, "OSU MPI Allreduce Latency");
  EXPECT_EQ(curve.wire, models::WireType::fp32);
  EXPECT_EQ(curve.ranks, Count{});
  EXPECT_EQ(curve.nodes, Count{});
  ASSERT_EQ(curve.samples.size(), 19u);
  EXPECT_EQ(curve.samples.front().bytes, Bytes{4});
}

TEST(Osu, OtherBenchmarksAreLeftOut) {
  const Imported imported = parsed("5.6.2-several-benchmarks.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].kind, models::CurveKind::all_reduce);
  EXPECT_EQ(imported.curves[0].samples.size(), 19u);
  EXPECT_THAT(imported.remarks,
              ::testing::ElementsAre("a table is left out: OSU MPI Init",
                                     "a table is left out: OSU MPI Bi-Directional Bandwidth"));
}

TEST(Osu, OtherCollectivesHaveTheirKind) {
  const std::string text = golden_import("osu/5.6.2-allreduce.txt");
  for (const auto& [title, kind, factor] :
       {std::tuple("Allgather", models::CurveKind::all_gather, 4),
        {"All-to-All Personalized Exchange", models::CurveKind::all_to_all, 4},
        {"Broadcast", models::CurveKind::broadcast, 1}}) {
    const Imported imported = parse_osu(with(text, "Allreduce", title), "osu.txt");
    ASSERT_EQ(imported.curves.size(), 1u);
    EXPECT_EQ(imported.curves[0].kind, kind);
    EXPECT_EQ(imported.curves[0].wire, std::nullopt);
    EXPECT_EQ(imported.curves[0].samples_of_buckets(4).front().bytes, Bytes{4.0 * factor});
  }
}

TEST(Osu, AllReduceOfNcclUnderSrun) {
  const Imported imported = parsed("7.5-nccl-allreduce.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].library, "nccl");
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp32);
  EXPECT_EQ(imported.curves[0].samples.size(), 19u);
}

TEST(Osu, VersionsBefore7AddFloats) {
  const std::string text = golden_import("osu/5.6.2-allreduce.txt");
  EXPECT_EQ(parse_osu(with(text, "v5.6.2", "v3.8"), "osu.txt").curves[0].wire,
            models::WireType::fp32);
  EXPECT_EQ(parse_osu(with(text, "v5.6.2", "v7.0"), "osu.txt").curves[0].wire, std::nullopt);
}

TEST(Osu, AllReduceOfVersion7WithAllColumns) {
  const Imported imported = parsed("7.3-allreduce-full.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp32);
  ASSERT_EQ(imported.curves[0].samples.size(), 19u);
  // The average, 28 us with 1 % noise, and not the least or the most.
  EXPECT_NEAR(imported.curves[0].samples[0].time.value(), 28e-6, 1.2e-6);
  const Imported bytes = parse_osu(
      with(golden_import("osu/7.3-allreduce-full.txt"), "MPI_FLOAT", "MPI_CHAR"), "osu.txt");
  EXPECT_EQ(bytes.curves[0].wire, std::nullopt);
  EXPECT_THAT(bytes.remarks, ::testing::ElementsAre(HasSubstr("adds MPI_CHAR.")));
}

TEST(Osu, LatencyIsPointToPoint) {
  const Imported old = parsed("5.6.2-latency.txt");
  ASSERT_EQ(old.curves.size(), 1u);
  EXPECT_EQ(old.curves[0].kind, models::CurveKind::point_to_point);
  EXPECT_EQ(old.curves[0].use, CurveUse::time);
  EXPECT_EQ(old.curves[0].ranks, Count::of(2));
  ASSERT_EQ(old.curves[0].samples.size(), 24u);
  EXPECT_EQ(old.curves[0].samples[0].bytes, Bytes{0});
  const Imported recent = parsed("7.4-latency-tail-validation.txt");
  ASSERT_EQ(recent.curves.size(), 1u);
  EXPECT_EQ(recent.version, "7.4");
  EXPECT_EQ(recent.curves[0].samples.size(), 21u);
  EXPECT_NEAR(recent.curves[0].samples[0].time.value(), 1.82e-6, 1e-9);
}

TEST(Osu, BandwidthIsAStream) {
  for (const char* file : {"5.6.2-bw.txt", "7.2-cuda-bw.txt"}) {
    const Imported imported = parsed(file);
    ASSERT_EQ(imported.curves.size(), 1u) << file;
    EXPECT_EQ(imported.curves[0].use, CurveUse::stream);
    EXPECT_EQ(imported.curves[0].samples.size(), 23u);
  }
  // 4 MiB at 0.012 ns a byte and 0.9 us.
  EXPECT_NEAR(parsed("7.2-cuda-bw.txt").curves[0].samples.back().time.value(), 51.2e-6, 2e-6);
}

TEST(Osu, SeveralTablesInOneFile) {
  const Imported imported = parse_osu(
      golden_import("osu/5.6.2-latency.txt") + golden_import("osu/5.6.2-bw.txt"), "osu.txt");
  ASSERT_EQ(imported.curves.size(), 2u);
  EXPECT_EQ(imported.curves[1].use, CurveUse::stream);
}

TEST(Osu, ErrorsNameTheLine) {
  const std::string text = golden_import("osu/7.3-allreduce-full.txt");
  EXPECT_EQ(
      error_of_text("hello\n"),
      "osu.txt: there is no table of OSU micro-benchmarks; a title \"# OSU MPI Allreduce Latency "
      "Test v7.3\" comes before the rows");
  EXPECT_EQ(
      error_of_text("# OSU MPI Ialltoall Latency Test v7.3\n"),
      "osu.txt:1: this is the output of 'OSU MPI Ialltoall Latency'; give that of a collective, "
      "osu_latency or osu_bw");
  EXPECT_EQ(error_of_text(text.substr(0, text.find("\n4 "))),
            "osu.txt: a table without rows; give the output of a finished run");
  EXPECT_EQ(error_of_text(text.substr(0, text.find("\n16 ") + 32)),
            "osu.txt:7: 2 columns, where a row has 5; give the output as it is");
  EXPECT_THAT(error_of_text(with(text, "Avg Latency(us)", "Bandwidth (MB/s)")),
              HasSubstr("osu.txt:4: a header that is not of 'OSU MPI Allreduce Latency'"));
  EXPECT_THAT(error_of_text("# OSU MPI Latency Test v5\n# Size Latency (us)\n1 -2.0\n"),
              HasSubstr("osu.txt:3: '-2.0' is no time"));
  EXPECT_THAT(error_of_text("# OSU MPI Bandwidth Test v5\n# Size Bandwidth (MB/s)\n1 inf\n"),
              HasSubstr("osu.txt:3: 'inf' is no bandwidth"));
  EXPECT_THAT(
      error_of_text("# OSU MPI Bandwidth Test v5\n# Size Bandwidth (MB/s)\n1000000000 1e-9\n"),
      HasSubstr("osu.txt:3: '1e-9' MB/s is too little"));
}

}  // namespace
}  // namespace paceline::calibration
