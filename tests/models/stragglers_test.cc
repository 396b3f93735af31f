#include "models/straggler/stragglers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <string>

#include "models/base/random.h"
#include "tests/support/error_of.h"

namespace paceline::models {
namespace {

ComputeSpread spread(const std::string& text, const std::string& file = "") {
  return spread_from_text(text, [&](const std::string&) { return file; });
}

// Seven parts of a million are 4.4 standard errors of a uniform mean's.
TEST(Random, IsUniformAndNormalAndTheSameForASeed) {
  Random random(5);
  Random same(5);
  constexpr int count = 1 << 20;
  double sum = 0;
  double normal_sum = 0;
  double normal_squares = 0;
  for (int i = 0; i < count; ++i) {
    const double u = random.uniform();
    ASSERT_GT(u, 0);
    ASSERT_LT(u, 1);
    ASSERT_EQ(u, same.uniform());
    sum += u;
  }
  for (int i = 0; i < count; ++i) {
    const double z = random.normal();
    normal_sum += z;
    normal_squares += z * z;
  }
  EXPECT_NEAR(sum / count, 0.5, 4 / std::sqrt(12.0 * count));
  EXPECT_NEAR(normal_sum / count, 0, 4 / std::sqrt(1.0 * count));
  EXPECT_NEAR(normal_squares / count, 1, 4 * std::sqrt(2.0 / count));
  EXPECT_NE(Random(6).uniform(), Random(5).uniform());
  for (int i = 0; i < 1000; ++i) EXPECT_LT(random.below(3), 3U);
}

TEST(ComputeSpread, IsReadFromText) {
  EXPECT_EQ(spread("constant").kind, SpreadKind::constant);
  EXPECT_EQ(spread("normal:0.05").kind, SpreadKind::normal);
  EXPECT_EQ(spread("normal:0.05").parameter, 0.05);
  EXPECT_EQ(spread("log-normal:0.1").kind, SpreadKind::log_normal);
  EXPECT_EQ(spread("log-normal:0.1").text, "log-normal:0.1");
  const ComputeSpread drawn = spread("file:t.txt", "# ms\n 1.5 # first\r\n\n2.5\n5");
  EXPECT_EQ(drawn.kind, SpreadKind::empirical);
  EXPECT_EQ(drawn.samples, (std::vector<double>{0.5, 2.5 / 3, 5.0 / 3}));
}

TEST(ComputeSpread, FaultsAreSaidInOneLine) {
  const auto error = [](const std::string& text, const std::string& file = "") {
    return test::error_of([&] { return spread(text, file); });
  };
  EXPECT_EQ(error("lognormal:0.1"), "unknown spread 'lognormal'; did you mean 'log-normal'?");
  EXPECT_EQ(error("normal"),
            "'normal' has no standard deviation; write it behind a colon, as in "
            "normal:0.05");
  EXPECT_EQ(error("log-normal:"),
            "'log-normal:' has no sigma; write it behind a colon, as in log-normal:0.1");
  EXPECT_EQ(error("normal:-0.1"), "'-0.1' is not a number from 0 to 1");
  EXPECT_EQ(error("normal:nan"), "'nan' is not a number from 0 to 1");
  EXPECT_EQ(error("log-normal:4"), "'4' is not a number from 0 to 3");
  EXPECT_EQ(error("constant:1"), "'constant:1' has a parameter; write constant");
  EXPECT_EQ(error("file:"), "'file:' has no path; write it behind a colon, as in file:times.txt");
  EXPECT_EQ(error("file:t.txt", ""),
            "t.txt: no sample; write one time or factor greater than 0 a "
            "line");
  EXPECT_EQ(error("file:t.txt", "# none\n\n"),
            "t.txt: no sample; write one time or factor greater than 0 a line");
  EXPECT_EQ(error("file:t.txt", "1\n2 3\n"),
            "t.txt:2: '2 3' is not a number from 1e-12 to 1000000000000");
  EXPECT_EQ(error("file:t.txt", "1\n\n0\n"),
            "t.txt:3: '0' is not a number from 1e-12 to 1000000000000");
  EXPECT_EQ(error("file:t.txt", "inf"),
            "t.txt:1: 'inf' is not a number from 1e-12 to "
            "1000000000000");
}

TEST(ComputeSpread, NoBytesDoHarm) {
  Random random(11);
  for (int trial = 0; trial < 2000; ++trial) {
    std::string bytes(random.below(40), '\0');
    for (char& byte : bytes) byte = "0123456789.e-+# \n\r\t\0\xff:a"[random.below(24)];
    const std::string said = test::error_of([&] { return spread("file:t", bytes); });
    EXPECT_EQ(said.find('\n'), std::string::npos);
    EXPECT_TRUE(said == "no error" || said.starts_with("t:")) << said;
  }
}

}  // namespace
}  // namespace paceline::models
