#include "models/profile/profile.h"

#include <gtest/gtest.h>

#include <random>

#include "models/base/error.h"

namespace paceline::models {
namespace {

Profile sample() {
  Profile profile;
  profile.name = "lab";
  profile.cluster = "lab";
  profile.device = "v100";
  profile.origin = "a test";
  profile.nic_latency = {Seconds{3e-6}, Seconds{2e-6}, Seconds{4e-6}, Provenance::calibrated,
                         "fit"};
  profile.intra_bandwidth = {BytesPerSecond{1e11}, BytesPerSecond{9e10}, BytesPerSecond{1.1e11},
                             Provenance::measured, "run"};
  const auto figure = [](auto value) {
    return Figure<decltype(value)>{value, value * 0.9, value * 1.1, Provenance::calibrated, "fit"};
  };
  profile.transport = {.name = "open-mpi",
                       .smallest_message = Bytes{16384},
                       .largest_message = Bytes{262144},
                       .ahead = Bytes{524288},
                       .message_gap = figure(Seconds{2e-5}),
                       .message_header = figure(Bytes{100}),
                       .fairness = 0.25};
  profile.curves = {
      {.kind = CurveKind::exchange,
       .ranks = 8,
       .pieces = {{Bytes{0}, figure(Seconds{1e-3}), figure(SecondsPerByte{4e-8})},
                  {Bytes{65536}, figure(Seconds{2e-3}), figure(SecondsPerByte{3e-8})}},
       .residual = 0.02,
       .source = "a test"},
      {.kind = CurveKind::all_reduce,
       .between_nodes = false,
       .library = "open-mpi",
       .wire = WireType::fp16,
       .ranks = 4,
       .pieces = {{Bytes{0}, figure(Seconds{1e-3}), figure(SecondsPerByte{0})}},
       .source = "a test"}};
  profile.rates = {{RateKind::reduce, NumberType::bf16, figure(BytesPerSecond{5e9})}};
  profile.throughputs = {
      {"resnet50",
       Precision::mixed,
       64,
       {PerSecond{218}, PerSecond{217.5}, PerSecond{218.5}, Provenance::calibrated, "table"}},
      {"resnet50", Precision::mixed, 64, figure(PerSecond{1650}), 8},
      {"bert-large", Precision::mixed, 64, figure(PerSecond{300}), 1, 1, 128},
      {"bert-large", Precision::mixed, 64, figure(PerSecond{70}), 1, 1, 512}};
  profile.slowdowns = {{"resnet50", Precision::mixed, figure(1.04)},
                       {"resnet50", Precision::fp32, figure(1.0), 1, figure(1.4)}};
  profile.layers = {{"resnet50", Precision::fp32, 32, "conv1",
                     Figure<Seconds>::exact(Seconds{1e-3}, Provenance::measured, "run"),
                     Figure<Seconds>::exact(Seconds{2e-3}, Provenance::measured, "run"),
                     std::nullopt,
                     Figure<Seconds>::exact(Seconds{3e-3}, Provenance::measured, "run")}};
  profile.updates = {{"resnet50", Precision::fp32, figure(Seconds{5e-4})}};
  profile.device_costs = {
      .launch = figure(Seconds{3e-6}),
      .curves = {{.work = DeviceWork::host_to_device,
                  .measured = MeasuredSizes{Bytes{4096}, Bytes{1 << 26}},
                  .pieces = {{Bytes{0}, figure(Seconds{9e-6}), figure(SecondsPerByte{4e-11})}},
                  .residual = 0.01,
                  .source = "a test"},
                 {.work = DeviceWork::cast,
                  .type = NumberType::fp16,
                  .pieces = {{Bytes{0}, figure(Seconds{4e-6}), figure(SecondsPerByte{1e-12})}},
                  .source = "a test"}}};
  profile.checks = {
      {"resnet50", Precision::fp32, 32, figure(Seconds{0.1}), figure(Seconds{0.098})}};
  return profile;
}

std::string error_of(const std::string& text) {
  try {
    (void)parse_profile(text, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(sample());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Profile, GoesThroughJsonUnchanged) {
  const Profile original = sample();
  const Profile read = parse_profile(to_json(original), "p.json");
  EXPECT_EQ(to_json(read), to_json(original));
  EXPECT_EQ(*read.nic_latency, *original.nic_latency);
  EXPECT_EQ(*read.intra_bandwidth, *original.intra_bandwidth);
  EXPECT_FALSE(read.nic_bandwidth);
  EXPECT_EQ(read.throughputs[0].samples, original.throughputs[0].samples);
  EXPECT_EQ(read.layers[0].backward, original.layers[0].backward);
  EXPECT_FALSE(read.layers[0].forward_beside_traffic);
  EXPECT_EQ(read.layers[0].backward_beside_traffic, original.layers[0].backward_beside_traffic);
  EXPECT_EQ(read.transport->message_gap, original.transport->message_gap);
  EXPECT_EQ(*read.transport->message_header, *original.transport->message_header);
  EXPECT_EQ(read.curves[0].pieces[1].beta, original.curves[0].pieces[1].beta);
}

TEST(Profile, HasWhatADeviceCosts) {
  const Profile read = parse_profile(to_json(sample()), "p.json");
  EXPECT_EQ(read.updates.at(0).time, sample().updates.at(0).time);
  ASSERT_TRUE(read.device_costs);
  EXPECT_EQ(read.device_costs->launch, sample().device_costs->launch);
  EXPECT_FALSE(read.device_costs->host_launch);
  EXPECT_EQ(read.device_costs->curves.at(1).type, NumberType::fp16);
  EXPECT_EQ(read.device_costs->curves.at(0).measured, sample().device_costs->curves[0].measured);
  EXPECT_NEAR(read.checks.at(0).difference(), -0.02, 1e-12);
  EXPECT_EQ(
      error_of(with("\"host-to-device\"", "\"host-to-devise\"")),
      "p.json: device_costs.curves[0].work: unknown work of a device 'host-to-devise'; did you "
      "mean 'host-to-device'?");
  EXPECT_EQ(
      error_of(with("\"work\": \"cast\",\n        \"type\": \"fp16\"",
                    "\"work\": \"host-to-device\",\n        \"type\": \"fp32\"")),
      "p.json: device_costs.curves[1]: an entry before is of the same; leave one of the two out");
}

TEST(Profile, ReadsTheFormerNamesOfMessageSizes) {
  std::string text = with("smallest_message_bytes", "smallest_segment_bytes");
  const std::string largest = "largest_message_bytes";
  text.replace(text.find(largest), largest.size(), "largest_segment_bytes");
  EXPECT_EQ(to_json(parse_profile(text, "p.json")), to_json(sample()));
}

TEST(Profile, ACurveIsReadPieceByPiece) {
  const CalibratedCurve curve = sample().curves[0];
  EXPECT_DOUBLE_EQ(curve.time(Bytes{0}).value(), 1e-3);
  EXPECT_DOUBLE_EQ(curve.time(Bytes{65535}).value(), 1e-3 + 65535 * 4e-8);
  EXPECT_DOUBLE_EQ(curve.time(Bytes{65536}).value(), 2e-3 + 65536 * 3e-8);
}

TEST(Profile, FaultsOfCurvesAndTransportsAreNamed) {
  EXPECT_EQ(error_of(with("\"from_bytes\": 65536.0", "\"from_bytes\": 0.0")),
            "p.json: curves[0].pieces[1].from_bytes: pieces are not in order; begin with 0 bytes, "
            "and go up");
  EXPECT_EQ(error_of(with("\"exchange\"", "\"exchang\"")),
            "p.json: curves[0].kind: unknown kind of curve 'exchang'; did you mean 'exchange'?");
  EXPECT_EQ(error_of(with("\"largest_message_bytes\": 262144", "\"largest_message_bytes\": 4096")),
            "p.json: transport: its smallest message is larger than its largest; write smallest <= "
            "largest");
  EXPECT_EQ(error_of(with("\"between_nodes\": true", "\"between_nodes\": 1")),
            "p.json: curves[0].between_nodes: this is neither true nor false; write true or false");
}

TEST(Profile, FaultsNameThePathInTheFile) {
  EXPECT_EQ(error_of("{\n  \"schema\": ,\n}"),
            "p.json:2:13: this is not JSON; give a profile as paceline writes it");
  EXPECT_EQ(error_of("[]"), "p.json: the profile: this is no object; write {...}");
  EXPECT_EQ(error_of(with("paceline.profile/1", "paceline.profile/7")),
            "p.json: schema: 'paceline.profile/7' is not what this version reads; give a profile "
            "of schema paceline.profile/1");
  EXPECT_EQ(error_of(with("\"low\": 2e-06", "\"low\": 5e-06")),
            "p.json: links.nic.latency_s: its value is not between low and high; write low <= "
            "value <= high");
  EXPECT_EQ(error_of(with("\"value\": 218.0", "\"value\": \"fast\"")),
            "p.json: throughputs[0].samples_per_s.value: this is no number; write a finite number");
  EXPECT_EQ(error_of(with("\"mixed\"", "\"mix\"")),
            "p.json: throughputs[0].precision: unknown precision 'mix'; did you mean 'mixed'?");
  EXPECT_EQ(error_of(with("\"batch_per_rank\": 64", "\"batch_per_rank\": 0")),
            "p.json: throughputs[0].batch_per_rank: 0 is not a whole number from 1 to 1000000");
  EXPECT_EQ(error_of(with("\"origin\"", "\"orgin\"")),
            "p.json: the profile: unknown key 'orgin'; did you mean 'origin'?");
}

TEST(Profile, DamagedFilesGiveOneLine) {
  std::mt19937 random(5);
  const std::string good = to_json(sample());
  for (int trial = 0; trial < 3000; ++trial) {
    std::string text = good;
    for (int i = 0; i < 2; ++i) {
      const std::size_t at = random() % text.size();
      if (random() % 2 == 0)
        text[at] = static_cast<char>(random() % 256);
      else
        text.erase(at, 1 + random() % 10);
    }
    EXPECT_EQ(error_of(text).find('\n'), std::string::npos);
  }
}

}  // namespace
}  // namespace paceline::models
