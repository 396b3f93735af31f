// `paceline reproduce convergence`, which trains: the claims of the papers at our scale.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "cli/output_format.h"

namespace paceline::cli {

// The options as typed. An empty text is an option that is not given.
struct ConvergenceOptions {
  std::string seeds = "3";
  std::string epochs = "2";
  std::string arms = "all";
  std::string results;
};

// Declares them on a command. `options` must outlive the parse.
void add_convergence_options(Command& command, ConvergenceOptions& options);
// Makes the runs that --results does not hold yet, and prints what all of them say. Throws
// InputError and RunError.
void reproduce_convergence(const ConvergenceOptions& options, const OutputFormat& format);

}  // namespace paceline::cli
