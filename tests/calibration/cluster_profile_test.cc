// Profiles from planted measurements: each figure has the value and the interval that was planted,
// and what is impossible or useless is left out with a reason.
#include "calibration/cluster_profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "calibration/fit/acceptance.h"
#include "calibration/fit/statistics.h"

namespace paceline::calibration {
namespace {

using models::CurveKind;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const ProfileNames names{"lab", "lab8", "v100", "a test"};

ClusterMeasurements exact(double alpha_s, double beta_s) {
  MessageTimes exchange{CurveKind::exchange, true, 8, {}};
  for (double bytes = 4; bytes < 2e6; bytes *= 4) {
    for (int i = 0; i < 5; ++i)
      exchange.samples.push_back({Bytes{bytes}, Seconds{alpha_s + bytes * beta_s}});
  }
  return {
      .transport = "open-mpi",
      .message_sizes = {1000, 2000},
      .messages = {exchange},
      .streams = {{true, 8, {SecondsPerByte{4e-8}, SecondsPerByte{5e-8}, SecondsPerByte{4e-8}}}},
      .message_gaps = {{1, {Seconds{2.1e-6}, Seconds{1.9e-6}, Seconds{2e-6}}}},
      .fairness = 0.25,
      .rates = {},
      .layers = {}};
}

TEST(ClusterProfile, TheNicIsThatOfTheExchange) {
  const ClusterProfile made = make_profile(exact(1e-3, 4e-8), names);
  EXPECT_TRUE(made.complaints.empty());
  EXPECT_NEAR(made.profile.nic_latency->value.value(), 1e-3, 1e-8);
  EXPECT_NEAR(made.profile.nic_bandwidth->value.value(), 2.5e7, 2.5e2);
  EXPECT_FALSE(made.profile.intra_latency);
  EXPECT_EQ(made.profile.transport->message_gap->value, Seconds{2e-6});
  EXPECT_EQ(made.profile.transport->fairness, 0.25);
  EXPECT_FALSE(made.profile.transport->message_header);
  EXPECT_EQ(made.profile.curves.at(0).ranks, 8);
  EXPECT_EQ(made.fits.size(), 1U);
  // The profile that was made can be read back.
  EXPECT_EQ(to_json(models::parse_profile(to_json(made.profile), "p.json")), to_json(made.profile));
}

// Streams take 4e-8 s a byte.
TEST(ClusterProfile, AHeaderIsWhatMessagesInARowTakeOfTheLinkBesideTheirBytes) {
  const auto header_of = [](double cpu_s, double header) {
    ClusterMeasurements measured = exact(1e-3, 4e-8);
    measured.message_gaps.clear();
    for (const std::int64_t bytes : {1, 256, 1024}) {
      const double link_s = (header + static_cast<double>(bytes)) * 4e-8;
      measured.message_gaps.push_back({bytes, {3, Seconds{std::max(cpu_s, link_s)}}});
    }
    return make_profile(measured, names).profile.transport->message_header;
  };
  ASSERT_TRUE(header_of(5e-6, 100));
  EXPECT_NEAR(header_of(5e-6, 100)->value.value(), 100, 1e-6);
  EXPECT_NEAR(header_of(0, 0)->value.value(), 0, 1e-6);
  // 1,024 bytes take 41 us of the link: each waits for its rank.
  EXPECT_FALSE(header_of(30e-6, 100));
  EXPECT_FALSE(header_of(60e-6, 100));
}

// As Open MPI does: another algorithm from 8 KiB on, and from 1 MiB on.
TEST(ClusterProfile, AnAllReduceThatChangesItsAlgorithmHasAPieceForEach) {
  const auto time = [](double bytes) {
    if (bytes < 8192) return 2e-3 + bytes * 2e-7;
    return bytes < 1048576 ? 5e-3 + bytes * 9e-8 : 3e-2 + bytes * 7e-8;
  };
  ClusterMeasurements measured = exact(1e-3, 4e-8);
  MessageTimes all_reduce{CurveKind::all_reduce, true, 8, {}};
  for (double bytes = 4; bytes <= 16777216; bytes *= bytes < 4096 ? 4 : 2) {
    for (const double noise : {0.99, 1.0, 1.01})
      all_reduce.samples.push_back({Bytes{bytes}, Seconds{noise * time(bytes)}});
  }
  measured.messages.push_back(all_reduce);
  const ClusterProfile made = make_profile(measured, names);
  const models::CalibratedCurve& curve = made.profile.curves.at(1);
  EXPECT_EQ(curve.library, "open-mpi");
  ASSERT_EQ(curve.pieces.size(), 3U);
  // Also beyond the last size, where the last piece goes on.
  for (const double bytes : {1e3, 1e5, 1e7, 1e8})
    EXPECT_NEAR(curve.time(Bytes{bytes}).value() / time(bytes), 1, 0.02) << bytes;
}

TEST(ClusterProfile, EveryFigureHasTheIntervalOfItsMedian) {
  ClusterMeasurements measured = exact(1e-3, 4e-8);
  const std::vector<double> ratios = {1.1, 1.0, 1.3, 1.2, 1.05, 1.25, 1.15};
  measured.both_ways = {{true, ratios}, {false, {}}};
  measured.message_gaps = {{1, {}}};
  for (const double ratio : ratios) measured.message_gaps[0].samples.emplace_back(ratio * 1e-5);
  const models::Profile profile = make_profile(measured, names).profile;
  const Interval interval = median_interval(ratios);
  ASSERT_TRUE(profile.nic_both_ways);
  EXPECT_EQ(profile.nic_both_ways->value, 1.15);
  EXPECT_EQ(profile.nic_both_ways->low, interval.low);
  EXPECT_EQ(profile.nic_both_ways->high, interval.high);
  EXPECT_EQ(profile.nic_both_ways->provenance, Provenance::calibrated);
  EXPECT_FALSE(profile.intra_both_ways);
  EXPECT_NEAR(profile.transport->message_gap->low.value(), interval.low * 1e-5, 1e-15);
  EXPECT_NEAR(profile.transport->message_gap->high.value(), interval.high * 1e-5, 1e-15);
}

// A byte of a stream takes 40 ns, and once 41.
TEST(ClusterProfile, AnUplinkIsHeldAgainstTheNicAndAgainstWhatIsStated) {
  const auto with_uplink = [](double seconds_per_byte, double stated) {
    ClusterMeasurements measured = exact(1e-3, 4e-8);
    measured.streams[0].samples = {SecondsPerByte{4e-8}, SecondsPerByte{4.1e-8},
                                   SecondsPerByte{4e-8}};
    for (const double by : {1.0, 1.1, 0.9}) measured.uplink.emplace_back(by * seconds_per_byte);
    measured.stated_oversubscription = stated;
    return make_profile(measured, names);
  };
  const ClusterProfile near = with_uplink(1.6e-7, 4.2);
  const Figure<double> figure = near.profile.uplink_oversubscription.value();
  EXPECT_DOUBLE_EQ(figure.value, 4);
  // Three samples: the distance of the ends to the median is stretched by 2.262.
  EXPECT_NEAR(figure.low, 1.6e-7 * (1 - 0.2262) / (4e-8 + 2.262e-9), 1e-9);
  EXPECT_NEAR(figure.high, 4 * (1 + 0.2262), 1e-9);
  EXPECT_THAT(near.complaints, IsEmpty());
  EXPECT_EQ(to_json(models::parse_profile(to_json(near.profile), "p.json")), to_json(near.profile));
  EXPECT_THAT(with_uplink(1.6e-7, 8).complaints,
              ElementsAre("uplink of a leaf: 4.00:1 as measured, 8.00:1 as stated; predictions "
                          "take the measured one"));
  EXPECT_EQ(with_uplink(3.9e-8, 1).profile.uplink_oversubscription->value, 1);
  EXPECT_THAT(with_uplink(1.6e-7, 0).complaints, IsEmpty());
  EXPECT_FALSE(make_profile(exact(1e-3, 4e-8), names).profile.uplink_oversubscription);
}

TEST(ClusterProfile, BothWaysAtOnceThatNoLinkDoesAreLeftOut) {
  const auto with = [](std::vector<double> ratios) {
    ClusterMeasurements measured = exact(1e-3, 4e-8);
    measured.both_ways = {{true, std::move(ratios)}};
    return make_profile(measured, names);
  };
  const ClusterProfile too_fast = with({0.21, 0.2, 0.22, 0.21, 0.21});
  EXPECT_FALSE(too_fast.profile.nic_both_ways);
  EXPECT_THAT(too_fast.complaints,
              ElementsAre("both ways at once between nodes is left out of the profile: it is 0.21 "
                          "times as long as one way, which no link does: 1 is full duplex, 2 "
                          "half; give more --time, or a quieter machine"));
  EXPECT_FALSE(with({2.4, 2.4, 2.4}).profile.nic_both_ways);
  EXPECT_THAT(with({0.3, 1.5, 15, 1.4, 1.6}).complaints,
              ElementsAre(HasSubstr("an interval wider than a factor of 4")));
  EXPECT_THAT(with({1.5, 1.5}).complaints,
              ElementsAre(HasSubstr("it has 2 samples, where 3 are the least")));
  // Noise, and what half duplex links do.
  for (const double ratio : {0.95, 1.0, 2.0, 2.1})
    EXPECT_TRUE(with({ratio, ratio, ratio}).profile.nic_both_ways) << ratio;
}

TEST(ClusterProfile, WhatIsKnownToNoBetterThanAFactorOfFourIsLeftOut) {
  ClusterMeasurements measured = exact(1e-3, 4e-8);
  measured.message_gaps = {
      {1, {Seconds{1e-6}, Seconds{5e-5}, Seconds{5e-6}, Seconds{2e-6}, Seconds{3e-5}}}};
  measured.streams = {{true, 8, {SecondsPerByte{0}, SecondsPerByte{1e-9}, SecondsPerByte{4e-8}}}};
  measured.uplink = {SecondsPerByte{1e-8}, SecondsPerByte{1e-7}, SecondsPerByte{1e-6}};
  measured.rates = {
      {models::RateKind::copy,
       models::NumberType::fp32,
       {BytesPerSecond{5e9}, BytesPerSecond{1e9}, BytesPerSecond{9e9}, Provenance::measured, ""}},
      {models::RateKind::cast,
       models::NumberType::fp16,
       {BytesPerSecond{5e9}, BytesPerSecond{4e9}, BytesPerSecond{6e9}, Provenance::measured, ""}}};
  const ClusterProfile made = make_profile(measured, names);
  EXPECT_FALSE(made.profile.nic_bandwidth);
  EXPECT_FALSE(made.profile.uplink_oversubscription);
  ASSERT_TRUE(made.profile.transport);
  EXPECT_FALSE(made.profile.transport->message_gap);
  ASSERT_EQ(made.profile.rates.size(), 1U);
  EXPECT_EQ(made.profile.rates[0].kind, models::RateKind::cast);
  EXPECT_THAT(made.complaints,
              ElementsAre(HasSubstr("bandwidth between nodes is left out of the profile: it is "
                                    "known only from"),
                          HasSubstr("oversubscription of a leaf's uplink is left out"),
                          HasSubstr("message gap is left out"),
                          HasSubstr("rate of copy fp32 is left out of the profile: it is known "
                                    "only from 1 GB/s to 9 GB/s, an interval")));
  // What remains can be read, and predicts.
  EXPECT_EQ(to_json(models::parse_profile(to_json(made.profile), "p.json")), to_json(made.profile));
}

TEST(ClusterProfile, ACurveThatSaysNothingIsLeftOutButItsFitIsKept) {
  ClusterMeasurements measured = exact(1e-3, 4e-8);
  for (std::size_t i = 0; i < measured.messages[0].samples.size(); ++i)
    measured.messages[0].samples[i].time *= (i / 5) % 2 == 0 ? 0.1 : 10;
  const ClusterProfile made = make_profile(measured, names);
  EXPECT_THAT(made.profile.curves, IsEmpty());
  EXPECT_FALSE(made.profile.nic_latency);
  EXPECT_EQ(made.fits.size(), 1U);
  EXPECT_EQ(made.fits[0].source, "exchange between nodes, 8 ranks: a test");
  EXPECT_THAT(made.complaints, ElementsAre(HasSubstr("exchange between nodes, 8 ranks is left out "
                                                     "of the profile: it is known only from")));
}

// Layers of the given seconds, each known to 10 %.
std::vector<models::CalibratedLayer> layers(double alone_s, double beside_s) {
  const auto figure = [](double s) {
    return Figure<Seconds>{Seconds{s}, Seconds{0.9 * s}, Seconds{1.1 * s}, Provenance::measured,
                           ""};
  };
  std::vector<models::CalibratedLayer> all;
  for (const char* name : {"conv", "fc"})
    all.push_back({"net", models::Precision::fp32, 16, name, figure(alone_s), figure(alone_s),
                   figure(beside_s), figure(beside_s)});
  return all;
}

TEST(ClusterProfile, LayersThatAreFasterBesideTrafficThanAloneAreLeftOutBesideTraffic) {
  const auto with = [](std::vector<models::CalibratedLayer> all) {
    ClusterMeasurements measured = exact(1e-3, 4e-8);
    measured.layers = std::move(all);
    return make_profile(measured, names);
  };
  EXPECT_TRUE(with(layers(1e-3, 1.2e-3)).profile.layers[1].backward_beside_traffic);
  EXPECT_TRUE(with(layers(1e-3, 0.95e-3)).profile.layers[1].backward_beside_traffic);
  const ClusterProfile impossible = with(layers(1e-3, 0.5e-3));
  ASSERT_EQ(impossible.profile.layers.size(), 2U);
  EXPECT_FALSE(impossible.profile.layers[0].forward_beside_traffic);
  EXPECT_THAT(impossible.complaints,
              ElementsAre(HasSubstr("time of the layers of net beside traffic is left out of the "
                                    "profile: it is faster than alone (2.2 ms at most against "
                                    "3.6 ms at least)")));
  std::vector<models::CalibratedLayer> unknown = layers(1e-3, 1.2e-3);
  for (models::CalibratedLayer& layer : unknown) layer.forward.high = Seconds{1};
  EXPECT_THAT(with(unknown).profile.layers, IsEmpty());
}

TEST(ClusterProfile, ABadFitIsSaid) {
  ClusterMeasurements measured = exact(1e-3, 4e-8);
  for (std::size_t i = 0; i < 5; ++i) measured.messages[0].samples[i].time *= 3;
  const ClusterProfile made = make_profile(measured, names);
  ASSERT_FALSE(made.complaints.empty());
  EXPECT_EQ(made.complaints[0].find("exchange between nodes, 8 ranks: "), 0U);
  EXPECT_EQ(made.profile.curves.size(), 1U);
}

TEST(ClusterProfile, ACurveOfFewSizesIsLeftOut) {
  ClusterMeasurements measured = exact(1e-3, 4e-8);
  measured.messages[0].samples.resize(10);
  const ClusterProfile made = make_profile(measured, names);
  EXPECT_THAT(made.profile.curves, IsEmpty());
  ASSERT_FALSE(made.complaints.empty());
  EXPECT_EQ(made.complaints[0],
            "exchange between nodes, 8 ranks is left out of the profile: it has 2 sizes, where 5 "
            "are the least; give more --time, or a quieter machine");
}

}  // namespace
}  // namespace paceline::calibration
