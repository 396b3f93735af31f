// The time of an all-reduce by its size, as pieces of straight lines, for planners that ask for it
// millions of times.
//
// What is exact: the step engine's time is convex and piecewise linear in the size, because it is a
// maximum over sums of latencies and of shares of the bucket over bandwidths; convex_pieces() finds
// its pieces to `accuracy`. The least of several such curves is piecewise linear, too, and no longer
// convex. Other engines' times are neither; sampled_pieces() joins samples by lines.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace paceline::simulator {

class SizeCurve {
 public:
  // Holds for sizes from `from_bytes` up to the next piece.
  struct Piece {
    double from_bytes = 0;
    double at_from_s = 0;
    double s_per_byte = 0;
    int which = 0;  // the curve that it is of, where this is the least of several

    [[nodiscard]] double at(double bytes) const {
      return at_from_s + (bytes - from_bytes) * s_per_byte;
    }
  };

  SizeCurve() = default;
  // At least one piece, by rising size. The first also holds below, and the last above.
  explicit SizeCurve(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {}

  [[nodiscard]] const std::vector<Piece>& pieces() const { return pieces_; }
  [[nodiscard]] bool empty() const { return pieces_.empty(); }

  // The piece for a size, looked for from piece `near` on; O(1) where sizes change little.
  [[nodiscard]] std::size_t find(double bytes, std::size_t near = 0) const {
    while (near + 1 < pieces_.size() && pieces_[near + 1].from_bytes <= bytes) ++near;
    while (near > 0 && pieces_[near].from_bytes > bytes) --near;
    return near;
  }
  [[nodiscard]] const Piece& operator[](std::size_t piece) const { return pieces_[piece]; }
  [[nodiscard]] double at(double bytes) const { return pieces_[find(bytes)].at(bytes); }

 private:
  std::vector<Piece> pieces_;
};

using TimeOfSize = std::function<double(double bytes)>;  // seconds

// The pieces of a convex, piecewise linear function between two sizes, 0 < least <= most, each value
// at most `accuracy` above it, relative to it. Between two known points, it is at least the chords
// left and right of them, prolonged; the function is asked for where these cross, which is where a
// piece ends if there is one end between the two. Some three calls for each piece; at most 400, after
// which chords stand for what is not known.
[[nodiscard]] SizeCurve convex_pieces(const TimeOfSize& time, double least, double most,
                                      double accuracy);

// Lines between samples of any function, at `samples` >= 2 sizes in equal ratios.
[[nodiscard]] SizeCurve sampled_pieces(const TimeOfSize& time, double least, double most,
                                       int samples);

// The least of two curves between two sizes, by the crossings of their pieces. Pieces keep `which`.
// Where both are equal, the first is taken. O(pieces).
[[nodiscard]] SizeCurve least_of(const SizeCurve& a, const SizeCurve& b, double least, double most);

// `small` up to a size, and `large` above it.
[[nodiscard]] SizeCurve joined(const SizeCurve& small, const SizeCurve& large, double up_to,
                               double most);

}  // namespace paceline::simulator
