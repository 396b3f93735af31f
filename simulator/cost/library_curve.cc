// Tests: tests/simulator/library_curve_test.cc.
#include "simulator/cost/library_curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>

#include "models/base/interval.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"
#include "models/cluster/placement.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::simulator {
namespace {

using models::CalibratedCurve;

// Names under which curves of a library are found, the best first.
std::span<const std::string_view> names_of(models::Library library) {
  static constexpr std::array<std::string_view, 1> nccl = {"nccl"};
  static constexpr std::array<std::string_view, 3> open_mpi = {"open-mpi", "openmpi", "mpi"};
  return library == models::Library::nccl ? std::span<const std::string_view>(nccl) : open_mpi;
}

// The place of the curve's library in that list, or its length if it is not there.
std::size_t rank_of_name(const CalibratedCurve& curve, models::Library library) {
  const auto names = names_of(library);
  return to_size(std::ranges::find(names, curve.library) - names.begin());
}

// Whether the curve is one of the library's for this collective, between two ranks at least.
bool is_of(const CalibratedCurve& curve, models::Library library, models::Collective collective) {
  return curve.kind == models::curve_kind(collective) && curve.ranks > 1 &&
         rank_of_name(curve, library) < names_of(library).size();
}

double log2_of(int ranks) {
  return std::log2(static_cast<double>(std::max(2, ranks)));
}

// Factors from one number of ranks to another.
struct Growth {
  double stated;
  double least;
  double most;

  [[nodiscard]] double at(Bound bound) const {
    return bound == Bound::stated ? stated : bound == Bound::fast ? least : most;
  }
};

Growth alpha_growth(int from, int to) {
  const double ring = (to - 1.0) / (from - 1.0);
  return {log2_of(to) / log2_of(from), std::min(1.0, ring), std::max(1.0, ring)};
}

Growth beta_growth(models::Collective collective, int from, int to) {
  const double factor = bus_factor(collective, to) / bus_factor(collective, from);
  return {factor, std::min(1.0, factor), std::max(1.0, factor)};
}

// Doublings from the nearest size that was measured to this one; 0 among them, and where the
// profile does not say what was measured.
double doublings_outside(const CalibratedCurve& curve, Bytes bytes) {
  if (!curve.measured) return 0;
  const Bytes nearest = std::clamp(bytes, curve.measured->least, curve.measured->most);
  const auto log2 = [](Bytes b) { return std::log2(std::max(1.0, b.value())); };
  return std::abs(log2(bytes) - log2(nearest));
}

}  // namespace

bool has_library_curve(const models::Profile* profile, models::Library library) {
  return profile != nullptr && std::ranges::any_of(profile->curves, [&](const auto& curve) {
           return is_of(curve, library, models::Collective::all_reduce);
         });
}

std::optional<LibraryCurve> LibraryCurve::find(const models::Profile* profile,
                                               models::Library library, const LibraryJob& job,
                                               Bound bound) {
  if (profile == nullptr) return std::nullopt;
  const auto best = [&](bool between_nodes) {
    // Less is better.
    const auto distance = [&](const CalibratedCurve& curve) {
      return std::tuple(rank_of_name(curve, library),
                        std::abs(std::log(static_cast<double>(curve.ranks) / job.ranks)),
                        curve.wire != job.wire);
    };
    const CalibratedCurve* found = nullptr;
    for (const CalibratedCurve& curve : profile->curves) {
      const bool serves =
          curve.between_nodes == between_nodes && is_of(curve, library, job.collective);
      if (serves && (found == nullptr || distance(curve) < distance(*found))) found = &curve;
    }
    return found;
  };
  const CalibratedCurve* curve = best(job.between_nodes);
  if (curve == nullptr && !job.between_nodes && library != models::Library::nccl)
    curve = best(true);
  if (curve == nullptr) return std::nullopt;
  return LibraryCurve(*curve, library, job, bound);
}

LibraryCurve::LibraryCurve(const CalibratedCurve& curve, models::Library library,
                           const LibraryJob& job, Bound bound)
    : curve_(curve),
      library_(library),
      job_(job),
      bound_(bound),
      alpha_factor_(alpha_growth(curve.ranks, std::max(2, job.ranks)).at(bound)),
      beta_factor_(beta_growth(job.collective, curve.ranks, std::max(2, job.ranks)).at(bound)) {}

Seconds LibraryCurve::time(Bytes bytes) const {
  if (job_.ranks == 1) return Seconds{0};
  const models::CurvePiece& piece = curve_.piece(bytes);
  const Seconds alpha = alpha_factor_ * cost_at(piece.alpha, bound_);
  const Seconds time = std::max(alpha + beta_factor_ * (bytes * cost_at(piece.beta, bound_)),
                                std::max(Seconds{0}, alpha) + bytes * job_.least_on_routes);
  if (bound_ == Bound::stated) return time;
  const double misfit = normal_reach * curve_.misfit() * (1 + doublings_outside(curve_, bytes));
  return bound_ == Bound::slow ? time * (1 + misfit) : time / (1 + misfit);
}

LibraryJob library_job(const models::Cluster& cluster, int ranks, models::WireType wire,
                       models::Collective collective) {
  const bool between_nodes = models::used_nodes(cluster, ranks) > 1;
  const bool is_plain = cluster.fabric.kind == models::FabricKind::flat &&
                        cluster.placement == models::Placement::node_major &&
                        cluster.slots.empty() && cluster.slow_nodes.empty();
  return {.ranks = ranks,
          .between_nodes = between_nodes,
          .wire = wire,
          .has_own_routes = between_nodes && !is_plain,
          .collective = collective};
}

std::string LibraryCurve::described(Bytes least, Bytes most) const {
  std::string text = "its calibrated curve";
  if (curve_.ranks != job_.ranks && job_.ranks > 1)
    text += fmt::format(" of {} ranks, scaled to {}", curve_.ranks, job_.ranks);
  if (curve_.library != name(library_)) text += fmt::format(" of {}", curve_.library);
  if (curve_.wire != job_.wire) text += fmt::format(" of {}", name(curve_.wire));
  if (curve_.between_nodes != job_.between_nodes) text += " between nodes";
  if (job_.has_own_routes)
    text += job_.least_on_routes > SecondsPerByte{0}
                ? ", and no less than its routes need here"
                : ", which knows neither this fabric nor this placement";
  if (curve_.measured && most > curve_.measured->most)
    text += fmt::format(", extrapolated beyond {}", to_text_binary(curve_.measured->most));
  if (curve_.measured && least < curve_.measured->least)
    text += fmt::format(", extrapolated below {}", to_text_binary(curve_.measured->least));
  if (curve_.library != "open-mpi") text += fmt::format(" ({})", curve_.source);
  return text;
}

}  // namespace paceline::simulator
