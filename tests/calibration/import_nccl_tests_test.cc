// Tables in the shape of four versions of nccl-tests, and what is wrong with them.
#include "calibration/import/nccl_tests.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

Imported parsed(const std::string& file) {
  return parse_nccl_tests(golden_import("nccl_tests/" + file), "run.txt");
}

std::string error_of_text(const std::string& text) {
  return test::error_of([&] { return parse_nccl_tests(text, "run.txt"); });
}

TEST(NcclTests, OfOneNodeWithErrorColumns) {
  const Imported imported = parsed("2.0-float-one-node.txt");
  EXPECT_EQ(imported.tool, "nccl-tests");
  EXPECT_EQ(imported.version, "");
  ASSERT_EQ(imported.curves.size(), 1u);
  const ImportedCurve& curve = imported.curves[0];
  EXPECT_EQ(curve.kind, models::CurveKind::all_reduce);
  EXPECT_EQ(curve.what, "all_reduce_perf, in place, float sum");
  EXPECT_EQ(curve.library, "nccl");
  EXPECT_EQ(curve.wire, models::WireType::fp32);
  EXPECT_EQ(curve.ranks, Count::of(8));
  EXPECT_EQ(curve.nodes, Count::of(1));
  ASSERT_EQ(curve.samples.size(), 25u);
  EXPECT_EQ(curve.samples.front().bytes, Bytes{8});
  EXPECT_EQ(curve.samples.back().bytes, Bytes{134217728});
  EXPECT_THAT(imported.remarks, IsEmpty());
}

TEST(NcclTests, TakesTheTimeInPlace) {
  std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  const std::size_t row = text.find("           8             2     float");
  ASSERT_NE(row, std::string::npos);
  text.replace(
      row, text.find('\n', row) - row,
      "           8             2     float     sum    99.00    0.00    0.00  5e-07    17.25    "
      "0.00    0.00  5e-07");
  const Imported imported = parse_nccl_tests(text, "run.txt");
  EXPECT_NEAR(imported.curves[0].samples[0].time.value(), 17.25e-6, 1e-12);
}

TEST(NcclTests, OfTwoNodesWithRootAndWrong) {
  const Imported imported = parsed("2.13-half-two-nodes.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp16);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(16));
  EXPECT_EQ(imported.curves[0].nodes, Count::of(2));
  EXPECT_EQ(imported.curves[0].samples.size(), 25u);
  EXPECT_THAT(imported.remarks, ::testing::ElementsAre("rows of 0 bytes are left out: 1"));
}

TEST(NcclTests, OfTaggedOutputWithLogLinesBetween) {
  const Imported imported = parsed("2.17-bfloat16-tagged.txt");
  EXPECT_EQ(imported.version, "2.17.6");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].wire, models::WireType::bf16);
  EXPECT_EQ(imported.curves[0].samples.size(), 18u);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(8));
}

TEST(NcclTests, OfPercentilesAndTimestamps) {
  const Imported imported = parsed("2.19-float-percentiles.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(4));
  ASSERT_EQ(imported.curves[0].samples.size(), 16u);
  // 14 us + 1 KiB at 0.05 ns, with 1 % noise.
  EXPECT_NEAR(imported.curves[0].samples[0].time.value(), 14.05e-6, 0.5e-6);
}

// Up to 2018 times were in milliseconds: 40 us + 0.2 ns a byte, printed with three decimals of one.
TEST(NcclTests, Of2018InMilliseconds) {
  const Imported imported = parsed("2018-milliseconds.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  const ImportedCurve& curve = imported.curves[0];
  EXPECT_EQ(curve.ranks, Count::of(8));
  EXPECT_EQ(curve.nodes, Count::of(2));
  ASSERT_EQ(curve.samples.size(), 17u);
  EXPECT_NEAR(curve.samples[0].time.value(), 40.2e-6, 1e-6);
  EXPECT_NEAR(curve.samples[16].time.value(), 13.46e-3, 0.15e-3);
}

// The prefixes of SkyPilot and mpirun, and two decimals of a microsecond.
TEST(NcclTests, OfRcclBehindPrefixes) {
  const Imported imported = parsed("rccl-2.17-prefixed.txt");
  EXPECT_EQ(imported.tool, "rccl-tests");
  EXPECT_EQ(imported.version, "2.17.9-develop:4a65e8d");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(8));
  EXPECT_EQ(imported.curves[0].nodes, Count::of(1));
  EXPECT_EQ(imported.curves[0].samples.size(), 15u);
  EXPECT_THAT(imported.remarks, IsEmpty());
}

// A script ran all-reduces on 8 and on 16 ranks, and an all-gather between them.
TEST(NcclTests, RunsOfAScriptAreToldApart) {
  const Imported imported = parsed("2.17-several-runs-kubectl.txt");
  ASSERT_EQ(imported.curves.size(), 3u);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(8));
  EXPECT_EQ(imported.curves[0].nodes, Count::of(1));
  EXPECT_EQ(imported.curves[0].samples.size(), 7u);
  EXPECT_EQ(imported.curves[1].kind, models::CurveKind::all_gather);
  EXPECT_EQ(imported.curves[2].kind, models::CurveKind::all_reduce);
  EXPECT_EQ(imported.curves[2].ranks, Count::of(16));
  EXPECT_EQ(imported.curves[2].nodes, Count::of(2));
  // 90 us + 1 MiB at 0.02 ns, with 1 % noise.
  EXPECT_NEAR(imported.curves[2].samples[0].time.value(), 110.97e-6, 1.2e-6);
  EXPECT_THAT(imported.remarks, IsEmpty());
  // The same run twice is one curve of twice as many samples.
  const std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  const Imported twice = parse_nccl_tests(text + text, "run.txt");
  ASSERT_EQ(twice.curves.size(), 1u);
  EXPECT_EQ(twice.curves[0].samples.size(), 50u);
  EXPECT_EQ(twice.curves[0].ranks, Count::of(8));
}

