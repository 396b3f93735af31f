// A sweep: a prediction for every combination of the values of some lists. A YAML file names them
// (docs/formats.md, "Sweeps"); each combination is a cell, and each cell is a row of the result.
//
// Cells are numbered in one order for all who compute them: the axes stand in the order of
// sweep_axes(), and the last of them varies fastest.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/job/named_things.h"
#include "models/base/to_size.h"
#include "simulator/cost/link_factors.h"
#include "simulator/engine/engine_kind.h"
#include "simulator/question/question.h"

namespace paceline::job {

enum class SweepAxis {
  model,
  cluster,
  profile,
  bandwidth,
  latency,
  compute,
  precision,
  batch,
  accumulate,
  ranks,
  wire,
  overlap,
  strategy,
  theta,
  eta,
  group,
  segments,
  streams,
};
inline constexpr std::size_t sweep_axis_count = 18;
// From here on, cells share a predictor.
inline constexpr SweepAxis first_inner_axis = SweepAxis::strategy;

// As the file and the columns call it.
[[nodiscard]] std::string_view name(SweepAxis axis);

// A cluster with a profile of its own, as links and devices of some factors make them.
struct SweepPlace {
  models::Cluster cluster;
  std::optional<models::Profile> profile;
};

struct Sweep {
  std::string name;
  std::array<std::vector<std::string>, sweep_axis_count>
      axes;  // values as texts, at least one each
  simulator::EngineKind engine = simulator::EngineKind::automatic;

  std::vector<LoadedNetwork> networks;
  std::vector<SweepPlace>
      places;  // of each cluster, profile, bandwidth, latency and compute, in this order
  std::vector<int> ranks;

  // It stands for everything that rows depend on, and the program's version: 32 hexadecimal digits.
  std::string digest;

  [[nodiscard]] std::size_t size(SweepAxis axis) const { return axes[to_size(axis)].size(); }
  [[nodiscard]] std::int64_t cells() const;
  // Cells that share a predictor.
  [[nodiscard]] std::int64_t inner_cells() const;
};

inline constexpr std::int64_t most_sweep_cells = 1'000'000'000'000;

// The sweep in a text. Networks, clusters and profiles that are files are read. `version` is the
// program's, and goes into the digest. Throws InputError with file and line.
[[nodiscard]] Sweep parse_sweep(const std::string& text, const std::string& file,
                                std::string_view version);

// The place of a cell on each axis.
using SweepCell = std::array<std::size_t, sweep_axis_count>;
[[nodiscard]] SweepCell cell_at(const Sweep& sweep, std::int64_t number);

// What a cell asks of its network, its place and its ranks: the values of all axes that are fields of a
// question.
[[nodiscard]] simulator::Question question_at(const Sweep& sweep, const SweepCell& cell);

}  // namespace paceline::job
