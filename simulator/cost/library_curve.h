// The time of a library's own collective, by a curve that was calibrated: by paceline calibrate
// under that library, or imported from nccl-tests or the OSU micro-benchmarks.
//
// A curve is used at its own ranks as it is. For other ranks its alpha is multiplied by the ratio
// of log2(p), and its beta by that of (p - 1) / p (1 for broadcast and reduce): both grow so in
// halving-doubling, the least that an all-reduce takes (Thakur 2005). A library may do worse, or
// change its algorithm, so the interval spans what alpha would be without any growth and with that of a ring, p - 1.
//
// Between the sizes that were measured, the pieces of the curve say the time. Beyond the smallest
// and the largest, the outermost piece goes on, and the interval widens: by the misfit of the fit
// for the measured sizes, and once more for every doubling of the distance to them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "models/base/precision.h"
#include "models/base/units.h"
#include "models/collective/catalogue.h"
#include "models/plan/plan.h"
#include "models/profile/profile.h"
#include "simulator/cost/communication_cost.h"

namespace paceline::simulator {

// A job that asks for the curve.
struct LibraryJob {
  int ranks = 1;
  bool between_nodes = true;  // they are on more than one node
  models::WireType wire = models::WireType::fp32;
  // Its messages pass uplinks, rails, a torus or slow nodes, or its ranks are placed out of order: a curve
  // does not say whether those that were measured did, too.
  bool has_own_routes = false;
  // The least time of a byte on these routes (nccl_routes.h), which bounds the curve; 0 is not known.
  SecondsPerByte least_on_routes = {};
  models::Collective collective = models::Collective::all_reduce;
};
[[nodiscard]] LibraryJob library_job(
    const models::Cluster& cluster, int ranks, models::WireType wire,
    models::Collective collective = models::Collective::all_reduce);

class LibraryCurve {
 public:
  // The curve of the profile that serves the library best, read at `bound`:
  // of those between nodes if the job is, else within a node, the one whose ranks are nearest by
  // ratio; of several, one of the wire type. A job within a node falls back to a curve between
  // nodes, except for NCCL, whose own model knows better. Curves of "mpi", as OSU's are, serve Open
  // MPI where there is none of "open-mpi". None if there is no such curve.
  [[nodiscard]] static std::optional<LibraryCurve> find(const models::Profile* profile,
                                                        models::Library library,
                                                        const LibraryJob& job, Bound bound);

  [[nodiscard]] Seconds time(Bytes bytes) const;
  // "its calibrated curve", and whatever of it is not the job's: " of 8 ranks, scaled to 64",
  // " of fp32", " of mpi", " between nodes", what it knows of routes where the job has its own; and ", extrapolated beyond 16 MiB" (or "below 4 B")
  // if buckets of `least` to `most` bytes are outside what was measured. At the end in brackets the
  // source of an imported curve.
  [[nodiscard]] std::string described(Bytes least, Bytes most) const;

 private:
  LibraryCurve(const models::CalibratedCurve& curve, models::Library library, const LibraryJob& job,
               Bound bound);

  models::CalibratedCurve curve_;
  models::Library library_;
  LibraryJob job_;
  Bound bound_;
  double alpha_factor_ = 1;  // to the job's ranks, at the bound
  double beta_factor_ = 1;
};

// Whether all-reduces between nodes or within one might be timed by a curve of the library.
[[nodiscard]] bool has_library_curve(const models::Profile* profile, models::Library library);

}  // namespace paceline::simulator
