// Tests: tests/cli/against_test.py (end to end).
#include "cli/job/measured_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>

#include "calibration/import/import_file.h"
#include "cli/job/files.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"

namespace paceline::job {
namespace {

using calibration::Imported;
using calibration::ImportedCurve;
using calibration::ImportFormat;
using models::WireType;

constexpr std::array of_all_reduces = {ImportFormat::nccl_tests, ImportFormat::osu,
                                       ImportFormat::imb, ImportFormat::torch_bench};

Imported imported_from(const std::string& file) {
  const std::string text = read_input_file(file);
  const ImportFormat format = calibration::guessed_format(text, file);
  if (std::ranges::find(of_all_reduces, format) == std::ranges::end(of_all_reduces))
    throw InputError(
        {file},
        fmt::format("this is a file of {}, which times no all-reduces by size", name(format)),
        "give the output of all_reduce_perf, osu_allreduce or another benchmark of all-reduces");
  return calibration::import_text(format, text, file, nullptr);
}

std::string kind_text(const ImportedCurve& curve) {
  std::string text(curve.wire ? name(*curve.wire)
                              : std::string_view("a type that it does not say"));
  if (curve.ranks.is_known()) text += fmt::format(" over {} ranks", curve.ranks.least);
  return text;
}

bool fits(const ImportedCurve& curve, std::optional<int> ranks, std::optional<WireType> type) {
  return (!ranks || curve.ranks.allows(*ranks)) && (!type || !curve.wire || *curve.wire == *type);
}

// The one kind of all-reduce that is meant.
ImportedCurve chosen_curve(const Imported& imported, const std::string& file,
                           std::optional<int> ranks, std::optional<WireType> type) {
  std::vector<ImportedCurve> all = imported.curves;
  std::erase_if(
      all, [](const ImportedCurve& curve) { return curve.kind != models::CurveKind::all_reduce; });
  if (all.empty())
    throw InputError({file}, "it times messages between two ranks, and no all-reduce",
                     "give the output of all_reduce_perf or of osu_allreduce");
  std::vector<ImportedCurve> fitting;
  std::set<std::string> kinds;
  for (const ImportedCurve& curve : all) {
    kinds.insert(kind_text(curve));
    if (fits(curve, ranks, type)) fitting.push_back(curve);
  }
  const std::string list = fmt::format("{}", fmt::join(kinds, ", "));
  if (fitting.empty()) {
    const bool is_type = std::none_of(all.begin(), all.end(), [&](const ImportedCurve& curve) {
      return fits(curve, std::nullopt, type);
    });
    throw InputError(
        {is_type ? "--dtype" : "--ranks"},
        fmt::format("{}, and the all-reduces in {} are of {}",
                    is_type ? std::string(name(*type)) : fmt::format("{}", *ranks), file, list),
        "leave it out");
  }
  for (const ImportedCurve& curve : fitting) {
    if (kind_text(curve) != kind_text(fitting.front()))
      throw InputError({file}, "all-reduces of " + list, "choose one with --dtype or --ranks");
  }
  ImportedCurve chosen = fitting.front();
  for (std::size_t i = 1; i < fitting.size(); ++i)
    chosen.samples.insert(chosen.samples.end(), fitting[i].samples.begin(),
                          fitting[i].samples.end());
  return chosen;
}

}  // namespace

MeasuredTimes read_measured_times(const std::string& file, std::optional<int> ranks,
                                  std::optional<WireType> type) {
  const Imported imported = imported_from(file);
  const ImportedCurve curve = chosen_curve(imported, file, ranks, type);
  if (!curve.ranks.is_known() && !ranks)
    throw InputError({file}, "it does not say on how many ranks the all-reduce ran",
                     "give --ranks");
  return {.file = file,
          .tool = imported.tool + (imported.version.empty() ? "" : " " + imported.version),
          .what = curve.what,
          .ranks = ranks.value_or(curve.ranks.least),
          .type = curve.wire ? *curve.wire : type.value_or(WireType::fp32),
          .nodes = curve.nodes,
          .times = calibration::spread_by_size(curve.samples),
          .remarks = imported.remarks};
}

void keep_sizes(MeasuredTimes& measured, Bytes least, Bytes most) {
  const auto [first, last] = std::pair{measured.times.front().bytes, measured.times.back().bytes};
  std::erase_if(measured.times, [&](const calibration::SizeSpread& time) {
    return time.bytes < least || time.bytes > most;
  });
  if (measured.times.empty())
    throw InputError(
        {"--size"},
        fmt::format("nothing from {} to {} was measured", to_text_binary(least),
                    to_text_binary(most)),
        fmt::format("{} has {} to {}", measured.file, to_text_binary(first), to_text_binary(last)));
}

}  // namespace paceline::job
