#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>

#include "models/base/error.h"
#include "models/base/figure.h"
#include "models/base/names.h"
#include "models/base/parse_units.h"
#include "tests/support/error_of.h"

namespace paceline {
namespace {

using namespace paceline::literals;

using test::error_of;

static_assert(std::is_same_v<decltype(Bytes{1} * SecondsPerByte{1}), Seconds>);
static_assert(std::is_same_v<decltype(Bytes{1} / Seconds{1}), BytesPerSecond>);
static_assert(std::is_same_v<decltype(Seconds{1} / Seconds{1}), double>);
static_assert(std::is_same_v<decltype(1.0 / BytesPerSecond{1}), SecondsPerByte>);
template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
static_assert(Addable<Seconds, Seconds>);
static_assert(!Addable<Seconds, Bytes>, "alpha + n must not compile");
static_assert(!Addable<Seconds, double>);
static_assert(!std::is_convertible_v<double, Seconds>);

TEST(ParseUnits, KnownUnits) {
  EXPECT_DOUBLE_EQ(parse_bandwidth("100 Gbit/s").value(), 12.5e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("12.5GB/s").value(), 12.5e9);
  EXPECT_DOUBLE_EQ(parse_bandwidth("1 GiB/s").value(), 1073741824.0);
  EXPECT_DOUBLE_EQ(parse_seconds("2 us").value(), 2e-6);
  EXPECT_DOUBLE_EQ(parse_bytes("64 MiB").value(), 67108864);
  EXPECT_DOUBLE_EQ(parse_bytes("256 KB").value(), 256e3);
  EXPECT_DOUBLE_EQ(parse_flop_rate("15.7 TFLOP/s").value(), 15.7e12);
  EXPECT_DOUBLE_EQ(parse_rate("172 images/s").value(), 172);
}

TEST(ParseUnits, FaultsSayWhatWouldBeRight) {
  EXPECT_EQ(error_of([] { return parse_bandwidth("100"); }),
            "'100' has no unit; write one of B/s, kB/s, MB/s, GB/s, TB/s, KiB/s, MiB/s, GiB/s, "
            "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s, as in 100 Gbit/s");
  EXPECT_EQ(error_of([] { return parse_seconds("2 km"); }),
            "'km' is no unit of a time; write one of s, ms, us, ns, as in 2 us");
  EXPECT_EQ(error_of([] { return parse_bandwidth("-3 GB/s"); }),
            "'-3 GB/s' is negative; a bandwidth is at least 0");
  EXPECT_EQ(error_of([] { return parse_bytes("lots"); }),
            "'lots' is not a size; write a number and its unit, such as 64 MiB");
  EXPECT_EQ(error_of([] { return parse_bytes("inf B"); }),
            "'inf B' is not a size; write a number and its unit, such as 64 MiB");
  EXPECT_EQ(error_of([] { return parse_bytes("nan B"); }),
            "'nan B' is not a size; write a number and its unit, such as 64 MiB");
  EXPECT_EQ(error_of([] { return parse_bytes("1e308 TB"); }),
            "'1e308 TB' is too large; write a size such as 64 MiB");
  EXPECT_EQ(error_of([] { return parse_count("3.5", 1, 10); }),
            "'3.5' is not a whole number from 1 to 10");
}

RC_GTEST_PROP(ParseUnits, ReadsBackWhatItPrints, (double mantissa, unsigned exponent)) {
  const double value =
      (1 + std::fabs(std::fmod(mantissa, 9))) * std::pow(10, static_cast<int>(exponent % 18) - 8);
  const auto close = [value](double read) { return std::fabs(read - value) <= 6e-4 * value; };
  RC_ASSERT(close(parse_seconds(to_text(Seconds{value})).value()));
  RC_ASSERT(close(parse_bytes(to_text(Bytes{value})).value()));
  RC_ASSERT(close(parse_bytes(to_text_binary(Bytes{value})).value()));
  RC_ASSERT(close(parse_bandwidth(to_text(BytesPerSecond{value})).value()));
  RC_ASSERT(close(parse_bandwidth(to_text_bits(BytesPerSecond{value})).value()));
  RC_ASSERT(close(parse_flop_rate(to_text(FlopsPerSecond{value})).value()));
}

RC_GTEST_PROP(ParseUnits, NoTextCrashesIt, (const std::string& text)) {
  for (const auto& parse : {+[](const std::string& s) { (void)parse_bytes(s); },
                            +[](const std::string& s) { (void)parse_seconds(s); }}) {
    try {
      parse(text);
    } catch (const InputError&) {
    }
  }
}

TEST(ToText, FourDigitsWithTheLargestUnitThatFits) {
  EXPECT_EQ(to_text(3.2621_s), "3.262 s");
  EXPECT_EQ(to_text(296.11_ms), "296.1 ms");
  EXPECT_EQ(to_text(Seconds{0}), "0 s");
  EXPECT_EQ(to_text(Seconds{0.99999}), "1 s");
  EXPECT_EQ(to_text_binary(64_MiB), "64 MiB");
  EXPECT_EQ(to_text_bits(12.5_GBps), "100 Gbit/s");
}

TEST(Figure, WhatIsComputedIsPredictedAndSpansTheCorners) {
  const Figure<Seconds> measured{2_s, 1_s, 3_s, Provenance::measured, "run"};
  const Figure<double> calibrated{10, 8, 12, Provenance::calibrated, "fit"};
  const auto quotient =
      predicted([](Seconds a, double b) { return a / b; }, measured, calibrated, "quotient");
  EXPECT_EQ(quotient.provenance, Provenance::predicted);
  EXPECT_DOUBLE_EQ(quotient.value.value(), 0.2);
  EXPECT_DOUBLE_EQ(quotient.low.value(), 1.0 / 12);
  EXPECT_DOUBLE_EQ(quotient.high.value(), 3.0 / 8);
}

TEST(Provenance, NamesGoBothWays) {
  for (const Provenance p : {Provenance::measured, Provenance::calibrated, Provenance::predicted,
                             Provenance::datasheet, Provenance::published, Provenance::assumed}) {
    EXPECT_EQ(provenance_from_name(name(p)), p);
  }
}

TEST(NearestName, SuggestsOnlyWhatIsNear) {
  const std::vector<std::string> known = {"resnet50", "resnet101", "vgg16"};
  EXPECT_EQ(nearest_name("resnet05", known), "resnet50");
  EXPECT_EQ(nearest_name("RESNET50", known), "resnet50");
  EXPECT_EQ(nearest_name("res", known), "resnet50");
  EXPECT_EQ(nearest_name("re", known), std::nullopt);
  EXPECT_EQ(nearest_name("transformer", known), std::nullopt);
  EXPECT_EQ(nearest_name(std::string(100000, 'x'), known), std::nullopt);
}

TEST(InputErrorText, NamesThePlace) {
  EXPECT_STREQ(InputError({"a.yaml", 3, 7}, "wrong", "right").what(), "a.yaml:3:7: wrong; right");
  EXPECT_STREQ(InputError("wrong", "").at({"--ranks"}).what(), "--ranks: wrong");
  EXPECT_STREQ(InputError({"a.yaml", 3, 7}, "wrong", "").at({"b.yaml"}).what(),
               "a.yaml:3:7: wrong");
}

}  // namespace
}  // namespace paceline
