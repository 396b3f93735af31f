// Tests: tests/calibration/piecewise_test.cc.
//
// Implementation. A line is fitted in the scale of the problem: sizes are divided by the largest of
// the piece, and each equation by the fitted time, so that its error is relative; the two columns
// of the normal equations are then scaled to length 1 before Eigen solves them. All steps are
// equivariant: times twice as long give a line twice as high, to the bit.
#include "calibration/fit/piecewise.h"

#include <fmt/core.h>

#include <Eigen/Cholesky>
#include <Eigen/LU>
#include <algorithm>
#include <cmath>
#include <limits>

#include "calibration/fit/statistics.h"
#include "models/base/error.h"
#include "models/base/limits.h"
#include "models/base/parse_units.h"
#include "models/base/random.h"
#include "models/base/seeds.h"
#include "models/base/to_size.h"

namespace paceline::calibration {
namespace {

// Noise below which no breakpoint is looked for.
constexpr double least_noise = models::least_misfit;
// A standard deviation is this times the median of absolute errors, if they are normal.
constexpr double deviation_of_median = 1.4826;
// Beyond this many deviations Tukey's biweight is 0; 95 % efficient for normal errors (Holland &
// Welsch 1977).
constexpr double tukey_reach = 4.685;
// No size counts for more than this many deviations where the number of pieces is chosen.
constexpr double counted_deviations = 3;
constexpr int most_candidates = 64;
constexpr int absolute_steps = 12;
constexpr int tukey_steps = 20;
constexpr double converged = 1e-10;

// A distinct size with its samples.
struct Size {
  double bytes = 0;
  double time_s = 0;            // the median
  std::vector<double> times_s;  // ascending
  double noise = least_noise;   // relative standard deviation of the median
};

using Sizes = std::span<const Size>;

struct Line {
  double alpha = 0;
  double beta = 0;
  bool alpha_below_0 = false;  // before it was held at 0
  bool beta_below_0 = false;
  double free_alpha = 0;

