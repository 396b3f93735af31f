// Units and figures, as properties.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <cmath>
#include <functional>
#include <sstream>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/figure.h"
#include "models/base/parse_units.h"
#include "models/base/scale_figure.h"

namespace paceline {
namespace {

using namespace paceline::literals;

struct Kind {
  std::string name;
  std::function<double(const std::string&)> parse;
  std::vector<std::pair<std::string, double>> units;
};

const std::vector<Kind> kinds = {
    {"time",
     [](const std::string& s) { return parse_seconds(s).value(); },
     {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"µs", 1e-6}, {"ns", 1e-9}}},
    {"size",
     [](const std::string& s) { return parse_bytes(s).value(); },
     {{"B", 1},
      {"kB", 1e3},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 1024},
      {"MiB", 1048576},
      {"GiB", 1073741824},
      {"TiB", 1099511627776}}},
    {"bandwidth",
     [](const std::string& s) { return parse_bandwidth(s).value(); },
     {{"B/s", 1},
      {"kB/s", 1e3},
      {"MB/s", 1e6},
      {"GB/s", 1e9},
      {"TB/s", 1e12},
      {"KiB/s", 1024},
      {"MiB/s", 1048576},
      {"GiB/s", 1073741824},
      {"bit/s", 0.125},
      {"kbit/s", 125},
      {"Mbit/s", 125e3},
      {"Gbit/s", 125e6},
      {"Tbit/s", 125e9},
      {"Gbps", 125e6}}},
    {"rate of arithmetic",
     [](const std::string& s) { return parse_flop_rate(s).value(); },
     {{"FLOP/s", 1},
      {"MFLOP/s", 1e6},
      {"GFLOP/s", 1e9},
      {"TFLOP/s", 1e12},
      {"PFLOP/s", 1e15},
      {"TFLOPS", 1e12}}},
    {"rate",
     [](const std::string& s) { return parse_rate(s).value(); },
     {{"1/s", 1}, {"images/s", 1}, {"samples/s", 1}}},
};

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

TEST(ParseUnits, EveryUnitHasItsFactorWithAndWithoutBlank) {
  for (const Kind& kind : kinds) {
    for (const auto& [unit, factor] : kind.units) {
      EXPECT_DOUBLE_EQ(kind.parse("2.5 " + unit), 2.5 * factor) << unit;
      EXPECT_DOUBLE_EQ(kind.parse("  1e2\t" + unit + " "), 100 * factor) << unit;
      if (unit == "1/s") continue;  // "2.51/s" would be another number
      EXPECT_DOUBLE_EQ(kind.parse("2.5" + unit), 2.5 * factor) << unit;
    }
  }
}

TEST(ParseUnits, AUnitOfAnotherKindIsAlwaysRefused) {
  for (const Kind& kind : kinds) {
    for (const Kind& other : kinds) {
      if (kind.name == other.name) continue;
      for (const auto& [unit, factor] : other.units) {
        const std::string error = error_of([&] { kind.parse("3 " + unit); });
        EXPECT_TRUE(
            error.starts_with("'" + unit + "' is no unit of a " + kind.name + "; write one of "))
            << error;
      }
    }
  }
}

RC_GTEST_PROP(ParseUnits, AMissingUnitIsAlwaysRefused, (double number)) {
  std::ostringstream text;
  text.precision(17);
  text << std::fabs(number);
  for (const Kind& kind : kinds) {
    const std::string error = error_of([&] { kind.parse(text.str()); });
    RC_ASSERT(error.starts_with("'" + text.str() + "' has no unit; write one of "));
  }
}

RC_GTEST_PROP(ParseUnits, NegativeNumbersAreAlwaysRefused, (double number)) {
  RC_PRE(number != 0);
  std::ostringstream text;
  text << -std::fabs(number);
  RC_PRE(text.str() != "-0");
  for (const Kind& kind : kinds) {
    const std::string quantity = text.str() + " " + kind.units.front().first;
    RC_ASSERT(error_of([&] { kind.parse(quantity); }) ==
              "'" + quantity + "' is negative; a " + kind.name + " is at least 0");
  }
}

RC_GTEST_PROP(ParseUnits, ReadsItsOwnTextToFourDigits,
              (std::uint32_t digits, std::uint8_t exponent)) {
  const double value = (1000 + digits % 9000) * 1e-3 * std::pow(10, exponent % 15);
  const auto same = [value](double read) { return std::fabs(read - value) <= 1e-9 * value; };
  RC_ASSERT(same(parse_bytes(to_text(Bytes{value})).value()));
  RC_ASSERT(same(parse_bandwidth(to_text(BytesPerSecond{value})).value()));
  RC_ASSERT(same(parse_flop_rate(to_text(FlopsPerSecond{value})).value()));
  RC_ASSERT(same(parse_rate(to_text(PerSecond{value})).value()));
  RC_ASSERT(same(parse_seconds(to_text(Seconds{value})).value()));
}

TEST(ParseUnits, MessagesAreShortAndOneLine) {
  EXPECT_EQ(error_of([] { (void)parse_seconds("2\nus"); }),
            "'?us' is no unit of a time; write one of s, ms, us, ns, as in 2 us");
  EXPECT_EQ(error_of([] { (void)parse_count(std::string(100000, '9'), 1, 5); }),
            "'" + std::string(60, '9') + "...' is not a whole number from 1 to 5");
  EXPECT_EQ(error_of([] { (void)parse_number("1.5\t\x01", 0, 1); }),
            "'1.5?\?' is not a number from 0 to 1");
  EXPECT_EQ(error_of([] { (void)parse_bytes(""); }),
            "'' is not a size; write a number and its unit, such as 64 MiB");
}

