// Tests: tests/cli/report_test.py.
#include "calibration/fit/fit_json.h"

#include <cstddef>
#include <utility>

namespace paceline::calibration {

Json fit_json(std::span<const Sample> samples, const Fit& fit, const std::string& title,
              const std::string& origin) {
  Json measured = Json::array();
  for (const Sample& sample : samples)
    measured.push_back({{"bytes", sample.bytes.value()}, {"time_s", sample.time.value()}});
  Json sizes = Json::array();
  for (const FittedSize& size : fit.sizes)
    sizes.push_back({{"bytes", size.bytes.value()},
                     {"measured_s", size.measured.value()},
                     {"fitted_s", size.fitted.value()},
                     {"low_s", size.low.value()},
                     {"high_s", size.high.value()},
                     {"outlier", size.outlier}});
  Json pieces = Json::array();
  for (std::size_t i = 0; i < fit.pieces.size(); ++i) {
    const models::CurvePiece& piece = fit.pieces[i];
    pieces.push_back({{"from_bytes", piece.from.value()},
                      {"alpha_s", piece.alpha.value.value()},
                      {"alpha_low_s", piece.alpha.low.value()},
                      {"alpha_high_s", piece.alpha.high.value()},
                      {"beta_s_per_byte", piece.beta.value.value()},
                      {"beta_low_s_per_byte", piece.beta.low.value()},
                      {"beta_high_s_per_byte", piece.beta.high.value()},
                      {"jump", i == 0 ? 0.0 : fit.jumps[i - 1]}});
  }
  return {{"title", title},
          {"origin", origin},
          {"residual", fit.residual},
          {"pieces", std::move(pieces)},
          {"sizes", std::move(sizes)},
          {"samples", std::move(measured)},
          {"complaints", fit.complaints}};
}

std::string fits_json(const std::string& name, const std::string& origin, std::vector<Json> curves,
                      const std::vector<std::string>& remarks) {
  const Json document = {{"schema", "paceline.fits/1"},
                         {"name", name},
                         {"origin", origin},
                         {"provenance", "calibrated"},
                         {"curves", std::move(curves)},
                         {"remarks", remarks}};
  return document.indented();
}

}  // namespace paceline::calibration