  [[nodiscard]] double time(double bytes) const { return alpha + beta * bytes; }
};

// The line with the least sum of weights (t - alpha - beta n)^2, alpha and beta at least 0: the
// best of two free parameters, or else the better of one that is 0.
Line least_squares(Sizes sizes, std::span<const double> times, std::span<const double> weights) {
  const double scale = std::max(sizes.back().bytes, 1.0);
  Eigen::Matrix2d normal = Eigen::Matrix2d::Zero();
  Eigen::Vector2d right = Eigen::Vector2d::Zero();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const Eigen::Vector2d row(1, sizes[i].bytes / scale);
    normal += weights[i] * row * row.transpose();
    right += weights[i] * times[i] * row;
  }
  const auto only = [&](int index) {
    return normal(index, index) > 0 ? std::max(0.0, right(index) / normal(index, index)) : 0.0;
  };
  const Eigen::Vector2d length = normal.diagonal().cwiseSqrt();
  constexpr double parallel = 1e-14;
  const double correlation = length.minCoeff() > 0 ? normal(0, 1) / (length(0) * length(1)) : 1.0;
  if (!(1 - correlation * correlation > parallel)) {
    // One size, or sizes that do not differ: no slope can be told.
    Line line;
    line.alpha = line.free_alpha = only(0);
    return line;
  }
  const Eigen::Matrix2d scaled =
      length.cwiseInverse().asDiagonal() * normal * length.cwiseInverse().asDiagonal();
  const Eigen::Vector2d solution =
      length.cwiseInverse().asDiagonal() *
      scaled.ldlt().solve(Eigen::Vector2d(length.cwiseInverse().asDiagonal() * right));
  Line line;
  line.alpha = line.free_alpha = solution(0);
  line.beta = solution(1) / scale;
  line.alpha_below_0 = line.alpha < 0;
  line.beta_below_0 = line.beta < 0;
  if (line.alpha_below_0) {
    line.alpha = 0;
    line.beta = only(1) / scale;
  } else if (line.beta_below_0) {
    line.alpha = only(0);
    line.beta = 0;
  }
  return line;
}

// Reused by the fits of a segment, so that none allocates.
struct Workspace {
  std::vector<double> weights;
  std::vector<double> errors;
};

bool moved(const Line& from, const Line& to, double largest) {
  const auto apart = [](double a, double b) { return std::abs(a - b) > converged * std::abs(b); };
  return apart(from.alpha, to.alpha) || apart(from.time(largest), to.time(largest));
}

// A line through 0 is no more than 999 times too short.
double relative_error(double measured, double fitted) {
  const double divisor = std::max(fitted, 1e-3 * measured);
  return (measured - divisor) / divisor;
}

// `times` are those to fit, one for each size: the medians, or what the bootstrap drew.
Line robust_line(Sizes sizes, std::span<const double> times, Workspace& workspace) {
  std::vector<double>& weights = workspace.weights;
  std::vector<double>& errors = workspace.errors;
  weights.resize(sizes.size());
  errors.resize(sizes.size());
  // Divided by the measured time at first: what is far too long then counts for less than 1.
  for (std::size_t i = 0; i < sizes.size(); ++i) weights[i] = 1 / (times[i] * times[i]);
  Line line = least_squares(sizes, times, weights);
  const double largest = sizes.back().bytes;
  const auto iterate = [&](int steps, auto weight) {
    for (int step = 0; step < steps; ++step) {
      bool any = false;
      for (std::size_t i = 0; i < sizes.size(); ++i) {
        const double fitted = std::max(line.time(sizes[i].bytes), 1e-3 * times[i]);
        const double error = relative_error(times[i], fitted);
        weights[i] = weight(i, error) / (fitted * fitted);
        any = any || weights[i] > 0;
      }
      if (!any) return;
      const Line next = least_squares(sizes, times, weights);
      const bool goes_on = moved(line, next, largest);
      line = next;
      if (!goes_on) return;
    }
  };
  iterate(absolute_steps, [](std::size_t, double error) {
    return 1 / std::max(std::abs(error), least_noise / 10);
  });
  for (std::size_t i = 0; i < sizes.size(); ++i)
    errors[i] = std::abs(relative_error(times[i], line.time(sizes[i].bytes)));
  const double spread = deviation_of_median * median(errors);
  iterate(tukey_steps, [&](std::size_t i, double error) {
    const double reach = tukey_reach * std::max(spread, sizes[i].noise);
    const double share = 1 - (error / reach) * (error / reach);
    return std::abs(error) < reach ? share * share : 0.0;
  });
  return line;
}

std::vector<double> medians(Sizes sizes) {
  std::vector<double> times;
  for (const Size& size : sizes) times.push_back(size.time_s);
  return times;
}

std::vector<Size> grouped(std::span<const Sample> samples) {
  std::vector<Sample> sorted(samples.begin(), samples.end());
  std::sort(sorted.begin(), sorted.end(), [](const Sample& a, const Sample& b) {
    return a.bytes != b.bytes ? a.bytes < b.bytes : a.time < b.time;
  });
  std::vector<Size> sizes;
  for (const Sample& sample : sorted) {
    if (sizes.empty() || sizes.back().bytes != sample.bytes.value())
      sizes.push_back({.bytes = sample.bytes.value(), .times_s = {}});
    sizes.back().times_s.push_back(sample.time.value());
  }
  for (Size& size : sizes) size.time_s = median(size.times_s);
  return sizes;
}

// Each size against the line through its neighbours: on a piece that is exact except for noise.
void estimate_noise(std::vector<Size>& sizes) {
  std::vector<double> apart;  // of sizes 1 .. count - 2
  for (std::size_t i = 1; i + 1 < sizes.size(); ++i) {
    const Size& a = sizes[i - 1];
    const Size& b = sizes[i + 1];
    const double share = (sizes[i].bytes - a.bytes) / (b.bytes - a.bytes);
    const double between = a.time_s + share * (b.time_s - a.time_s);
    const double left = (1 - share) * a.time_s / between;
    const double right = share * b.time_s / between;
    apart.push_back(std::abs(sizes[i].time_s - between) / between /
                    std::sqrt(1 + left * left + right * right));
  }
  if (apart.size() < 3) return;
  const double everywhere = deviation_of_median * median(apart);
  constexpr std::ptrdiff_t window = 4;
  const auto count = static_cast<std::ptrdiff_t>(apart.size());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const auto middle =
        std::clamp(static_cast<std::ptrdiff_t>(i) - 1, std::ptrdiff_t{0}, count - 1);
    const auto first = apart.begin() + std::max(middle - window, std::ptrdiff_t{0});
    const auto last = apart.begin() + std::min(middle + window + 1, count);
    const double here = deviation_of_median * median(std::vector<double>(first, last));
    sizes[i].noise = std::max({least_noise, everywhere, here});
  }
}

