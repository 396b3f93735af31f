// Stragglers: how the compute times of ranks differ, and whom an iteration waits for.
//
// In every iteration each rank computes longer than predicted by a factor of its own. The factor is
// the rank's slowness (1 except for slow ranks) times a draw from the spread, which has mean 1.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::models {

enum class SpreadKind {
  constant,    // always 1
  normal,      // mean 1, standard deviation `parameter`; a draw of 0 or less is repeated
  log_normal,  // exp(sigma Z - sigma^2 / 2) for a standard normal Z, sigma = `parameter`
  empirical,   // one of `samples`, each with the same probability
};

struct ComputeSpread {
  SpreadKind kind = SpreadKind::constant;
  double parameter = 0;
  std::vector<double> samples;    // their mean is 1
  std::string text = "constant";  // as the user wrote it
};

struct Stragglers {
  ComputeSpread spread;
  std::map<int, double> slow_ranks;  // by rank, the factor by which its compute takes longer
  // Backup workers (Chen et al. 2016): an all-reduce waits for the first p - backup of p ranks.
  int backup = 0;
};

// Parses "constant", "normal:0.05", "log-normal:0.1" or "file:PATH", which `read_file` reads. The
// parameter is at most 1 for a normal spread and at most 3 for a log-normal one. Throws InputError.
[[nodiscard]] ComputeSpread spread_from_text(
    std::string_view text, const std::function<std::string(const std::string&)>& read_file);

// Reads one number greater than 0 from each line, in any unit; # begins a comment. The numbers are
// divided by their mean, as predictions rest on mean times. Throws InputError with the line.
[[nodiscard]] std::vector<double> parse_spread_samples(std::string_view text,
                                                       const std::string& file);

}  // namespace paceline::models