// busbw is 1.5 algbw over 4 ranks, and over no other number.
TEST(NcclTests, BandwidthTellsTheRanksWhereNoDeviceIsListed) {
  const Imported imported = parsed("2.13-without-marks-and-devices.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp16);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(4));
  EXPECT_EQ(imported.curves[0].nodes, Count{});
  EXPECT_THAT(imported.remarks,
              ::testing::ElementsAre(HasSubstr("no device is listed; busbw is 1.5")));
}

// The list that stands before a table of 8 ranks on one node, as different people copy it.
TEST(NcclTests, AListOfDevicesThatWasCopiedInPartTellsNothing) {
  const std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  const auto without_ranks = [&](int first, int last) {
    std::string cut = text;
    for (int rank = first; rank <= last; ++rank) {
      const std::size_t at = cut.find("#  Rank  " + std::to_string(rank));
      cut.erase(at, cut.find('\n', at) + 1 - at);
    }
    return parse_nccl_tests(cut, "run.txt");
  };
  const Imported last = without_ranks(0, 6);
  EXPECT_EQ(last.curves.at(0).ranks, Count::of(8));  // by busbw over algbw
  EXPECT_FALSE(last.curves[0].nodes.is_known());
  EXPECT_THAT(last.remarks,
              ::testing::ElementsAre(
                  "the list of devices was copied in part: it has 1 rank, number 7, and so tells "
                  "neither ranks nor nodes",
                  "busbw is 1.750 algbw, as over 8 ranks"));
  const Imported gap = without_ranks(3, 4);
  EXPECT_EQ(gap.curves.at(0).ranks, Count::of(8));
  EXPECT_FALSE(gap.curves[0].nodes.is_known());
  EXPECT_THAT(gap.remarks.at(0), HasSubstr("it has 6 ranks, from 0 to 7"));
}

// NCCL refuses two ranks on one device, and so these are devices of two machines.
TEST(NcclTests, MachinesOfOneNameAreToldApart) {
  std::string text = golden_import("nccl_tests/2.13-half-two-nodes.txt");
  EXPECT_EQ(parse_nccl_tests(text, "run.txt").curves.at(0).nodes, Count::of(2));
  const std::string second = " on     node02";
  for (std::size_t at = text.find(second); at != std::string::npos; at = text.find(second))
    text.replace(at, second.size(), " on     node01");
  const Imported imported = parse_nccl_tests(text, "run.txt");
  EXPECT_EQ(imported.curves.at(0).nodes, Count::of(2));
  EXPECT_THAT(imported.remarks, ::testing::Contains(HasSubstr("2 machines are called 'node01'")));
}

// Three runs of a script: they are told from one, and so is how far apart they are.
TEST(NcclTests, RunsAreHeldAgainstEachOther) {
  const std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  const Imported imported = parse_nccl_tests(text + text, "run.txt");
  EXPECT_EQ(imported.curves.at(0).runs, 2);
  EXPECT_THAT(
      imported.remarks,
      ::testing::ElementsAre(HasSubstr(
          "2 runs of all_reduce_perf, in place, float sum, taken together by their medians")));
}

// A product is not what training computes.
TEST(NcclTests, OtherReductionsAreLeftOutWhereThereIsASum) {
  std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  const std::string rows = text.substr(text.find("           8 "));
  std::string products = rows.substr(0, rows.find("\n#") + 1);
  for (std::size_t at = products.find(" sum "); at != std::string::npos;
       at = products.find(" sum "))
    products.replace(at, 5, " prod ");
  text.insert(text.find(rows), products);
  const Imported imported = parse_nccl_tests(text, "run.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].what, "all_reduce_perf, in place, float sum");
  EXPECT_EQ(imported.curves[0].samples.size(), 25u);
  EXPECT_THAT(imported.remarks,
              ::testing::ElementsAre(
                  "rows of float prod are left out, because there are rows of float sum: 25"));
}

TEST(NcclTests, EveryLaunchersPrefixIsCutOff) {
  const std::string plain = golden_import("nccl_tests/2.13-half-two-nodes.txt");
  for (const std::string prefix :
       {"0: ", "[1,0]<stdout>:", "   [1,0]<stdout>:", "Sat Sep 16 10:19:44 2023[1,0]<stdout>:",
        "[prterun-host-3117@1,0]<stdout>: ", "[1,mpirank:0,algo-1]<stdout>:",
        "[pod/launcher-x7v/mpi] ", "2025-05-16T16:39:51.208Z ", "2025-05-16T16:39:51+02:00 ",
        "[2025-05-16 16:39:51] ", "2025-05-16 16:39:51,051 ", "ray-training  | [0] ", "[0] ",
        "  | 2025-05-16T16:39:51.208-07:00 | "}) {
    std::string text = prefix;
    for (const char c : plain.substr(0, plain.size() - 1)) {
      text += c;
      if (c == '\n') text += prefix;
    }
    const Imported imported = parse_nccl_tests(text, "run.txt");
    ASSERT_EQ(imported.curves.size(), 1u) << prefix;
    EXPECT_EQ(imported.curves[0].samples.size(), 25u) << prefix;
    EXPECT_EQ(imported.curves[0].ranks, Count::of(16)) << prefix;
  }
}

// A table says its collective by the root, the reduction and the bus bandwidth.
TEST(NcclTests, OtherCollectivesAreToldByTheirTables) {
  using enum models::CurveKind;
  for (const auto& [file, kind, ranks, what] :
       {std::tuple("2.17-all-gather-two-nodes.txt", all_gather, 16,
                   "all_gather_perf, in place, float"),
        {"2.13-reduce-scatter-one-node.txt", reduce_scatter, 8,
         "reduce_scatter_perf, in place, float sum"},
        {"2.13-alltoall-one-node.txt", all_to_all, 8, "alltoall_perf, out of place, float"},
        {"2.13-broadcast-four-gpus.txt", broadcast, 4, "broadcast_perf, in place, float"}}) {
    const Imported imported = parsed(file);
    ASSERT_EQ(imported.curves.size(), 1u) << file;
    EXPECT_EQ(imported.curves[0].kind, kind);
    EXPECT_EQ(imported.curves[0].ranks, Count::of(ranks));
    EXPECT_EQ(imported.curves[0].what, what);
    EXPECT_EQ(imported.curves[0].samples.size(), 21u);
    EXPECT_THAT(imported.remarks, IsEmpty());
    // Without its list of devices, its bandwidths say the ranks, but where both are the same.
    std::string text = golden_import(std::string("nccl_tests/") + file);
    for (std::size_t at = text.find("#  Rank"); at != std::string::npos; at = text.find("#  Rank"))
      text.erase(at, text.find('\n', at) + 1 - at);
    EXPECT_EQ(parse_nccl_tests(text, "run.txt").curves[0].ranks,
              kind == broadcast ? (Count{.least = 2}) : Count::of(ranks));
  }
}

// Its bus bandwidth equals its algorithm bandwidth. No other collective without sums and a root has that.
TEST(NcclTests, AnExchangeWithNeighboursIsToldByItsBandwidth) {
  const std::string text = golden_import("nccl_tests/2.13-alltoall-one-node.txt");
  const std::string head = text.substr(0, text.find("        1024  "));
  const auto rows = [](const char* in_place) {
    return fmt::format(
        "   536870912     134217728     float    none      -1   1503.2  357.15  357.15      0   "
        "1519.3  353.37  353.37    {}\n",
        in_place);
  };
  const Imported imported = parse_nccl_tests(head + rows("N/A"), "run.txt");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].kind, models::CurveKind::neighbour_exchange);
  EXPECT_EQ(imported.curves[0].what, "sendrecv_perf, out of place, float");
  EXPECT_EQ(imported.curves[0].ranks, Count::of(8));
  const std::string named = "# Collective test starting: sendrecv_perf\n" + head;
  EXPECT_EQ(parse_nccl_tests(named + rows("0"), "run.txt").curves[0].kind,
            models::CurveKind::neighbour_exchange);
  EXPECT_THAT(error_of_text("# Collective test starting: alltoall_perf\n" + head + rows("N/A")),
              HasSubstr("busbw is 1.000 algbw, and 0.875 in an all-to-all over 8 ranks"));
  std::string unlisted = head;
  for (std::size_t at = unlisted.find("#  Rank"); at != std::string::npos;
       at = unlisted.find("#  Rank"))
    unlisted.erase(at, unlisted.find('\n', at) + 1 - at);
  EXPECT_THAT(error_of_text(unlisted + rows("N/A")),
              HasSubstr("an all-to-all or an exchange with neighbours, and the table does not say "
                        "which; give --collective"));
}

