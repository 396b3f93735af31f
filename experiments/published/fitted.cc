// Tests: tests/experiments/fitted_test.cc.
#include "experiments/published/fitted.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "experiments/published/summary.h"
#include "models/base/interval.h"

namespace paceline::experiments {
namespace {

constexpr std::array bases = {0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08};
// Never 0: the farther a row is from what was measured, the less is known of it.
constexpr std::array doublings = {0.01, 0.02, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1};
constexpr std::array shares = {0.0, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0};

constexpr double degrees = 3;
constexpr double student_reach = 2.3533634348018264;  // the 95 % quantile of Student's t with 3

// One row, in squares.
struct Evidence {
  double error = 0;  // of the logarithm
  double known = 0;
  double doublings = 0;
  double share = 0;
  double weight = 0;
};

// The end of the interval on the side of the published value says how far the row was known.
Evidence evidence(const Row& row, double weight) {
  const double end = row.published < row.ours ? row.low : row.high;
  const double known = std::log(std::max(end, 1e-12) / row.ours) / normal_reach;
  const double error = std::log1p(row.speed_error());
  return {error * error, known * known, row.doublings, row.exposed * row.exposed, weight};
}

double log_likelihood(const std::vector<Evidence>& rows, const Unexplained& widths) {
  const double base = widths.base * widths.base;
  const double doubling = widths.doubling * widths.doubling;
  const double exposed = widths.exposed * widths.exposed;
  double sum = 0;
  for (const Evidence& row : rows) {
    const double variance = row.known + base + doubling * row.doublings + exposed * row.share;
    sum -= row.weight * 0.5 *
           (std::log(variance) + (degrees + 1) * std::log1p(row.error / variance / degrees));
  }
  return sum;
}

}  // namespace

Unexplained fitted_from(std::span<const Reproduction* const> sources) {
  std::vector<Evidence> rows;
  for (const Reproduction* source : sources) {
    const auto counts = [](const Row& row) {
      return is_training(row) && row.provenance == Provenance::predicted;
    };
    const auto count = std::count_if(source->rows.begin(), source->rows.end(), counts);
    for (const Row& row : source->rows) {
      if (counts(row)) rows.push_back(evidence(row, 1 / std::sqrt(static_cast<double>(count))));
    }
  }
  if (rows.empty()) return {};
  Unexplained best;
  double most = -std::numeric_limits<double>::infinity();
  for (const double base : bases) {
    for (const double doubling : doublings) {
      for (const double exposed : shares) {
        const Unexplained widths{base, doubling, exposed};
        const double likelihood = log_likelihood(rows, widths);
        if (likelihood <= most) continue;
        most = likelihood;
        best = widths;
      }
    }
  }
  constexpr double scale = student_reach / normal_reach;
  return {scale * best.base, scale * best.doubling, scale * best.exposed};
}

std::string to_text(const Unexplained& widths) {
  return fmt::format(
      "{:.1f} %, {:.1f} % for each doubling of ranks, {:.0f} % of exposed communication",
      100 * widths.base, 100 * widths.doubling, 100 * widths.exposed);
}

void set_unexplained(models::Cluster& cluster, const Unexplained& widths) {
  if (!cluster.effects) return;
  cluster.effects->unexplained.value = widths.base;
  cluster.effects->unexplained_doubling.value = widths.doubling;
  cluster.effects->unexplained_exposed.value = widths.exposed;
}

}  // namespace paceline::experiments