// Minus twice the log likelihood of the sizes on the line, except for a constant.
double misfit(Sizes sizes, const Line& line) {
  double sum = 0;
  for (const Size& size : sizes) {
    const double deviations =
        std::min(std::abs(relative_error(size.time_s, line.time(size.bytes))) / size.noise,
                 counted_deviations);
    sum += deviations * deviations;
  }
  return sum;
}

// The places where pieces may begin: indices of sizes, from 0 to their number.
std::vector<std::size_t> candidate_bounds(std::size_t sizes) {
  std::vector<std::size_t> bounds;
  const std::size_t parts = std::min<std::size_t>(sizes, most_candidates);
  for (std::size_t i = 0; i <= parts; ++i) bounds.push_back(i * sizes / parts);
  return bounds;
}

// The first sizes of the pieces, and at the end the number of sizes.
//
// best(k, b): the least misfit of the sizes before bounds[b] in k + 1 pieces, the last of which
// begins at bounds[from(k, b)].
std::vector<std::size_t> best_bounds(Sizes sizes, const FitOptions& options) {
  const std::vector<std::size_t> bounds = candidate_bounds(sizes.size());
  const std::size_t count = bounds.size();
  const auto least = to_size(std::max(options.least_sizes, 2));
  const auto most = static_cast<Eigen::Index>(std::max(options.most_pieces, 1));
  constexpr double never = std::numeric_limits<double>::infinity();
  const std::vector<double> times = medians(sizes);
  Workspace workspace;
  const auto side = static_cast<Eigen::Index>(count);
  Eigen::MatrixXd cost = Eigen::MatrixXd::Constant(side, side, never);
  for (Eigen::Index a = 0; a < side; ++a) {
    for (Eigen::Index b = a + 1; b < side; ++b) {
      const std::size_t first = bounds[to_size(a)];
      const std::size_t length = bounds[to_size(b)] - first;
      if (length < least && length < sizes.size()) continue;
      const Sizes segment = sizes.subspan(first, length);
      const Line line = robust_line(segment, std::span(times).subspan(first, length), workspace);
      cost(a, b) = misfit(segment, line);
    }
  }
  Eigen::MatrixXd best = Eigen::MatrixXd::Constant(most, side, never);
  Eigen::MatrixXi from = Eigen::MatrixXi::Zero(most, side);
  best.row(0) = cost.row(0);
  for (Eigen::Index k = 1; k < most; ++k) {
    for (Eigen::Index b = 1; b < side; ++b) {
      for (Eigen::Index a = 1; a < b; ++a) {
        const double sum = best(k - 1, a) + cost(a, b);
        if (sum >= best(k, b)) continue;
        best(k, b) = sum;
        from(k, b) = static_cast<int>(a);
      }
    }
  }
  // alpha, beta and the breakpoint, which is paid twice: the best of all places fits noise better
  // than a given one would (Zhang & Siegmund 2007).
  const double price = 4 * std::log(static_cast<double>(sizes.size()));
  Eigen::Index pieces = 0;
  for (Eigen::Index k = 1; k < most; ++k) {
    const auto criterion = [&](Eigen::Index n) {
      return best(n, side - 1) + price * static_cast<double>(n);
    };
    if (criterion(k) < criterion(pieces)) pieces = k;
  }
  std::vector<std::size_t> chosen = {sizes.size()};
  for (Eigen::Index k = pieces, b = side - 1; k > 0; --k) {
    b = from(k, b);
    chosen.push_back(bounds[to_size(b)]);
  }
  chosen.push_back(0);
  std::reverse(chosen.begin(), chosen.end());
  return chosen;
}

// The pseudo-inverse of a symmetric matrix without negative eigenvalues. If its rows are parallel,
// its one eigenvalue is the trace. (Eigen's general decomposition takes 8 s to compile.)
Eigen::Matrix2d pseudo_inverse(const Eigen::Matrix2d& matrix) {
  const double trace = matrix.trace();
  constexpr double parallel = 2 * std::numeric_limits<double>::epsilon();
  if (matrix.determinant() > parallel * trace * trace) return matrix.inverse();
  return matrix / (trace * trace);
}

// What share of its own error a size takes from the line: the diagonal of the projection of
// relative equations.
std::vector<double> leverage(Sizes sizes, const Line& line) {
  const double scale = std::max(sizes.back().bytes, 1.0);
  Eigen::Matrix2d normal = Eigen::Matrix2d::Zero();
  std::vector<Eigen::Vector2d> rows;
  for (const Size& size : sizes) {
    const double fitted = std::max(line.time(size.bytes), 1e-3 * size.time_s);
    rows.emplace_back(1 / fitted, size.bytes / scale / fitted);
    normal += rows.back() * rows.back().transpose();
  }
  const Eigen::Matrix2d inverse = pseudo_inverse(normal);
  std::vector<double> shares;
  for (const Eigen::Vector2d& row : rows)
    shares.push_back(std::clamp(row.dot(inverse * row), 0.0, 0.9));
  return shares;
}

