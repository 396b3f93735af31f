#include "experiments/published/fitted.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "experiments/reproduction.h"
#include "models/base/interval.h"
#include "models/base/random.h"

namespace paceline::experiments {
namespace {

constexpr double scale = 2.3533634348018264 / normal_reach;

// A value of Student's t with 3 degrees of freedom.
double student(Random& random) {
  double squares = 0;
  for (int i = 0; i < 3; ++i) {
    const double z = random.normal();
    squares += z * z;
  }
  return random.normal() / std::sqrt(squares / 3);
}

// Rows whose errors are as the widths say, beside what is known of each.
Reproduction source_of(const Unexplained& widths, double known, std::uint64_t seed) {
  Random random(seed);
  Reproduction source{.name = "made", .title = "made"};
  for (int i = 0; i < 4000; ++i) {
    Row row{.published = 100, .doublings = static_cast<double>(i % 8), .exposed = i % 3 / 4.0};
    const double deviation = std::sqrt(known * known + widths.base * widths.base +
                                       widths.doubling * widths.doubling * row.doublings +
                                       std::pow(widths.exposed * row.exposed, 2));
    row.ours = row.published * std::exp(deviation * student(random));
    row.low = row.ours * std::exp(-normal_reach * known);
    row.high = row.ours * std::exp(normal_reach * known);
    source.rows.push_back(row);
  }
  return source;
}

TEST(Fitted, FindsTheWidthsThatRowsWereMadeWith) {
  const Unexplained truths[] = {{0.03, 0.05, 0.3}, {0.05, 0.0, 0.7}, {0.01, 0.08, 0.1}};
  for (const Unexplained& truth : truths) {
    const Reproduction source = source_of(truth, 0.02, 3);
    const Reproduction* sources[] = {&source};
    const Unexplained fitted = fitted_from(sources);
    EXPECT_NEAR(fitted.base, scale * truth.base, scale * 0.0101);
    EXPECT_NEAR(fitted.doubling, scale * truth.doubling, scale * 0.0101);
    EXPECT_NEAR(fitted.exposed, scale * truth.exposed, scale * 0.101);
  }
}

TEST(Fitted, RowsThatWereSpentAndSingleAllReducesSayNothing) {
  Reproduction source = source_of({0.05, 0.05, 0.3}, 0.02, 4);
  for (std::size_t i = 0; i < source.rows.size(); ++i) {
    if (i % 2 == 0) {
      source.rows[i].provenance = Provenance::calibrated;
    } else {
      source.rows[i].kind = RowKind::all_reduce;
    }
  }
  const Reproduction* sources[] = {&source};
  EXPECT_EQ(fitted_from(sources), Unexplained{});
  EXPECT_EQ(fitted_from({}), Unexplained{});
}

// What is unexplained widens intervals and moves nothing.
TEST(Fitted, MovesNoPrediction) {
  const PredictOptions bare{
      .faults = Faults::are_listed, .threads = 2, .unexplained = Unexplained{}};
  PredictOptions wide = bare;
  wide.unexplained = Unexplained{0.1, 0.1, 0.5};
  const Reproduction narrow_rows = reproduce("mlperf", bare);
  const Reproduction wide_rows = reproduce("mlperf", wide);
  ASSERT_EQ(narrow_rows.rows.size(), wide_rows.rows.size());
  ASSERT_FALSE(wide_rows.rows.empty());
  for (std::size_t i = 0; i < wide_rows.rows.size(); ++i) {
    const Row& narrow = narrow_rows.rows[i];
    const Row& row = wide_rows.rows[i];
    EXPECT_EQ(row.ours, narrow.ours) << row.id;
    EXPECT_LT(row.low, narrow.low) << row.id;
    EXPECT_GT(row.high, narrow.high) << row.id;
  }
}

}  // namespace
}  // namespace paceline::experiments
