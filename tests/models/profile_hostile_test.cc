// Profiles: every field survives the round trip, and every fault is one InputError on one line.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>

#include "models/base/error.h"
#include "models/profile/profile.h"

namespace paceline::models {
namespace {

std::string error_of(const std::string& text) {
  try {
    (void)parse_profile(text, "p.json");
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string profile_with(const std::string& members) {
  return R"({"schema": "paceline.profile/1", "name": "n", "cluster": "c", "device": "d", "origin": "o")" +
         members + "}";
}
std::string latency_error(const std::string& figure) {
  return error_of(profile_with(R"(, "links": {"nic": {"latency_s": )" + figure + "}}"));
}
std::string bandwidth_error(const std::string& figure) {
  return error_of(
      profile_with(R"(, "links": {"intra": {"bandwidth_bytes_per_s": )" + figure + "}}"));
}

void expect_equal(const Profile& a, const Profile& b) {
  EXPECT_EQ(a.name, b.name);
  EXPECT_EQ(a.cluster, b.cluster);
  EXPECT_EQ(a.device, b.device);
  EXPECT_EQ(a.origin, b.origin);
  EXPECT_EQ(a.intra_latency, b.intra_latency);
  EXPECT_EQ(a.intra_bandwidth, b.intra_bandwidth);
  EXPECT_EQ(a.nic_latency, b.nic_latency);
  EXPECT_EQ(a.nic_bandwidth, b.nic_bandwidth);
  EXPECT_EQ(a.intra_both_ways, b.intra_both_ways);
  EXPECT_EQ(a.nic_both_ways, b.nic_both_ways);
  EXPECT_EQ(a.uplink_oversubscription, b.uplink_oversubscription);
  ASSERT_EQ(a.throughputs.size(), b.throughputs.size());
  for (std::size_t i = 0; i < a.throughputs.size(); ++i) {
    EXPECT_EQ(a.throughputs[i].network, b.throughputs[i].network);
    EXPECT_EQ(a.throughputs[i].precision, b.throughputs[i].precision);
    EXPECT_EQ(a.throughputs[i].batch_per_rank, b.throughputs[i].batch_per_rank);
    EXPECT_EQ(a.throughputs[i].samples, b.throughputs[i].samples);
  }
  ASSERT_EQ(a.layers.size(), b.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    EXPECT_EQ(a.layers[i].network, b.layers[i].network);
    EXPECT_EQ(a.layers[i].precision, b.layers[i].precision);
    EXPECT_EQ(a.layers[i].batch_per_rank, b.layers[i].batch_per_rank);
    EXPECT_EQ(a.layers[i].layer, b.layers[i].layer);
    EXPECT_EQ(a.layers[i].forward, b.layers[i].forward);
    EXPECT_EQ(a.layers[i].backward, b.layers[i].backward);
  }
}

// Draws profiles whose numbers have all their bits set at random.
class Draw {
 public:
  explicit Draw(std::uint32_t seed) : random_(seed) {}

  template <class Q>
  Figure<Q> figure(double least, double most) {
    double x[3];
    for (double& value : x)
      value = least * std::pow(most / least, std::uniform_real_distribution<double>(0, 1)(random_));
    std::sort(x, x + 3);
    constexpr Provenance all[] = {Provenance::measured,  Provenance::calibrated,
                                  Provenance::predicted, Provenance::datasheet,
                                  Provenance::published, Provenance::assumed};
    return {Q{x[1]}, Q{x[0]}, Q{x[2]}, all[random_() % 6], text()};
  }
  std::string text() {
    static const std::string letters[] = {"a", "Z", " ", "\"", "\\", "µ", "中", "😀", "/"};
    std::string result;
    for (std::size_t n = random_() % 12; n > 0; --n) result += letters[random_() % 9];
    return result;
  }
  Profile profile() {
    Profile p{text(), text(), text(), text(), {}, {}, {}, {}, {}, {}};
    if (random_() % 2) p.intra_latency = figure<Seconds>(1e-7, 1e-2);
    if (random_() % 2) p.intra_bandwidth = figure<BytesPerSecond>(1e6, 1e12);
    if (random_() % 2) p.nic_latency = figure<Seconds>(1e-7, 1e-2);
    if (random_() % 2) p.nic_bandwidth = figure<BytesPerSecond>(1e6, 1e12);
    if (random_() % 2) p.intra_both_ways = figure<double>(1e-3, 1e3);
    if (random_() % 2) p.nic_both_ways = figure<double>(0.9, 2);
    if (random_() % 2) p.uplink_oversubscription = figure<double>(1, 1e3);
    const auto precision = [this] { return random_() % 2 ? Precision::fp32 : Precision::mixed; };
    const auto batch = [this] { return 1 + static_cast<int>(random_() % 4096); };
    for (std::size_t n = random_() % 4; n > 0; --n)
      p.throughputs.push_back({text(), precision(), batch(), figure<PerSecond>(0.1, 1e5)});
    for (std::size_t n = random_() % 4; n > 0; --n)
      p.layers.push_back({text(), precision(), batch(), text(), figure<Seconds>(1e-7, 1),
                          figure<Seconds>(1e-7, 1)});
    return p;
  }

 private:
  std::mt19937 random_;
};

RC_GTEST_PROP(Profile, EveryFieldComesBackToTheLastBit, (std::uint32_t seed)) {
  const Profile original = Draw(seed).profile();
  expect_equal(parse_profile(to_json(original), "p.json"), original);
}

TEST(Profile, NeedsOnlyItsNamesAndOrigin) {
  const Profile profile = parse_profile(profile_with(""), "p.json");
  EXPECT_EQ(profile.cluster, "c");
  EXPECT_FALSE(profile.nic_latency);
  EXPECT_TRUE(profile.throughputs.empty());
  EXPECT_EQ(error_of(profile_with(R"(, "links": null, "layers": null)")), "no error");
}

TEST(Profile, FiguresMustBeFiniteAndWithinTheirInterval) {
  const std::string at = "p.json: links.nic.latency_s";
  EXPECT_EQ(latency_error(R"({"value": 1e-6, "provenance": "measured", "source": "run"})"),
            "no error");
  EXPECT_EQ(latency_error(R"({"value": 0, "provenance": "measured", "source": "run"})"),
            "no error");
  EXPECT_EQ(latency_error(R"({"value": -1e-6, "provenance": "measured", "source": "run"})"),
            at + ": -1e-06 is too small; it must be at least 0");
  EXPECT_EQ(latency_error(
                R"({"value": 2, "low": 3, "high": 4, "provenance": "measured", "source": "run"})"),
            at + ": its value is not between low and high; write low <= value <= high");
  EXPECT_EQ(latency_error(R"({"value": 1e9, "provenance": "measured", "source": "run"})"),
            at + ": 1000000000 to 1000000000 is out of range; it must be 0 s to 1000 s");
  EXPECT_EQ(latency_error(R"({"value": 1e400})"),
            "p.json: a number is too large; write finite numbers");
  EXPECT_EQ(latency_error(R"({"value": "3 us"})"),
            at + ".value: this is no number; write a finite number");
  EXPECT_EQ(latency_error(R"({"value": null})"),
            at + ".value: this is no number; write a finite number");
  EXPECT_EQ(latency_error(R"({"low": 1})"), at + ": 'value' is missing; add \"value\"");
  EXPECT_EQ(latency_error(R"({"value": 1, "source": "run"})"),
            at + ": 'provenance' is missing; add \"provenance\"");
  EXPECT_EQ(latency_error(R"({"value": 1, "provenance": "measured"})"),
            at + ": 'source' is missing; add \"source\"");
  EXPECT_EQ(latency_error(R"({"value": 1, "provenance": "measurd", "source": ""})"),
            at + ".provenance: unknown provenance 'measurd'; did you mean 'measured'?");
  EXPECT_EQ(latency_error(R"({"valeu": 1})"), at + ": unknown key 'valeu'; did you mean 'value'?");
  EXPECT_EQ(latency_error("3e-6"), "no error");
  EXPECT_EQ(latency_error("-1"), at + ": -1 is too small; it must be at least 0");
  EXPECT_EQ(latency_error("\"3 us\""),
            at + ": this is no figure; write a number, or {\"value\": 2, \"low\": 1.9, \"high\": "
                 "2.1, \"provenance\": \"measured\", \"source\": \"where it is from\"}");
  EXPECT_EQ(bandwidth_error(R"({"value": 0, "provenance": "measured", "source": "run"})"),
            "p.json: links.intra.bandwidth_bytes_per_s: 0 is too small; it must be more than 0");
  EXPECT_EQ(bandwidth_error(R"({"value": 1e-9, "provenance": "measured", "source": "run"})"),
            "p.json: links.intra.bandwidth_bytes_per_s: 1e-09 to 1e-09 is out of range; it must be "
            "1 B/s to 1000 TB/s");
}

TEST(Profile, RatiosAreWithinWhatTheyMayBe) {
  const auto uplink_error = [](const std::string& value) {
    return error_of(profile_with(R"(, "links": {"uplink": {"oversubscription": {"value": )" +
                                 value + R"(, "provenance": "calibrated", "source": "run"}}})"));
  };
  const std::string uplink = "p.json: links.uplink.oversubscription: ";
  EXPECT_EQ(uplink_error("1"), "no error");
  EXPECT_EQ(uplink_error("0.5"), uplink + "0.5 is too small; it must be at least 1");
  EXPECT_EQ(uplink_error("2e3"), uplink + "2000 to 2000 is out of range; it must be 0.001 to 1000");
  EXPECT_EQ(error_of(profile_with(R"(, "links": {"uplink": {}})")),
            "p.json: links.uplink: 'oversubscription' is missing; add \"oversubscription\"");
  EXPECT_EQ(error_of(profile_with(R"(, "links": {"nic": {"both_ways": {"value": 0}}})")),
            "p.json: links.nic.both_ways: 0 is too small; it must be more than 0");
}

TEST(Profile, WrongShapesNameTheirPath) {
  EXPECT_EQ(error_of("{}"), "p.json: the profile: 'schema' is missing; add \"schema\"");
  EXPECT_EQ(error_of(R"({"schema": 1})"), "p.json: schema: this is no text; write \"...\"");
  EXPECT_EQ(error_of(R"({"schema": "paceline.profile/1"})"),
            "p.json: the profile: 'name' is missing; add \"name\"");
  EXPECT_EQ(error_of(profile_with(R"(, "links": [])")),
            "p.json: links: this is no object; write {...}");
  EXPECT_EQ(error_of(profile_with(R"(, "links": {"nik": {}})")),
            "p.json: links: unknown key 'nik'; did you mean 'nic'?");
  EXPECT_EQ(error_of(profile_with(R"(, "links": {"nic": {"latency": 1}})")),
            "p.json: links.nic: unknown key 'latency'; did you mean 'latency_s'?");
  EXPECT_EQ(error_of(profile_with(R"(, "throughputs": {})")),
            "p.json: throughputs: this is no array; write [...]");
  EXPECT_EQ(error_of(profile_with(R"(, "throughputs": [1])")),
            "p.json: throughputs[0]: this is no object; write {...}");
  EXPECT_EQ(error_of(profile_with(
                R"(, "layers": [{"network": "n", "precision": "fp32", "batch_per_rank": 1.5}])")),
            "p.json: layers[0].batch_per_rank: 1.5 is not a whole number from 1 to 1000000");
}

TEST(Profile, NothingMayBeThereTwice) {
  EXPECT_EQ(error_of(profile_with(",\n \"name\": \"m\"")),
            "p.json:2:7: the key 'name' is there twice; leave one out");
  const auto twice = [](const std::string& key, const std::string& entry) {
    return error_of(profile_with(", \"" + key + "\": [" + entry + ", " + entry + "]"));
  };
  const std::string figure = R"({"value": 1, "provenance": "measured", "source": "run"})";
  const std::string of_network = R"({"network": "n", "precision": "fp32", "batch_per_rank": 1, )";
  const std::string problem = "[1]: an entry before is of the same; leave one of the two out";
  EXPECT_EQ(twice("throughputs", of_network + R"("samples_per_s": )" + figure + "}"),
            "p.json: throughputs" + problem);
  EXPECT_EQ(twice("layers", of_network + R"("layer": "l", "forward_s": )" + figure +
                                R"(, "backward_s": )" + figure + "}"),
            "p.json: layers" + problem);
  EXPECT_EQ(twice("rates", R"({"kind": "copy", "type": "fp32", "bytes_per_s": )" + figure + "}"),
            "p.json: rates" + problem);
  EXPECT_EQ(twice("curves", R"({"kind": "exchange", "between_nodes": true, "ranks": 2,
                                "residual": 0, "source": "run", "pieces": [{"from_bytes": 0,
                                "alpha_s": )" +
                                figure + R"(, "beta_s_per_byte": {"value": 1e-9,
                                "provenance": "measured", "source": "run"}}]})"),
            "p.json: curves" + problem);
}

TEST(Profile, BrokenJsonNamesLineAndColumn) {
  EXPECT_EQ(error_of(""), "p.json:1:1: this is not JSON; give a profile as paceline writes it");
  EXPECT_EQ(error_of("{\n  \"a\": 1,\n  \"b\" 2\n}"),
            "p.json:3:7: this is not JSON; give a profile as paceline writes it");
  EXPECT_EQ(error_of("{} {}"),
            "p.json:1:4: this is not JSON; give a profile as paceline writes it");
  EXPECT_EQ(error_of("NaN"), "p.json:1:1: this is not JSON; give a profile as paceline writes it");
}

TEST(Profile, MessagesStayShortAndOnOneLine) {
  EXPECT_EQ(error_of("{\"a\\nb\": 1}").substr(0, 40), "p.json: the profile: unknown key 'a?b'; ");
  EXPECT_LT(error_of("{\"" + std::string(1 << 20, 'x') + "\": 1}").size(), 300u);
  EXPECT_EQ(error_of("{\"schema\": \"a\\u001b[31m\"}"),
            "p.json: schema: this text has control characters; leave them out");
}

TEST(Profile, DeepAndWideFilesDoNoHarm) {
  EXPECT_NE(error_of(std::string(1 << 22, '[')), "no error");
  EXPECT_EQ(error_of(std::string(1 << 20, '[') + std::string(1 << 20, ']')),
            "p.json:1:17: this nests more than 16 deep; give a profile as paceline writes it");
  // With a linear search for each key this takes minutes.
  std::string wide = "{";
  for (int i = 0; i < 300000; ++i) wide += "\"k" + std::to_string(i) + "\": 1,";
  EXPECT_EQ(error_of(wide + "\"z\": 1}").substr(0, 37), "p.json: the profile: unknown key 'k0'");
}

TEST(Profile, GarbageNeverCrashesIt) {
  std::mt19937 random(7);
  const auto pick = [&random](std::size_t n) { return static_cast<std::size_t>(random() % n); };
  const std::vector<std::string> pieces = {
      "{",     "}",  "[",      "]",       "\"",      ":",  ",",    "null",      "true",
      "1e999", "-1", "1e-400", "\\u0000", "\\ud800", "\n", "\xff", "\"value\"", "\"links\": 3,"};
  for (std::uint32_t trial = 0; trial < 3000; ++trial) {
    std::string text = to_json(Draw(trial).profile());
    for (std::size_t change = 1 + pick(4); change > 0; --change) {
      const std::size_t at = pick(text.size());
      switch (pick(3)) {
        case 0:
          text.insert(at, pieces[pick(pieces.size())]);
          break;
        case 1:
          text.erase(at, 1 + pick(20));
          break;
        default:
          text[at] = static_cast<char>(pick(256));
      }
      if (text.empty()) text = "{";
    }
    const std::string error = error_of(text);  // anything but InputError ends the test
    EXPECT_EQ(error.find('\n'), std::string::npos) << text;
    EXPECT_LT(error.size(), 500u) << text;
  }
}

}  // namespace
}  // namespace paceline::models
