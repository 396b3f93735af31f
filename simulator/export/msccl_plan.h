// The schedules of a plan as algorithm files of MSCCL, all of them at once: one file for each run of
// bucket sizes with one schedule, which its minBytes and maxBytes choose (docs/formats.md).
#pragma once

#include <string>
#include <vector>

#include "models/plan/plan.h"

namespace paceline::simulator {

struct NamedText {
  std::string name;  // of the file, without its folder
  std::string text;
};

struct MscclPlan {
  std::vector<NamedText> files;    // in the order of sizes
  std::vector<std::string> notes;  // what these files cannot say, a line each
};

// Throws InputError if no schedule of the plan has a file.
[[nodiscard]] MscclPlan msccl_plan(const std::string& title, const models::Plan& plan);

}  // namespace paceline::simulator
