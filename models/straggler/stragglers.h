// Stragglers: how the compute times of ranks differ, and whom an iteration waits for.
//
// In every iteration each rank computes longer than predicted by a factor of its own: that of its
// slowness (1 but for slow ranks), times one drawn from the spread, which has mean 1.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace paceline::models {

enum class SpreadKind {
  constant,    // always 1
  normal,      // mean 1, standard deviation `parameter`; draws up to 0 are drawn anew
  log_normal,  // exp(sigma Z - sigma^2 / 2), sigma = `parameter`
  empirical,   // one of `samples`, each as likely
};

struct ComputeSpread {
  SpreadKind kind = SpreadKind::constant;
  double parameter = 0;
  std::vector<double> samples;    // of mean 1
  std::string text = "constant";  // as the user wrote it
};

struct Stragglers {
  ComputeSpread spread;
  std::map<int, double> slow_ranks;  // rank to the factor that its compute takes longer
  // Backup workers (Chen et al. 2016): of p ranks an all-reduce waits for the first p - backup.
  int backup = 0;
};

// Of "constant", "normal:0.05", "log-normal:0.1" or "file:PATH", which `read_file` reads. A normal
// spread is at most 1 wide, a log-normal one at most 3. Throws InputError.
[[nodiscard]] ComputeSpread spread_from_text(
    std::string_view text, const std::function<std::string(const std::string&)>& read_file);

// One number greater than 0 a line, in any unit; # begins a comment. They are divided by
// their mean, for the times that predictions rest on are means. Throws InputError with the line.
[[nodiscard]] std::vector<double> parse_spread_samples(std::string_view text,
                                                       const std::string& file);

}  // namespace paceline::models