struct Draws {
  std::vector<double> alphas;
  std::vector<double> betas;
  std::vector<std::vector<double>> times;  // of each size
};

// Lines fitted to samples drawn anew.
Draws bootstrap(Sizes sizes, const Line& line, int draws, Random& random) {
  const std::vector<double> shares = leverage(sizes, line);
  std::vector<double> residuals;
  std::size_t count = 0;
  for (const Size& size : sizes) count += size.times_s.size();
  // Few residuals tell their deviation badly: the 95 % quantile of Student's distribution over that
  // of the normal one, to the first order in 1 / degrees of freedom.
  const double student = 1 + 0.93 / static_cast<double>(std::max<std::size_t>(count, 3) - 2);
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    // The median of many samples has little leverage of each.
    const auto samples = static_cast<double>(sizes[i].times_s.size());
    const double inflation = student / std::sqrt(1 - shares[i] / samples);
    for (const double time : sizes[i].times_s)
      residuals.push_back(relative_error(time, line.time(sizes[i].bytes)) * inflation);
  }
  // Centred, so that drawing does not move the line.
  const double middle = median(residuals);
  for (double& residual : residuals) residual -= middle;
  Draws result;
  result.times.resize(sizes.size());
  Workspace workspace;
  std::vector<double> times(sizes.size());
  std::vector<double> drawn;
  for (int draw = 0; draw < draws; ++draw) {
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      drawn.clear();
      for (std::size_t k = 0; k < sizes[i].times_s.size(); ++k)
        drawn.push_back(residuals[random.below(residuals.size())]);
      times[i] = line.time(sizes[i].bytes) * std::max(1 + median(drawn), 1e-2);
    }
    const Line again = robust_line(sizes, times, workspace);
    result.alphas.push_back(again.alpha);
    result.betas.push_back(again.beta);
    for (std::size_t i = 0; i < sizes.size(); ++i)
      result.times[i].push_back(again.time(sizes[i].bytes));
  }
  return result;
}

// Where the second line begins, between the last size of the first and its own first.
double breakpoint(const Line& before, const Line& after, double last, double first) {
  const double slope = after.beta - before.beta;
  const double crossing = slope != 0 ? (before.alpha - after.alpha) / slope : -1;
  const double at =
      crossing > last && crossing <= first ? crossing : std::sqrt(std::max(last, 1.0) * first);
  return std::clamp(std::ceil(at), std::nextafter(last, first), first);
}

void check(std::span<const Sample> samples) {
  if (samples.empty()) throw InputError("there are no samples to fit", "give at least one");
  for (const Sample& sample : samples) {
    const bool fits = sample.bytes >= Bytes{0} && sample.bytes <= Limits<Bytes>::most &&
                      sample.time > Seconds{0} && within_limits(sample.time);
    if (fits) continue;
    throw InputError(
        fmt::format("a sample of {} bytes in {} s", sample.bytes.value(), sample.time.value()),
        "sizes are 0 to 1e15 bytes, times above 0 and up to 1000 s");
  }
}

std::string place(const Fit& fit, std::size_t piece) {
  return fit.pieces.size() == 1
             ? std::string()
             : fmt::format("from {} on: ", to_text_binary(fit.pieces[piece].from));
}

double residual_within(const Fit& fit) {
  double squares = 0;
  double count = 0;
  for (const FittedSize& size : fit.sizes) {
    if (size.outlier) continue;
    const double error = relative_error(size.measured.value(), size.fitted.value());
    squares += error * error;
    ++count;
  }
  return std::sqrt(squares / std::max(count, 1.0));
}

