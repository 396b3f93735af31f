// Tests: tests/calibration/import_profile_test.cc.
#include "calibration/import/import_profile.h"

#include <fmt/core.h>

#include <cmath>
#include <limits>
#include <utility>

#include "calibration/fit/spread.h"
#include "models/base/error.h"

namespace paceline::calibration {
namespace {

std::string tool_of(const Imported& imported) {
  return imported.tool + (imported.version.empty() ? "" : " " + imported.version);
}

// The number that the file states, or else the user; 0 where neither does. Throws InputError if the user
// contradicts the file.
int told(const Count& count, int given, const std::string& option, const std::string& what,
         const std::string& file) {
  if (given > 0 && !count.allows(given))
    throw InputError(
        {option},
        fmt::format("{}, and {} {} {}", given, file, count.is_known() ? "says" : "allows",
                    count.is_known() ? fmt::format("{}", count.least)
                                     : fmt::format("{} to {} {}", count.least, count.most, what)),
        "leave it out");
  return count.is_known() ? count.least : given;
}

int ranks_of(const ImportedCurve& curve, const ImportContext& context) {
  const int ranks = told(curve.ranks, context.ranks, "--ranks", "ranks", context.file);
  if (ranks == 0)
    throw InputError({context.file},
                     fmt::format("it does not say on how many ranks the {} ran", name(curve.kind)),
                     "give --ranks");
  if (ranks == 1)
    throw InputError({context.file}, fmt::format("a run of {} over one rank", name(curve.kind)),
                     "give a run over two or more");
  return ranks;
}

bool is_between_nodes(const ImportedCurve& curve, int ranks, const ImportContext& context) {
  // A file lists hosts.
  Count listed = curve.nodes;
  for (int* number : {&listed.least, &listed.most})
    *number = (*number - 1) / context.hosts_per_node + 1;
  if (context.nodes == 1 && listed.least > 1)
    throw InputError(
        {"--intra"},
        fmt::format("one node, and {} lists {} hosts", context.file, curve.nodes.least),
        "leave it out; where NVLink joins hosts, give --cluster with its hosts_per_node");
  const int nodes = told(listed, context.nodes, "--nodes", "nodes", context.file);
  if (nodes == 0 && listed.least == 1)
    throw InputError({context.file}, "it does not say on how many nodes its ranks were",
                     "give --intra for one node, or --nodes N");
  if (nodes > ranks)
    throw InputError({"--nodes"},
                     fmt::format("{}, and {} has {} ranks", nodes, context.file, ranks),
                     "give the nodes that the ranks were on");
  return nodes != 1;
}

models::WireType wire_of(const ImportedCurve& curve, const ImportContext& context) {
  if (curve.wire && context.wire && *curve.wire != *context.wire)
    throw InputError({"--wire"},
                     fmt::format("{}, and {} says {}", models::name(*context.wire), context.file,
                                 models::name(*curve.wire)),
                     "leave it out");
  if (curve.wire) return *curve.wire;
  if (context.wire) return *context.wire;
  // A collective that adds nothing takes the same time for every type.
  if (!reduces(*models::collective_of(curve.kind))) return models::WireType::fp32;
  throw InputError(
      {context.file},
      fmt::format("it does not say of which type the elements of the {} are", name(curve.kind)),
      "give --wire fp32, fp16 or bf16");
}

void set_link(models::Profile& profile, bool between_nodes, const FittedCurve& fitted,
              const std::string& source, const std::string& file) {
  if (fitted.curve.use == CurveUse::time) {
    Figure<Seconds> latency = fitted.fit.pieces.front().alpha;
    latency.source = source;
    (between_nodes ? profile.nic_latency : profile.intra_latency) = latency;
    return;
  }
  const Figure<SecondsPerByte>& beta = fitted.fit.pieces.back().beta;
  if (beta.low <= SecondsPerByte{0})
    throw InputError({file}, "the time of a stream does not grow with its messages",
                     "give a run with larger ones");
  (between_nodes ? profile.nic_bandwidth : profile.intra_bandwidth) = Figure<BytesPerSecond>{
      1.0 / beta.value, 1.0 / beta.high, 1.0 / beta.low, Provenance::calibrated, source};
}

void add_curve(ImportedProfile& result, const Imported& imported, const ImportedCurve& curve,
               const ImportContext& context) {
  models::CalibratedCurve calibrated;
  calibrated.kind = curve.kind;
  calibrated.source = fmt::format("{} ({}, {})", context.file, tool_of(imported), curve.what);
  if (is_of_library(curve.kind)) {
    calibrated.ranks = ranks_of(curve, context);
    calibrated.wire = wire_of(curve, context);
    calibrated.library = context.library.empty() ? curve.library : context.library;
  }
  calibrated.between_nodes = is_between_nodes(curve, calibrated.ranks, context);
  FittedCurve fitted{curve, {}};
  fitted.curve.samples = curve.samples_of_buckets(calibrated.ranks);
  fitted.curve.has_sizes_of_parts = false;
  fitted.fit = fit_piecewise(fitted.curve.samples, {.source = calibrated.source});
  if (curve.kind == models::CurveKind::point_to_point)
    set_link(result.profile, calibrated.between_nodes, fitted, calibrated.source, context.file);
  calibrated.measured = {fitted.fit.sizes.front().bytes, fitted.fit.sizes.back().bytes};
  calibrated.pieces = fitted.fit.pieces;
  calibrated.residual = std::hypot(fitted.fit.residual, relative_spread(curve.samples));
  // The time that a message adds to a stream is not that of a message alone, and so such a curve is
  // no part of the profile.
  if (curve.use == CurveUse::time) result.profile.curves.push_back(std::move(calibrated));
  result.curves.push_back(std::move(fitted));
}

// The batch of a rank, which divides that of an update among them.
int batch_of(const ImportedThroughput& throughput, const ImportContext& context) {
  if (throughput.global_batch == 0) return context.batch_per_rank;
  const double batch = throughput.global_batch / context.ranks;
  if (batch != std::floor(batch) || batch > std::numeric_limits<int>::max())
    throw InputError({"--ranks"},
                     fmt::format("{}, among which a batch of {:.0f} cannot be shared evenly",
                                 context.ranks, throughput.global_batch),
                     "give the ranks of the run");
  if (context.is_batch_given && batch != context.batch_per_rank)
    throw InputError({"--batch"},
                     fmt::format("{}, and {} says {:.0f} of {} ranks", context.batch_per_rank,
                                 context.file, batch, context.ranks),
                     "leave it out");
  return static_cast<int>(batch);
}

// "resnet" of "resnet50", and of "resnet".
std::string_view family_of(std::string_view name) {
  return name.substr(0, name.find_first_of("0123456789-_"));
}

void add_throughput(models::Profile& profile, const Imported& imported,
                    const ImportedThroughput& throughput, const ImportContext& context) {
  if (context.network.empty())
    throw InputError(
        {context.file},
        "the throughput of " + in_quotes(throughput.benchmark) + ", and no network that it is of",
        "give --model, as in --model resnet50");
  if (context.is_of_catalogue && !throughput.benchmark.empty() &&
      family_of(throughput.benchmark) != family_of(context.network))
    throw InputError(
        {"--model"},
        fmt::format("{}, and {} is a run of {}", context.network, context.file,
                    in_quotes(throughput.benchmark)),
        "give the network that it trained, by a YAML file where the catalogue has none");
  if (context.ranks == 0)
    throw InputError({context.file}, "it does not say on how many ranks the run was",
                     "give --ranks");
  models::CalibratedThroughput entry{context.network, context.precision,
                                     batch_of(throughput, context), throughput.samples};
  entry.ranks = context.ranks;
  entry.samples.source =
      fmt::format("{} ({}, {})", context.file, tool_of(imported), throughput.samples.source);
  profile.throughputs.push_back(std::move(entry));
}

}  // namespace

ImportedProfile profile_of(const Imported& imported, const ImportContext& context) {
  ImportedProfile result;
  models::Profile& profile = result.profile;
  profile.name = context.name;
  profile.cluster = context.cluster;
  profile.device = context.device;
  profile.origin =
      fmt::format("paceline calibrate import {} ({})", context.file, tool_of(imported));
  for (const ImportedCurve& curve : imported.curves) add_curve(result, imported, curve, context);
  for (const ImportedLayer& layer : imported.layers) {
    models::CalibratedLayer entry{context.network, context.precision, context.batch_per_rank,
                                  layer.layer,     layer.forward,     layer.backward};
    for (Figure<Seconds>* figure : {&entry.forward, &entry.backward})
      figure->source = fmt::format("{} ({}, {})", context.file, tool_of(imported), figure->source);
    profile.layers.push_back(std::move(entry));
  }
  for (const ImportedThroughput& throughput : imported.throughputs)
    add_throughput(profile, imported, throughput, context);
  return result;
}

}  // namespace paceline::calibration
