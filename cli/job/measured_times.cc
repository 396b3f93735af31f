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
#include "models/cluster/placement.h"

namespace paceline::job {
namespace {

using calibration::Imported;
using calibration::ImportedCurve;
using calibration::ImportFormat;
using models::WireType;

constexpr std::array of_collectives = {ImportFormat::nccl_tests, ImportFormat::osu,
                                       ImportFormat::imb, ImportFormat::torch_bench,
                                       ImportFormat::deepspeed};

Imported imported_from(const std::string& file, std::optional<models::Collective> collective) {
  const std::string text = read_input_file(file);
  const ImportFormat format = calibration::guessed_format(text, file);
  if (std::ranges::find(of_collectives, format) == std::ranges::end(of_collectives))
    throw InputError(
        {file},
        fmt::format("this is a file of {}, which times no collectives by size", name(format)),
        "give the output of all_reduce_perf, osu_allreduce or another benchmark of collectives");
  return calibration::import_text(format, text, file, nullptr, collective);
}

std::string kind_text(const ImportedCurve& curve) {
  std::string text =
      fmt::format("{}s of {}", name(curve.kind),
                  curve.wire ? name(*curve.wire) : std::string_view("a type that it does not say"));
  if (curve.ranks.is_known()) text += fmt::format(" over {} ranks", curve.ranks.least);
  return text;
}

struct Asked {
  std::optional<int> ranks;
  std::optional<WireType> type;
  std::optional<models::Collective> collective;
};

bool fits(const ImportedCurve& curve, const Asked& asked) {
  const auto& [ranks, type, collective] = asked;
  return (!collective || models::curve_kind(*collective) == curve.kind) &&
         (!ranks || curve.ranks.allows(*ranks)) && (!type || !curve.wire || *curve.wire == *type);
}

// The one kind of collective that is meant.
ImportedCurve chosen_curve(const Imported& imported, const std::string& file, const Asked& asked) {
  std::vector<ImportedCurve> all = imported.curves;
  std::erase_if(all, [](const ImportedCurve& curve) { return !is_of_library(curve.kind); });
  if (all.empty())
    throw InputError({file}, "it times messages between two ranks, and no collective",
                     "give the output of all_reduce_perf or of osu_allreduce");
  std::vector<ImportedCurve> fitting;
  std::set<std::string> kinds;
  for (const ImportedCurve& curve : all) {
    kinds.insert(kind_text(curve));
    if (fits(curve, asked)) fitting.push_back(curve);
  }
  const std::string list = fmt::format("{}", fmt::join(kinds, ", "));
  if (fitting.empty()) {
    const auto none_fits = [&](const Asked& one) {
      return std::ranges::none_of(all,
                                  [&](const ImportedCurve& curve) { return fits(curve, one); });
    };
    const bool is_collective = none_fits({{}, {}, asked.collective});
    const bool is_type = !is_collective && none_fits({{}, asked.type, {}});
    throw InputError({is_collective ? "--collective"
                      : is_type     ? "--dtype"
                                    : "--ranks"},
                     fmt::format("{}, and {} has {}",
                                 is_collective ? std::string(name(*asked.collective))
                                 : is_type     ? std::string(name(*asked.type))
                                               : fmt::format("{}", *asked.ranks),
                                 file, list),
                     "leave it out");
  }
  for (const ImportedCurve& curve : fitting) {
    if (kind_text(curve) != kind_text(fitting.front()))
      throw InputError({file}, "it has " + list,
                       "choose one with --collective, --dtype or --ranks");
  }
  ImportedCurve chosen = fitting.front();
  for (std::size_t i = 1; i < fitting.size(); ++i)
    chosen.samples.insert(chosen.samples.end(), fitting[i].samples.begin(),
                          fitting[i].samples.end());
  return chosen;
}

}  // namespace

MeasuredTimes read_measured_times(const std::string& file, std::optional<int> ranks,
                                  std::optional<WireType> type,
                                  std::optional<models::Collective> collective) {
  const Imported imported = imported_from(file, collective);
  const ImportedCurve curve = chosen_curve(imported, file, {ranks, type, collective});
  if (!curve.ranks.is_known() && !ranks)
    throw InputError({file},
                     fmt::format("it does not say on how many ranks the {} ran", name(curve.kind)),
                     "give --ranks");
  return {.file = file,
          .tool = imported.tool + (imported.version.empty() ? "" : " " + imported.version),
          .what = curve.what,
          .collective = *models::collective_of(curve.kind),
          .ranks = ranks.value_or(curve.ranks.least),
          .type = curve.wire ? *curve.wire : type.value_or(WireType::fp32),
          .nodes = curve.nodes,
          .times = calibration::spread_by_size(
              curve.samples_of_buckets(ranks.value_or(curve.ranks.least))),
          .remarks = imported.remarks};
}

void check_measured_nodes(const models::Cluster& cluster, int ranks,
                          const calibration::Count& measured, const std::string& file) {
  // A file lists hosts, of which a node may have several.
  const int predicted = models::used_hosts(cluster, ranks);
  if (cluster.platform != nullptr || measured.allows(predicted)) return;
  throw InputError(
      {"--cluster"},
      fmt::format("{} ranks of {} are on {} host{}, and those of {} on {}", ranks, cluster.name,
                  predicted, predicted == 1 ? "" : "s", file, measured.least),
      "give the cluster that was measured");
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
