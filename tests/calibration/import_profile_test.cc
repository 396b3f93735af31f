// From another tool's text to a profile: what the file says, what the user adds, and what both may
// not contradict.
#include "calibration/import/import_profile.h"

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <iterator>
#include <sstream>

#include "calibration/import/import_file.h"
#include "tests/calibration/import_files.h"
#include "tests/support/error_of.h"

namespace paceline::calibration {
namespace {

using ::testing::HasSubstr;

ImportedProfile imported(const std::string& file, ImportContext context = {}) {
  const std::string text = golden_import(file);
  context.file = "run.txt";
  context.name = "lab";
  context.cluster = "pod";
  context.device = "p40";
  return profile_of(import_text(guessed_format(text, "run.txt"), text, "run.txt", nullptr),
                    context);
}

TEST(ImportFile, IsKnownByItsText) {
  const auto guess = [](const std::string& file) {
    return name(guessed_format(golden_import(file), file));
  };
  for (const char* file : {"2.0-float-one-node.txt", "2.13-half-two-nodes.txt",
                           "2.17-bfloat16-tagged.txt", "2.19-float-percentiles.txt"})
    EXPECT_EQ(guess(std::string("nccl_tests/") + file), "nccl-tests");
  for (const char* file :
       {"5.6.2-allreduce.txt", "5.6.2-bw.txt", "7.4-latency-tail-validation.txt"})
    EXPECT_EQ(guess(std::string("osu/") + file), "osu");
  for (const char* file : {"1.8-operators.json", "2.5-cuda.json"})
    EXPECT_EQ(guess(std::string("kineto/") + file), "kineto");
  for (const char* file : {"0.12-unterminated.json", "0.28-closed.json", "threads.json"})
    EXPECT_EQ(guess(std::string("horovod/") + file), "horovod");
  EXPECT_EQ(
      test::error_of([] { return guessed_format("a,b,c\n", "x.csv"); }),
      "x.csv: this is the output of no tool that is known here; give --format and its file; the "
      "formats are nccl-tests, osu, kineto, horovod, nvidia-topo, nccl-topology, nccl-log, mlperf, "
      "imb, torch-bench, deepspeed, training-log");
  EXPECT_THAT(test::error_of([] { return guessed_format("", "x"); }), HasSubstr("nothing in"));
}

TEST(ImportFile, FormatsHaveNames) {
  for (const std::string& text : import_format_names())
    EXPECT_EQ(name(import_format_from_name(text)), text);
  EXPECT_EQ(test::error_of([] { return import_format_from_name("nccl-test"); }),
            "unknown format 'nccl-test'; did you mean 'nccl-tests'?");
}

TEST(ImportProfile, OfAnAllReduceHoldsItsCurve) {
  const ImportedProfile result = imported("nccl_tests/2.13-half-two-nodes.txt");
  ASSERT_EQ(result.profile.curves.size(), 1u);
  const models::CalibratedCurve& curve = result.profile.curves[0];
  EXPECT_EQ(curve.kind, models::CurveKind::all_reduce);
  EXPECT_EQ(curve.library, "nccl");
  EXPECT_EQ(curve.wire, models::WireType::fp16);
  EXPECT_EQ(curve.ranks, 16);
  EXPECT_TRUE(curve.between_nodes);
  EXPECT_EQ(curve.source, "run.txt (nccl-tests, all_reduce_perf, in place, half sum)");
  EXPECT_LT(curve.residual, 0.02);
  // As the file was written: 34 us and 0.4 ns, 48 us and 0.12 ns, 190 us and 0.0215 ns, with 1 %.
  ASSERT_EQ(curve.pieces.size(), 3u);
  EXPECT_NEAR(curve.pieces[0].alpha.value.value(), 34e-6, 0.5e-6);
  EXPECT_NEAR(curve.pieces[1].beta.value.value(), 0.12e-9, 0.006e-9);
  EXPECT_NEAR(curve.pieces[2].beta.value.value(), 0.0215e-9, 0.001e-9);
  EXPECT_EQ(curve.pieces[0].alpha.provenance, Provenance::calibrated);
  EXPECT_EQ(result.profile.origin, "paceline calibrate import run.txt (nccl-tests)");
}

TEST(ImportProfile, IsReadBackAsItWasWritten) {
  for (const char* file : {"nccl_tests/2.13-half-two-nodes.txt", "osu/5.6.2-latency.txt",
                           "osu/5.6.2-bw.txt", "horovod/0.28-closed.json"}) {
    ImportContext context;
    context.nodes = 2;
    const std::string json = to_json(imported(file, context).profile);
    EXPECT_EQ(to_json(models::parse_profile(json, "p.json")), json) << file;
  }
}

TEST(ImportProfile, MessagesGiveTheLink) {
  ImportContext between;
  between.nodes = 2;
  const models::Profile latency = imported("osu/5.6.2-latency.txt", between).profile;
  ASSERT_TRUE(latency.nic_latency);
  EXPECT_FALSE(latency.intra_latency);
  EXPECT_NEAR(latency.nic_latency->value.value(), 12e-6, 0.3e-6);
  EXPECT_EQ(latency.curves.size(), 1u);
  ImportContext intra;
  intra.nodes = 1;
  const models::Profile bandwidth = imported("osu/5.6.2-bw.txt", intra).profile;
  ASSERT_TRUE(bandwidth.intra_bandwidth);
  EXPECT_FALSE(bandwidth.nic_bandwidth);
  // 0.855 ns a byte.
  EXPECT_NEAR(bandwidth.intra_bandwidth->value.value(), 1.17e9, 0.02e9);
  EXPECT_LE(bandwidth.intra_bandwidth->low, bandwidth.intra_bandwidth->value);
  EXPECT_GE(bandwidth.intra_bandwidth->high, bandwidth.intra_bandwidth->value);
  EXPECT_TRUE(bandwidth.curves.empty());
}

TEST(ImportProfile, RanksAndWireComeFromTheUserWhereTheFileIsSilent) {
  EXPECT_EQ(test::error_of([] { return imported("osu/5.6.2-allreduce.txt").profile; }),
            "run.txt: it does not say on how many ranks the all-reduce ran; give --ranks");
  ImportContext context;
  context.ranks = 4;
  context.nodes = 4;
  context.library = "open-mpi";
  const models::Profile profile = imported("osu/5.6.2-allreduce.txt", context).profile;
  EXPECT_EQ(profile.curves.at(0).ranks, 4);
  EXPECT_EQ(profile.curves.at(0).library, "open-mpi");
  context.ranks = 12;
  EXPECT_EQ(test::error_of(
                [&] { return imported("nccl_tests/2.13-half-two-nodes.txt", context).profile; }),
            "--ranks: 12, and run.txt says 16; leave it out");
  ImportContext wire;
  wire.wire = models::WireType::fp32;
  EXPECT_EQ(
      test::error_of([&] { return imported("nccl_tests/2.13-half-two-nodes.txt", wire).profile; }),
      "--wire: fp32, and run.txt says fp16; leave it out");
}

// A curve that nobody placed would time jobs over NICs that it never used.
TEST(ImportProfile, NodesComeFromTheUserWhereTheFileIsSilent) {
  const char* const silent = "nccl_tests/2.13-without-marks-and-devices.txt";
  EXPECT_EQ(
      test::error_of([&] { return imported(silent).profile; }),
      "run.txt: it does not say on how many nodes its ranks were; give --intra for one node, or "
      "--nodes N");
  ImportContext context;
  context.nodes = 1;
  EXPECT_FALSE(imported(silent, context).profile.curves.at(0).between_nodes);
  context.nodes = 2;
  EXPECT_TRUE(imported(silent, context).profile.curves.at(0).between_nodes);
  context.nodes = 5;
  EXPECT_EQ(test::error_of([&] { return imported(silent, context).profile; }),
            "--nodes: 5, and run.txt has 4 ranks; give the nodes that the ranks were on");
  const char* const told = "nccl_tests/2.13-half-two-nodes.txt";
  EXPECT_EQ(test::error_of([&] { return imported(told, context).profile; }),
            "--nodes: 5, and run.txt says 2; leave it out");
  context.nodes = 1;
  EXPECT_EQ(
      test::error_of([&] { return imported(told, context).profile; }),
      "--intra: one node, and run.txt lists 2 hosts; leave it out; where NVLink joins hosts, give "
      "--cluster with its hosts_per_node");
}

// Two hosts of one NVLink domain are one node of its cluster.
TEST(ImportProfile, HostsOfANodeAreCountedTogether) {
  ImportContext context;
  context.hosts_per_node = 2;
  EXPECT_FALSE(
      imported("nccl_tests/2.13-half-two-nodes.txt", context).profile.curves.at(0).between_nodes);
  context.nodes = 1;
  EXPECT_FALSE(
      imported("nccl_tests/2.13-half-two-nodes.txt", context).profile.curves.at(0).between_nodes);
  context.nodes = 2;
  EXPECT_EQ(test::error_of(
                [&] { return imported("nccl_tests/2.13-half-two-nodes.txt", context).profile; }),
            "--nodes: 2, and run.txt says 1; leave it out");
}

TEST(ImportProfile, WhatRunsDifferByIsInTheCurvesResidual) {
  const std::string run = golden_import("nccl_tests/2.0-float-one-node.txt");
  ImportContext context;
  context.file = "run.txt";
  const auto residual = [&](const std::string& text) {
    return profile_of(import_text(ImportFormat::nccl_tests, text, "run.txt", nullptr), context)
        .profile.curves.at(0)
        .residual;
  };
  EXPECT_EQ(residual(run + run), residual(run));
  // A third run that took eight times as long at its largest size.
  std::string slow = run;
  const std::size_t row = slow.find("   134217728");
  ASSERT_NE(row, std::string::npos);
  std::istringstream cells(slow.substr(row, slow.find('\n', row) - row));
  std::vector<std::string> words(std::istream_iterator<std::string>(cells), {});
  const std::size_t in_place = words.size() - 4;
  for (const auto& [index, factor] :
       {std::pair{in_place, 8.0}, {in_place + 1, 0.125}, {in_place + 2, 0.125}})
    words[index] = fmt::format("{:.6f}", factor * std::stod(words[index]));
  slow.replace(row, slow.find('\n', row) - row, fmt::format("{}", fmt::join(words, " ")));
  // 25 sizes of three runs: ln 8 squared, over 50.
  const double spread = std::log(8) / std::sqrt(50);
  EXPECT_NEAR(residual(run + run + slow), std::hypot(residual(run), spread), 1e-3);
}

// A log of MLPerf says what it trained, and how large its batch was.
TEST(ImportProfile, OptionsContradictNoLogOfMlperf) {
  ImportContext context;
  context.ranks = 8;
  context.network = "resnet50";
  context.is_of_catalogue = true;
  const char* const log = "mlperf/0.6-resnet-mll.log";
  EXPECT_EQ(imported(log, context).profile.throughputs.at(0).batch_per_rank, 416);
  context.is_batch_given = true;
  context.batch_per_rank = 7;
  EXPECT_EQ(test::error_of([&] { return imported(log, context).profile; }),
            "--batch: 7, and run.txt says 416 of 8 ranks; leave it out");
  context.batch_per_rank = 416;
  context.network = "bert-large";
  EXPECT_EQ(
      test::error_of([&] { return imported(log, context).profile; }),
      "--model: bert-large, and run.txt is a run of 'resnet'; give the network that it trained, by "
      "a YAML file where the catalogue has none");
  context.is_of_catalogue = false;  // a file may call its ResNet as it likes
  EXPECT_EQ(imported(log, context).profile.throughputs.size(), 1u);
}

TEST(ImportProfile, OfATraceNeedsANetwork) {
  EXPECT_EQ(test::error_of([] { return imported("kineto/1.8-operators.json").profile; }),
            "run.txt: a trace of torch.profiler, and no network to find in it; give --model, as in "
            "--model resnet50");
}

}  // namespace
}  // namespace paceline::calibration