TEST(ParseCount, TakesPlainWholeNumbersOnly) {
  EXPECT_EQ(parse_count(" 12 ", 1, 20), 12);
  EXPECT_EQ(parse_count("-3", -5, 5), -3);
  for (const char* text : {"", "1e3", "0x10", "1 2", "1,000", "99999999999999999999", "+5", "１"}) {
    EXPECT_THROW((void)parse_count(text, 0, 1000000), InputError) << text;
  }
}

TEST(ParseNumber, RefusesWhatIsNotFinite) {
  EXPECT_DOUBLE_EQ(parse_number("0.25", 0, 1), 0.25);
  for (const char* text : {"nan", "inf", "1e999", "", "1x", "-0.1", "1.1"}) {
    EXPECT_THROW((void)parse_number(text, 0, 1), InputError) << text;
  }
}

TEST(ParseShare, TakesNumbersAndPercentages) {
  EXPECT_DOUBLE_EQ(parse_share("0.45", 0, 1), 0.45);
  EXPECT_DOUBLE_EQ(parse_share(" 45 % ", 0, 1), 0.45);
  EXPECT_DOUBLE_EQ(parse_share("0.1%", 1e-3, 1), 1e-3);
  for (const char* text : {"45", "101%", "-1%", "%", "4 5%", "45%%"}) {
    EXPECT_THROW((void)parse_share(text, 0, 1), InputError) << text;
  }
  EXPECT_EQ(error_of([] { (void)parse_share("145%", 0, 1); }),
            "'145' is not a number from 0 to 100");
}

TEST(ToText, PicksTheUnitAtTheEdgesOfRounding) {
  EXPECT_EQ(to_text(Bytes{999.94}), "999.9 B");
  EXPECT_EQ(to_text(Bytes{999.96}), "1 kB");
  EXPECT_EQ(to_text(Bytes{1}), "1 B");
  EXPECT_EQ(to_text(Seconds{1e-12}), "0.001 ns");
  EXPECT_EQ(to_text(Seconds{86400}), "86400 s");
  EXPECT_EQ(to_text(PerSecond{172}), "172 samples/s");
  EXPECT_EQ(to_text(PerSecond{123456}), "123456 samples/s");
  EXPECT_EQ(to_text(FlopsPerSecond{11.76e12}), "11.76 TFLOP/s");
  EXPECT_EQ(to_text(12.5_GBps), "12.5 GB/s");
}

TEST(Quantity, StreamsItsUnit) {
  std::ostringstream out;
  out << 2_s << ", " << Bytes{3} << ", " << BytesPerSecond{4} << ", " << SecondsPerByte{5};
  EXPECT_EQ(out.str(), "2 s, 3 B, 4 s^-1 B, 5 s B^-1");
}

// Interval arithmetic: whatever the inputs are within their intervals, the result is within its.
RC_GTEST_PROP(Figure, TheIntervalHoldsEveryResult,
              (std::uint16_t a, std::uint16_t b, std::uint16_t c, std::uint16_t d, std::uint8_t s,
               std::uint8_t t)) {
  const auto figure = [](double x, double width) {
    return Figure<double>{x, x - width * x / 131072, x + width, Provenance::measured, "x"};
  };
  const Figure<double> x = figure(1.0 + a, b);
  const Figure<double> y = figure(1.0 + c, d);
  const auto at = [](const Figure<double>& f, double share) {
    return f.low + (f.high - f.low) * share;
  };
  const auto check = [&](auto f) {
    const Figure<double> result = predicted(f, x, y, "computed");
    const double inside = f(at(x, s / 255.0), at(y, t / 255.0));
    const double slack = 1e-12 * std::fabs(inside);
    RC_ASSERT(result.low <= result.value && result.value <= result.high);
    RC_ASSERT(result.low - slack <= inside && inside <= result.high + slack);
    RC_ASSERT(result.provenance == Provenance::predicted);
    RC_ASSERT(result.source == "computed");
  };
  check([](double u, double v) { return u + v; });
  check([](double u, double v) { return u - v; });
  check([](double u, double v) { return u * v; });
  check([](double u, double v) { return u / v; });
}

TEST(Figure, ExactHasNoWidth) {
  const auto figure = Figure<Seconds>::exact(2_us, Provenance::datasheet, "page 3");
  EXPECT_EQ(figure.low, figure.value);
  EXPECT_EQ(figure.high, figure.value);
  EXPECT_EQ(figure.source, "page 3");
}

TEST(Figure, IsScaledWithItsInterval) {
  const Figure<Seconds> own{2_us, 1_us, 5_us, Provenance::calibrated, "a run"};
  Figure<Seconds> figure = own;
  scale(figure, 4);
  EXPECT_EQ(figure, (Figure<Seconds>{8_us, 4_us, 20_us, Provenance::calibrated, "a run"}));
  std::optional<Figure<Seconds>> none;
  scale(none, 4);
  EXPECT_FALSE(none);
  std::optional<Figure<Seconds>> some = own;
  scale(some, 4);
  EXPECT_EQ(some, figure);
}

}  // namespace
}  // namespace paceline
