#include "models/plan/profile.h"

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
  profile.throughputs = {
      {"resnet50",
       Precision::mixed,
       64,
       {PerSecond{218}, PerSecond{217.5}, PerSecond{218.5}, Provenance::calibrated, "table"}}};
  profile.layers = {{"resnet50", Precision::fp32, 32, "conv1",
                     Figure<Seconds>::exact(Seconds{1e-3}, Provenance::measured, "run"),
                     Figure<Seconds>::exact(Seconds{2e-3}, Provenance::measured, "run")}};
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
