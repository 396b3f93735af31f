// Calibrated parameters of a cluster and its device, as Figures: what prediction takes in
// place of the catalogue's datasheet figures. A profile is data (JSON, "paceline.profile/1",
// docs/formats.md); reading one gives a value that is valid or throws.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "models/base/figure.h"
#include "models/base/units.h"
#include "models/plan/precision.h"

namespace paceline::models {

// Samples per second of one rank, computation alone, for a whole network.
struct CalibratedThroughput {
  std::string network;
  Precision precision = Precision::fp32;
  int batch_per_rank = 0;
  Figure<PerSecond> samples;
};

// Forward and backward time of one layer at a batch size.
struct CalibratedLayer {
  std::string network;
  Precision precision = Precision::fp32;
  int batch_per_rank = 0;
  std::string layer;
  Figure<Seconds> forward;
  Figure<Seconds> backward;
};

struct Profile {
  std::string name;
  std::string cluster;  // the cluster that it was calibrated on
  std::string device;
  std::string origin;  // command, host, date: how the profile was made
  std::optional<Figure<Seconds>> intra_latency;
  std::optional<Figure<BytesPerSecond>> intra_bandwidth;
  std::optional<Figure<Seconds>> nic_latency;
  std::optional<Figure<BytesPerSecond>> nic_bandwidth;
  std::vector<CalibratedThroughput> throughputs;
  std::vector<CalibratedLayer> layers;
};

// `file` names the text in errors. Throws InputError (file, and the JSON path of the fault).
[[nodiscard]] Profile parse_profile(std::string_view text, const std::string& file);
// Pretty-printed JSON that parse_profile reads back to an equal value.
[[nodiscard]] std::string to_json(const Profile& profile);

}  // namespace paceline::models
