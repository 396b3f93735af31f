// Time by message size as a few alpha-beta pieces, found in measurements: T(n) = alpha + n beta
// from one breakpoint to the next (Hockney 1994; pieces as SimGrid and LogGOPS have them for the
// protocols of a library, Hoefler 2010).
//
// What is fitted are the medians of each size, one for each, whatever the number of samples. Errors
// are relative, (measured - fitted) / fitted, so that 8 bytes count as much as 128 MiB. The
// breakpoints are the best for their number by dynamic programming over the sizes (Bellman 1961;
// Jackson 2005), and their number is the one with the least BIC (Schwarz 1978): a piece must pay 4
// log(sizes). The noise that this is held against is that of each size against the line through its
// two neighbours, in the median, and at least 1 %. Lines are fitted by least absolute errors first
// and then by Tukey's biweight, as iterated least squares (Holland & Welsch 1977), so that sizes
// which are far off have no say. alpha and beta are at least 0.
//
// Pieces are not forced to meet, because protocols do not: an eager message and a rendezvous differ by
// a round trip. Where two lines cross between the last size of one piece and the first of the next,
// they meet there; otherwise the breakpoint is the geometric middle, and the jump is stated in
// `jumps` and complained of beyond 25 %.
//
// Intervals are 90 %, by bootstrap (Efron 1979): relative residuals of all samples of a piece,
// taken for leverage (Davison & Hinkley 1997, 6.2.3) and for how few they are, are drawn anew for
// every sample of it, and the piece is fitted again, with the breakpoints as found. So they tell
// how well alpha and beta are known if the pieces are what they seem, and not that the pieces are.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "models/base/units.h"
#include "models/profile/profile.h"

namespace paceline::calibration {

// One measurement. A size may have several.
struct Sample {
  Bytes bytes;
  Seconds time;
};

struct FitOptions {
  // Changes the result.
  int most_pieces = 4;
  int least_sizes = 4;      // of a piece: fewer follow outliers, more miss short protocols
  int draws = 400;          // of the bootstrap; 0: no intervals (low = value = high)
  std::uint64_t seed = 1;   // of the bootstrap
  std::string source = {};  // of the figures, for people
};

// A distinct size, in ascending order.
struct FittedSize {
  Bytes bytes;
  Seconds measured;  // the median of its samples
  Seconds fitted;
  Seconds low;  // 90 % of the fits to other such samples are here
  Seconds high;
  bool outlier = false;  // so far off that it had no say
};

struct Fit {
  std::vector<models::CurvePiece> pieces;  // at least one, the first from 0 bytes; calibrated
  std::vector<double>
      jumps;            // at each breakpoint: time after / time before - 1; 0 where lines meet
  double residual = 0;  // root mean square of (measured - fitted) / fitted over all sizes
  double residual_within = 0;  // the same over the sizes that are no outliers
  std::vector<FittedSize> sizes;
  std::vector<std::string> complaints;  // whatever makes it a bad fit; empty for a good one

  [[nodiscard]] Seconds time(Bytes bytes) const;
};

// A residual above which a fit is called bad, and a jump.
inline constexpr double bad_residual = 0.1;
inline constexpr double bad_jump = 0.25;
// Distinct sizes below which a fit is called bad.
inline constexpr int few_sizes = 5;

// Complains of a residual above 10 %, of fewer than 5 sizes, of a best alpha or beta below 0 (0 is
// taken), of outliers, and of jumps. The same samples and options give the same fit, in whatever
// order they come. Time O(s^2 (s + samples)) in the distinct sizes s, of which at most 64 are tried
// as breakpoints. Throws InputError if there are no samples, or one is not a finite size of at
// least 0 in a finite time above 0 within limits.h.
[[nodiscard]] Fit fit_piecewise(std::span<const Sample> samples, const FitOptions& options = {});

}  // namespace paceline::calibration