void complain(Fit& fit, std::span<const Line> lines) {
  const auto count = fit.sizes.size();
  if (count < to_size(few_sizes)) {
    fit.complaints.push_back(
        fmt::format("too few points: {} size{}, where {} are the least that show a bad fit", count,
                    count == 1 ? "" : "s", few_sizes));
  }
  const auto outliers = to_size(
      std::ranges::count_if(fit.sizes, [](const FittedSize& size) { return size.outlier; }));
  if (fit.residual > bad_residual) {
    fit.complaints.push_back(fmt::format("the residual is {:.1f} %, above {:.0f} %",
                                         100 * fit.residual, 100 * bad_residual));
  }
  if (outliers > 0) {
    fit.complaints.push_back(fmt::format(
        "{} of {} sizes {} so far off that the fit leaves {} out; the others' residual is "
        "{:.1f} %",
        outliers, count, outliers == 1 ? "is" : "are", outliers == 1 ? "it" : "them",
        100 * fit.residual_within));
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    if (lines[i].alpha_below_0) {
      fit.complaints.push_back(fmt::format("{}the best alpha is negative ({:.3g} us); 0 is taken",
                                           place(fit, i), 1e6 * lines[i].free_alpha));
    }
    if (lines[i].beta_below_0)
      fit.complaints.push_back(fmt::format(
          "{}the best beta is negative: time falls with size; 0 is taken", place(fit, i)));
  }
  for (std::size_t i = 0; i < fit.jumps.size(); ++i) {
    if (std::abs(fit.jumps[i]) <= bad_jump) continue;
    fit.complaints.push_back(fmt::format("at {} the fit jumps by {:+.0f} %",
                                         to_text_binary(fit.pieces[i + 1].from),
                                         100 * fit.jumps[i]));
  }
}

}  // namespace

Seconds Fit::time(Bytes bytes) const {
  const auto above =
      std::upper_bound(pieces.begin(), pieces.end(), bytes,
                       [](Bytes b, const models::CurvePiece& p) { return b < p.from; });
  const models::CurvePiece& piece = above == pieces.begin() ? pieces.front() : *std::prev(above);
  return piece.alpha.value + bytes * piece.beta.value;
}

Fit fit_piecewise(std::span<const Sample> samples, const FitOptions& options) {
  check(samples);
  std::vector<Size> sizes = grouped(samples);
  estimate_noise(sizes);
  const std::vector<std::size_t> bounds = best_bounds(sizes, options);
  const std::vector<double> times = medians(sizes);
  Fit fit;
  std::vector<Line> lines;
  Workspace workspace;
  double squares = 0;
  for (std::size_t k = 0; k + 1 < bounds.size(); ++k) {
    const std::size_t first = bounds[k];
    const std::size_t length = bounds[k + 1] - first;
    const Sizes segment = Sizes(sizes).subspan(first, length);
    const Line line = robust_line(segment, std::span(times).subspan(first, length), workspace);
    Random random(mixed_seed(options.seed, k));
    Draws draws = bootstrap(segment, line, options.draws, random);
    const Interval alpha = bootstrap_interval(draws.alphas, line.alpha);
    const Interval beta = bootstrap_interval(draws.betas, line.beta);
    double from = 0;
    if (k > 0) {
      from = breakpoint(lines.back(), line, sizes[first - 1].bytes, segment.front().bytes);
      const double jump = line.time(from) / lines.back().time(from) - 1;
      // Rounded up to a byte, a crossing is a jump of next to nothing.
      fit.jumps.push_back(std::abs(jump) < 1e-3 ? 0 : jump);
    }
    fit.pieces.push_back({Bytes{from},
                          {Seconds{line.alpha}, Seconds{alpha.low}, Seconds{alpha.high},
                           Provenance::calibrated, options.source},
                          {SecondsPerByte{line.beta}, SecondsPerByte{beta.low},
                           SecondsPerByte{beta.high}, Provenance::calibrated, options.source}});
    lines.push_back(line);
    std::vector<double> errors;
    for (const Size& size : segment)
      errors.push_back(relative_error(size.time_s, line.time(size.bytes)));
    std::vector<double> absolute;
    for (const double error : errors) absolute.push_back(std::abs(error));
    const double spread = deviation_of_median * median(absolute);
    for (std::size_t i = 0; i < length; ++i) {
      const double fitted = line.time(segment[i].bytes);
      const Interval band = bootstrap_interval(draws.times[i], fitted);
      squares += errors[i] * errors[i];
      fit.sizes.push_back({Bytes{segment[i].bytes}, Seconds{segment[i].time_s}, Seconds{fitted},
                           Seconds{band.low}, Seconds{band.high},
                           absolute[i] >= tukey_reach * std::max(spread, segment[i].noise)});
    }
  }
  fit.residual = std::sqrt(squares / static_cast<double>(sizes.size()));
  fit.residual_within = residual_within(fit);
  complain(fit, lines);
  return fit;
}

}  // namespace paceline::calibration
