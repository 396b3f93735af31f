// The part of `paceline reproduce` that trains.
#pragma once

#include <string>

#include "cli/command_line.h"

namespace paceline::cli {

// As typed.
struct ConvergenceOptions {
  std::string seeds = "3";
  std::string epochs = "2";
  std::string arms = "all";
  std::string results;
};

// Declares them on a command. `options` must outlive the parse.
void add_convergence_options(Command& command, ConvergenceOptions& options);
// Runs what is not yet in the results, and prints all.
void reproduce_convergence(const ConvergenceOptions& options, bool json);

}  // namespace paceline::cli
