// Tests: tests/cli/report_test.py, tests/cli/schemas_test.py.
#include "calibration/fit/fit_json.h"

#include <cstddef>

namespace paceline::calibration {
namespace {

const Document<Sample>& sample_document() {
  static const auto document =
      Document<Sample>().add("bytes", &Sample::bytes).add("time_s", &Sample::time);
  return document;
}

const Document<FittedSize>& size_document() {
  static const auto document = Document<FittedSize>()
                                   .add("bytes", &FittedSize::bytes)
                                   .add("measured_s", &FittedSize::measured)
                                   .add("fitted_s", &FittedSize::fitted)
                                   .add("low_s", &FittedSize::low)
                                   .add("high_s", &FittedSize::high)
                                   .add("outlier", &FittedSize::outlier);
  return document;
}

struct PieceLine {
  const models::CurvePiece& piece;
  double jump;
};

const Document<PieceLine>& piece_document() {
  using Line = PieceLine;
  static const auto document =
      Document<Line>()
          .add("from_bytes", [](const Line& line) { return line.piece.from; })
          .add_interval("alpha", "s", [](const Line& line) { return line.piece.alpha; })
          .add_interval("beta", "s_per_byte", [](const Line& line) { return line.piece.beta; })
          .add("jump", &Line::jump);
  return document;
}

std::vector<PieceLine> pieces_of(const FittedSamples& curve) {
  std::vector<PieceLine> lines;
  for (std::size_t i = 0; i < curve.fit.pieces.size(); ++i)
    lines.push_back({curve.fit.pieces[i], i == 0 ? 0.0 : curve.fit.jumps[i - 1]});
  return lines;
}

const Document<FittedSamples>& curve_document() {
  using Curve = FittedSamples;
  static const auto document =
      Document<Curve>()
          .add("title", &Curve::title, any_text())
          .add("origin", &Curve::origin, any_text())
          .add(
              "residual", [](const Curve& curve) { return curve.fit.residual; }, not_negative())
          .add("pieces", pieces_of, piece_document(), 1)
          .add(
              "sizes", [](const Curve& curve) { return curve.fit.sizes; }, size_document(), 1)
          .add("samples", &Curve::samples, sample_document(), 1)
          .add("complaints", [](const Curve& curve) { return curve.fit.complaints; });
  return document;
}

}  // namespace

const Document<Fits>& fits_document() {
  static const auto document =
      Document<Fits>("paceline.fits/1",
                     "Curves with the measurements that they are fitted to, in the reports of "
                     "paceline calibrate --html.")
          .add("name", &Fits::name, any_text())
          .add("origin", &Fits::origin, any_text())
          .add_constant("provenance", "calibrated")
          .add("curves", &Fits::curves, curve_document())
          .add("remarks", &Fits::remarks);
  return document;
}

}  // namespace paceline::calibration
