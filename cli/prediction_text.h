// Predictions as people read them (tables with notes) and as JSON ("paceline.prediction/1").
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "cli/job.h"

namespace paceline::cli {

// All rows of one network at one number of ranks.
struct PredictionTable {
  const Job& job;
  const LoadedNetwork& network;
  int ranks = 1;
  std::vector<simulator::StrategyPrediction> rows;
  // What cannot be timed on so many ranks, of several strategies.
  struct LeftOut {
    std::string name;
    models::WireType wire;
    std::string why;
  };
  std::vector<LeftOut> left_out = {};

  // Index of the row with the shortest iteration; rows that a library's own model timed come last.
  [[nodiscard]] std::size_t best() const;
};

// Predicts every strategy at every wire type of the job, and warns of those that it leaves out.
// Throws InputError.
[[nodiscard]] PredictionTable predict_table(const Job& job, const LoadedNetwork& network,
                                            int ranks);

[[nodiscard]] std::string to_text(const PredictionTable& table);
[[nodiscard]] nlohmann::ordered_json to_json(const PredictionTable& table);
[[nodiscard]] nlohmann::ordered_json to_json(const simulator::StrategyPrediction& row);
[[nodiscard]] nlohmann::ordered_json left_out_json(const PredictionTable& table);

// One line on the rows that a library's own model timed; empty where there are none.
[[nodiscard]] std::string library_note(const PredictionTable& table);

// What the figures of the job's cluster and profile rest on: one line each, by provenance.
[[nodiscard]] std::string basis_text(const Job& job);

// "flat", "8 x 8 torus", "platform NAME".
[[nodiscard]] std::string fabric_text(const models::Cluster& cluster);
// "99.2 %"
[[nodiscard]] std::string percent(double share);

}  // namespace paceline::cli
