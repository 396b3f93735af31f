// Tests: tests/simulator/fusion_test.cc.
#include "simulator/planner/size_curve.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

struct Point {
  double bytes;
  double time_s;
};

double slope(const Point& a, const Point& b) {
  return (b.time_s - a.time_s) / (b.bytes - a.bytes);
}

// Where the function may be below the chord from a to b, given the points beside them, which may be
// missing: the size at which the lower bounds cross, and how far they are below the chord there.
struct Doubt {
  double bytes = 0;
  double room_s = 0;
};

Doubt doubt_between(const Point* before, const Point& a, const Point& b, const Point* after) {
  const double chord = slope(a, b);
  const double rising =
      before != nullptr ? slope(*before, a) : -1;                   // the lower bound from the left
  const double falling = after != nullptr ? slope(b, *after) : -1;  // and from the right
  if (before == nullptr && after == nullptr) return {0.5 * (a.bytes + b.bytes), a.time_s};
  if (before == nullptr)
    return {0.5 * (a.bytes + b.bytes), (a.time_s - (b.time_s - falling * (b.bytes - a.bytes)))};
  if (after == nullptr)
    return {0.5 * (a.bytes + b.bytes), (b.time_s - (a.time_s + rising * (b.bytes - a.bytes)))};
  if (falling <= rising) return {0.5 * (a.bytes + b.bytes), 0};  // one line, except for rounding
  const double offset = (b.time_s - a.time_s - falling * (b.bytes - a.bytes)) / (rising - falling);
  const double at = std::clamp(a.bytes + offset, a.bytes, b.bytes);
  return {at, chord * (at - a.bytes) - rising * (at - a.bytes)};
}

SizeCurve through(const std::vector<Point>& points) {
  std::vector<SizeCurve::Piece> pieces;
  for (std::size_t i = 0; i + 1 < points.size(); ++i) {
    const double s_per_byte = slope(points[i], points[i + 1]);
    constexpr double one_line = 1e-12;
    if (!pieces.empty() && std::abs(pieces.back().at(points[i + 1].bytes) - points[i + 1].time_s) <=
                               one_line * points[i + 1].time_s)
      continue;
    pieces.push_back({points[i].bytes, points[i].time_s, s_per_byte, 0});
  }
  if (pieces.empty()) pieces.push_back({points.front().bytes, points.front().time_s, 0, 0});
  return SizeCurve(std::move(pieces));
}

}  // namespace

SizeCurve convex_pieces(const TimeOfSize& time, double least, double most, double accuracy) {
  PACELINE_ASSERT(least > 0 && least <= most, "sizes are positive and in order");
  constexpr std::size_t most_points = 400;
  constexpr double near = 0.01;  // points that give the slopes at the ends
  std::vector<Point> points;
  const auto add = [&](double bytes) {
    const auto at = std::lower_bound(points.begin(), points.end(), bytes,
                                     [](const Point& p, double size) { return p.bytes < size; });
    if (at != points.end() && at->bytes == bytes) return false;
    points.insert(at, {bytes, time(bytes)});
    return true;
  };
  add(least);
  if (most > least) add(most);
  if (most > least * (1 + 4 * near)) {
    add(least * (1 + near));
    add(most * (1 - near));
    add(std::sqrt(least * most));
  } else if (most > least) {
    return through(points);
  }
  for (std::size_t i = 0; i + 1 < points.size() && points.size() < most_points;) {
    const Point* before = i > 0 ? &points[i - 1] : nullptr;
    const Point* after = i + 2 < points.size() ? &points[i + 2] : nullptr;
    const Doubt doubt = doubt_between(before, points[i], points[i + 1], after);
    const double chord =
        points[i].time_s + slope(points[i], points[i + 1]) * (doubt.bytes - points[i].bytes);
    const bool is_narrow = points[i + 1].bytes - points[i].bytes <= 1e-6 * points[i + 1].bytes;
    if (is_narrow || doubt.room_s <= accuracy * chord || !add(doubt.bytes)) {
      ++i;
      continue;
    }
    i = i > 0 ? i - 1 : 0;  // a new point narrows what is known beside it, too
  }
  return through(points);
}

SizeCurve sampled_pieces(const TimeOfSize& time, double least, double most, int samples) {
  PACELINE_ASSERT(least > 0 && least <= most && samples >= 2, "sizes are positive and in order");
  if (least == most) return through({{least, time(least)}});
  std::vector<Point> points;
  const double ratio = std::pow(most / least, 1.0 / (samples - 1));
  double bytes = least;
  for (int i = 0; i + 1 < samples; ++i, bytes *= ratio)
    if (points.empty() || bytes < most) points.push_back({bytes, time(bytes)});
  points.push_back({most, time(most)});
  return through(points);
}

SizeCurve least_of(const SizeCurve& a, const SizeCurve& b, double least, double most) {
  std::vector<SizeCurve::Piece> pieces;
  const auto add = [&](const SizeCurve::Piece& piece, double from) {
    if (!pieces.empty() && pieces.back().which == piece.which &&
        pieces.back().s_per_byte == piece.s_per_byte)
      return;
    pieces.push_back({from, piece.at(from), piece.s_per_byte, piece.which});
  };
  std::size_t in_a = a.find(least);
  std::size_t in_b = b.find(least);
  for (double from = least;;) {
    const double to = std::min({most, in_a + 1 < a.pieces().size() ? a[in_a + 1].from_bytes : most,
                                in_b + 1 < b.pieces().size() ? b[in_b + 1].from_bytes : most});
    const double at_from = a[in_a].at(from) - b[in_b].at(from);
    const double at_to = a[in_a].at(to) - b[in_b].at(to);
    const double crossing =
        at_from * at_to < 0 ? from + (to - from) * (at_from / (at_from - at_to)) : from;
    if (crossing > from && crossing < to) {
      add(at_from < 0 ? a[in_a] : b[in_b], from);
      add(at_to < 0 ? a[in_a] : b[in_b], crossing);
    } else {
      add(at_from + at_to <= 0 ? a[in_a] : b[in_b], from);
    }
    if (to >= most) break;
    from = to;
    in_a = a.find(from, in_a);
    in_b = b.find(from, in_b);
  }
  return SizeCurve(std::move(pieces));
}

SizeCurve joined(const SizeCurve& small, const SizeCurve& large, double up_to, double most) {
  std::vector<SizeCurve::Piece> pieces;
  for (const SizeCurve::Piece& piece : small.pieces())
    if (pieces.empty() || piece.from_bytes <= up_to) pieces.push_back(piece);
  if (up_to >= most) return SizeCurve(std::move(pieces));
  // A size that is `up_to` is still small.
  const double from = std::nextafter(up_to, most);
  if (from <= pieces.front().from_bytes) pieces.clear();
  const std::size_t first = large.find(from);
  for (std::size_t i = first; i < large.pieces().size(); ++i) {
    SizeCurve::Piece piece = large[i];
    if (i == first) piece = {from, piece.at(from), piece.s_per_byte, piece.which};
    pieces.push_back(piece);
  }
  return SizeCurve(std::move(pieces));
}

}  // namespace paceline::simulator