TEST(NcclTests, WhatATableLeavesOpenIsAskedFor) {
  // Without checks, an all-to-all is an all-gather.
  std::string text = golden_import("nccl_tests/2.13-alltoall-one-node.txt");
  for (std::size_t at = text.find("      0 "); at != std::string::npos;
       at = text.find("      0 ", at))
    text.replace(at, 8, "    N/A ");
  EXPECT_THAT(
      error_of_text(text),
      HasSubstr(": an all-gather, an all-to-all or an exchange with neighbours, and the table "
                "does not say which; give --collective"));
  const Imported stated = parse_nccl_tests(text, "run.txt", models::Collective::all_to_all);
  EXPECT_EQ(stated.curves[0].kind, models::CurveKind::all_to_all);
}

TEST(NcclTests, RowsAreOfOneCollective) {
  const std::string text = golden_import("nccl_tests/2.13-half-two-nodes.txt");
  const std::string head = text.substr(text.find("#       size"));
  const auto row = [](const char* operation, const char* root, const char* busbw) {
    return fmt::format(
        "   536870912     268435456      half  {:>6}  {:>6}    10052   53.41   {}      "
        "0    10052   53.41   {}      0\n",
        operation, root, busbw, busbw);
  };
  const std::string header = head.substr(0, head.find("           0 "));
  EXPECT_EQ(error_of_text(header + row("sum", "-1", "100.14") + row("none", "-1", "50.07")),
            "run.txt:4: this row is of another collective than the rows before; give the output of "
            "one run after the other");
  EXPECT_EQ(parse_nccl_tests(header + row("sum", "0", "53.41"), "run.txt").curves[0].kind,
            models::CurveKind::reduce);
  EXPECT_EQ(
      error_of_text(header + row("none", "0", "50.07")),
      "run.txt:3: a gather or a scatter, and the table does not say which; give --collective");
  EXPECT_EQ(error_of_text("# Collective test starting: all_reduce_perf\n" + header +
                          row("sum", "-1", "50.07")),
            "run.txt:4: busbw is 0.937 algbw, and 1 or more in an all-reduce; give the output of "
            "one run as it is");
  EXPECT_EQ(error_of_text(with(header + row("sum", "-1", "80.12"), "10052   53.41   80.12      0\n",
                               "10.05   53.41   80.12      0\n")),
            "run.txt:3: the time is 0.001 times what the size takes at its algbw; give the output "
            "as it is");
}

