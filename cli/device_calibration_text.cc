#include "cli/device_calibration_text.h"

#include <fmt/core.h>

#include "cli/table.h"
#include "models/base/parse_units.h"

namespace paceline::cli {
namespace {

template <class Q>
std::string with_interval(const Figure<Q>& figure) {
  return fmt::format("{} ({} - {})", to_text(figure.value), to_text(figure.low),
                     to_text(figure.high));
}

std::string rate_text(SecondsPerByte beta) {
  return beta > SecondsPerByte{0} ? to_text(1.0 / beta) : "unbounded";
}

void add_pieces(Table& rows, const std::string& what, const std::vector<models::CurvePiece>& pieces,
                double residual) {
  for (const models::CurvePiece& piece : pieces)
    rows.add({what, to_text_binary(piece.from), with_interval(piece.alpha),
              fmt::format("{} ({} - {})", rate_text(piece.beta.value), rate_text(piece.beta.high),
                          rate_text(piece.beta.low)),
              fmt::format("{:.1f} %", 100 * residual)});
}

std::string curves_text(const models::Profile& profile) {
  Table rows({{"curve", Align::left},
              {"from", Align::right},
              {"alpha (90 %)"},
              {"1 / beta (90 %)"},
              {"residual"}});
  if (profile.device_costs)
    for (const models::DeviceCurve& curve : profile.device_costs->curves)
      add_pieces(rows, fmt::format("{} {}", name(curve.work), name(curve.type)), curve.pieces,
                 curve.residual);
  for (const models::CalibratedCurve& curve : profile.curves) {
    const bool is_library = is_of_library(curve.kind);
    add_pieces(rows,
               fmt::format("{}{} {}, {} GPUs", is_library ? curve.library + " " : "",
                           name(curve.kind), name(curve.wire), curve.ranks),
               curve.pieces, curve.residual);
  }
  return rows.text();
}

std::string checks_text(const models::Profile& profile) {
  Table rows({{"network", Align::left},
              {"precision"},
              {"batch"},
              {"layers and update"},
              {"whole iteration (90 %)"},
              {"difference"}});
  for (const models::CalibrationCheck& check : profile.checks)
    rows.add({check.network, std::string(name(check.precision)),
              fmt::format("{}", check.batch_per_rank), to_text(check.sum.value),
              with_interval(check.iteration), fmt::format("{:+.2f} %", 100 * check.difference())});
  return rows.text();
}

}  // namespace

std::string device_calibration_text(const job::DeviceCalibration& calibration) {
  const models::Profile& profile = calibration.made.profile;
  std::string text = profile.origin + "\n";
  if (profile.device_costs && profile.device_costs->launch)
    text += fmt::format("\nfrom one kernel to the next: {}\n",
                        with_interval(*profile.device_costs->launch));
  if (profile.device_costs && profile.device_costs->host_launch)
    text += fmt::format("the host's time to start one: {}\n",
                        with_interval(*profile.device_costs->host_launch));
  text += "\n" + curves_text(profile);
  if (!profile.rates.empty()) text += "\n";
  for (const models::CalibratedRate& rate : profile.rates)
    text += fmt::format("{} {}: {}\n", name(rate.kind), name(rate.type), with_interval(rate.bytes));
  if (!profile.checks.empty())
    text += "\nthe figures of layers and update, added up, against whole iterations:\n" +
            checks_text(profile);
  if (!calibration.traffic.empty())
    text += fmt::format("layers were also timed beside traffic: {}\n", calibration.traffic);
  return text;
}

}  // namespace paceline::cli
