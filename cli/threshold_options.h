// The options that say how a strategy fuses gradients and which numbers its all-reduce takes:
// --theta, --eta, --group, --segments, --rings, --servers, --streams.
#pragma once

#include <string>

#include "cli/command_line.h"
#include "simulator/planner/thresholds.h"

namespace paceline::cli {

// As typed; empty is "not given".
struct ThresholdOptions {
  std::string theta;
  std::string eta;
  std::string group;
  std::string segments;
  std::string rings;
  std::string servers;
  std::string streams;
};

// What a command takes for those that are not given, for its help.
struct ThresholdDefaults {
  const char* theta;
  const char* eta;
  const char* group;
  const char* segments;
  const char* servers;
};

// Declares them on a command. `options` must outlive the parse.
void add_threshold_options(Command& command, ThresholdOptions& options,
                           const ThresholdDefaults& defaults);

// What is given. Throws InputError that names the option.
[[nodiscard]] simulator::ThresholdRequest parse_thresholds(const ThresholdOptions& options);

}  // namespace paceline::cli