TEST(NcclTests, WrongResultsAreSaid) {
  std::string text = golden_import("nccl_tests/2.13-half-two-nodes.txt");
  const std::size_t row = text.find("\n   134217728");
  ASSERT_NE(row, std::string::npos);
  const std::size_t end = text.find('\n', row + 1);
  text.replace(end - 1, 1, "7");
  const Imported imported = parse_nccl_tests(text, "run.txt");
  EXPECT_THAT(imported.remarks,
              ::testing::Contains("rows with wrong results, whose times are not to be trusted: 1"));
}

TEST(NcclTests, ErrorsNameTheLine) {
  const std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  EXPECT_EQ(
      error_of_text("nothing here\n"),
      "run.txt: there is no table of nccl-tests; a header \"# size count type redop ...\" comes "
      "before the rows");
  EXPECT_EQ(error_of_text(text.substr(0, text.find("           8 "))),
            "run.txt: a table without rows; give the output of a finished run");
  // The run was killed within a row.
  const std::string cut = text.substr(0, text.find("         128 ") + 30);
  EXPECT_EQ(error_of_text(cut),
            "run.txt:20: 2 columns, where the header has 12; give the output as it is");
  EXPECT_EQ(error_of_text(std::string(text).replace(text.find("5e-07    1") + 9, 5, "  nan")),
            "run.txt:16: 'nan' is no time; times are in microseconds, above 0 and up to 1e9");
  EXPECT_THAT(error_of_text(with(text, "   redop", "        ")),
              HasSubstr("run.txt:14: a header without redop"));
  EXPECT_THAT(
      error_of_text(with(text, "          64            16", "9999999999999999            16")),
      HasSubstr("run.txt:19: '9999999999999999' is no size"));
  EXPECT_THAT(error_of_text(with(text, "     float", std::string("  flo\0at ", 9) + " ")),
              HasSubstr("this is no text"));
}

