// A profile from what was imported: curves are fitted, layers are taken as they are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/fit/piecewise.h"
#include "calibration/import/imported.h"
#include "models/base/precision.h"
#include "models/profile/profile.h"

namespace paceline::calibration {

// What the user knows and the file does not say.
struct ImportContext {
  std::string file;  // named in every source
  std::string name;  // of the profile
  std::string cluster;
  std::string device;
  std::string network;  // whose layers were timed
  models::Precision precision = models::Precision::fp32;
  int batch_per_rank = 0;
  bool is_batch_given = false;                // by the user; else it is what is usual
  bool is_of_catalogue = false;               // the network, so that its name says what it is
  int ranks = 0;                              // 0: as the file says
  std::optional<models::WireType> wire = {};  // likewise
  std::string library = {};                   // likewise
  int nodes = 0;                              // likewise
  int hosts_per_node = 1;                     // of the cluster (models/cluster/cluster.h)
};

// A curve with its fit, for tables and plots.
struct FittedCurve {
  ImportedCurve curve;
  Fit fit;
};

struct ImportedProfile {
  models::Profile profile;
  std::vector<FittedCurve> curves;
};

// All-reduces and messages become curves. osu_latency also gives the latency of a link (the alpha of
// its first piece), and osu_bw its bandwidth (1 / beta of its last). The link is the NIC, or the
// intra link if the ranks were on one node. A throughput is of a job of the context's ranks, whose batch
// it shares evenly. A curve of several runs or of repeated sizes has what they differ by in its residual.
// Throws InputError if neither the file nor the context says on how many ranks and nodes a curve was
// measured or what an all-reduce added, if they contradict one another, or if a stream has no bandwidth
// (beta 0), or a throughput comes without a network or ranks.
[[nodiscard]] ImportedProfile profile_of(const Imported& imported, const ImportContext& context);

}  // namespace paceline::calibration