TEST(NcclTestsJson, OfTwoNodes) {
  const Imported imported = parsed("2.17-json-float-two-nodes.json");
  EXPECT_EQ(imported.version, "JSON version 1");
  ASSERT_EQ(imported.curves.size(), 1u);
  const ImportedCurve& curve = imported.curves[0];
  EXPECT_EQ(curve.what, "all_reduce_perf, in place, float sum");
  EXPECT_EQ(curve.wire, models::WireType::fp32);
  EXPECT_EQ(curve.ranks, Count::of(16));
  EXPECT_EQ(curve.nodes, Count::of(2));
  ASSERT_EQ(curve.samples.size(), 19u);
  // 30 us + 0.04 ns a byte, with 1 % of noise.
  EXPECT_NEAR(curve.samples[0].time.value(), 30e-6, 0.4e-6);
  EXPECT_NEAR(curve.samples[18].time.value(), 30e-6 + 268435456 * 0.04e-9, 0.12e-3);
}

// A file without hosts has ranks, and says nothing of nodes.
TEST(NcclTestsJson, WithoutHostsNodesAreNotTold) {
  std::string text = golden_import("nccl_tests/2.17-json-float-two-nodes.json");
  for (std::size_t at = text.find("\"hostname\""); at != std::string::npos;
       at = text.find("\"hostname\""))
    text.replace(at, 10, "\"computer\"");
  const Imported imported = parse_nccl_tests(text, "run.json");
  EXPECT_EQ(imported.curves.at(0).ranks, Count::of(16));
  EXPECT_EQ(imported.curves[0].nodes, Count{});
}

// One process lists one device only, and has eight.
TEST(NcclTestsJson, OfOneProcessWithSeveralDevices) {
  const Imported imported = parsed("2.19-json-half-one-process.json");
  EXPECT_EQ(imported.version, "JSON version 2");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].wire, models::WireType::fp16);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(8));
  EXPECT_EQ(imported.curves[0].nodes, Count::of(1));
  EXPECT_EQ(imported.curves[0].samples.size(), 17u);
}

TEST(NcclTestsJson, WhatHasNoTimeIsSaid) {
  const std::string text = golden_import("nccl_tests/2.17-json-float-two-nodes.json");
  const std::size_t at =
      text.find("\"time\":", text.find("in_place\":{", text.find("in_place") + 9));
  const std::size_t comma = text.find(',', at);
  const Imported imported =
      parse_nccl_tests(std::string(text).replace(at, comma - at, "\"time\":\"nan\""), "run.json");
  EXPECT_THAT(imported.remarks, ::testing::Contains("rows without a time are left out: 1"));
}

TEST(NcclTestsJson, ErrorsNameTheValue) {
  const std::string text = golden_import("nccl_tests/2.17-json-float-two-nodes.json");
  EXPECT_THAT(error_of_text(text.substr(0, text.size() / 2)), HasSubstr("run.txt:1:"));
  EXPECT_THAT(error_of_text(with(text, "\"size\":1024", "\"size\":-1")),
              HasSubstr("run.txt: results[0].size: -1 is not a whole number"));
  EXPECT_THAT(error_of_text(with(text, "\"size\":1024", "\"sixe\":1024")),
              HasSubstr("run.txt: results[0]"));
  EXPECT_THAT(error_of_text(with(text, "all_reduce_perf", "all_gather_perf")),
              HasSubstr("busbw is 1.87"));
  EXPECT_EQ(error_of_text(with(text, "all_reduce_perf", "hypercube_perf")),
            "run.txt: this is the output of 'hypercube_perf'; give that of all_reduce_perf or of "
            "another collective");
  const std::string one = golden_import("nccl_tests/2.19-json-half-one-process.json");
  EXPECT_THAT(error_of_text(with(one, "\"ngpus\":8", "\"ngpus\":4")),
              HasSubstr("busbw is 1.750 algbw, and 1.500 in an all-reduce over 4 ranks"));
  EXPECT_THAT(error_of_text(with(text, "\"redop\":\"sum\"", "\"redop\":\"none\"")),
              HasSubstr("this row is of another collective than the rows before"));
}

TEST(RcclTestsJson, AnObjectALine) {
  const Imported imported = parsed("rccl-2024-json-lines.json");
  EXPECT_EQ(imported.tool, "rccl-tests");
  ASSERT_EQ(imported.curves.size(), 1u);
  const ImportedCurve& curve = imported.curves[0];
  EXPECT_EQ(curve.what, "all_reduce_perf, in place, float sum");
  EXPECT_EQ(curve.ranks, Count::of(4));
  EXPECT_EQ(curve.nodes, Count{});  // it has no "nodes"
  ASSERT_EQ(curve.samples.size(), 8u);
  // 25 us + 0.02 ns a byte.
  EXPECT_NEAR(curve.samples[7].time.value(), 25e-6 + (1 << 24) * 0.02e-9, 1e-7);
}

TEST(RcclTestsJson, AListOfTwoNodes) {
  const Imported imported = parsed("rccl-2025-json-two-nodes.json");
  ASSERT_EQ(imported.curves.size(), 1u);
  EXPECT_EQ(imported.curves[0].ranks, Count::of(16));
  EXPECT_EQ(imported.curves[0].nodes, Count::of(2));
  EXPECT_EQ(imported.curves[0].samples.size(), 8u);
}

TEST(RcclTestsJson, ErrorsNameTheValue) {
  const std::string text = golden_import("nccl_tests/rccl-2024-json-lines.json");
  EXPECT_THAT(error_of_text(with(text, "\"AllReduce\"", "\"AllGather\"")),
              HasSubstr("[1].name: all-reduce, and the rows before are of all-gather"));
  const std::size_t second = text.find("\"gpus\":4", text.find('\n'));
  EXPECT_THAT(
      error_of_text(std::string(text).replace(second, 8, "\"gpus\":8")),
      HasSubstr("[1]: this row has 8 GPUs, and the rows before have 4; give one run a file"));
  // The third line has no number, and is named as the third.
  std::size_t third = text.find('\n', text.find('\n') + 1);
  third = text.find("\"time\":", third) + 7;
  EXPECT_THAT(error_of_text(std::string(text).insert(third, "nan")), HasSubstr("run.txt:3:"));
}

TEST(NcclTests, OtherProgramsAndRanksAreRefused) {
  EXPECT_THAT(error_of_text("# Collective test starting: hypercube_perf\n"),
              HasSubstr("run.txt:1: this is the output of 'hypercube_perf'"));
  std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  for (int rank = 4; rank < 8; ++rank) {
    const std::size_t at = text.find("#  Rank  " + std::to_string(rank));
    text.erase(at, text.find('\n', at) + 1 - at);
  }
  EXPECT_THAT(error_of_text(text),
              HasSubstr("busbw is 1.750 algbw, and 1.500 in an all-reduce over 4"));
}

TEST(NcclTests, RunsWithoutMpiAreRefused) {
  std::string text = golden_import("nccl_tests/2.0-float-one-node.txt");
  for (int rank = 1; rank < 8; ++rank)
    text = with(text, "#  Rank  " + std::to_string(rank), "#  Rank  0");
  EXPECT_EQ(error_of_text(text),
            "run.txt: ranks are listed twice: several jobs ran beside each other; build nccl-tests "
            "with MPI=1, so that mpirun makes one job of them");
  for (int rank = 1; rank < 8; ++rank) {
    const std::size_t at = text.rfind("#  Rank  0");
    text.erase(at, text.find('\n', at) + 1 - at);
  }
  EXPECT_THAT(error_of_text(text), HasSubstr("in an all-reduce over 1 rank;"));
}

}  // namespace
}  // namespace paceline::calibration
