// A plan document in the form of another runtime (simulator/export), from the options of `paceline
// export PLAN`.
#pragma once

#include <string>
#include <vector>

#include "simulator/export/msccl_plan.h"
#include "simulator/export/nccl_plan.h"

namespace paceline::job {

// As typed; an empty text is an option that is not given.
struct PlanExportOptions {
  std::string plan;   // the path of the document
  std::string model;  // by default the network that the plan names
  std::string cluster;
  std::string profile;
  std::string nccl;       // version of its tables
  std::string measured;   // all-reduces by NCCL
  std::string batch;      // by default the plan's, or 64
  std::string precision;  // by default the plan's, or mixed
};

// The names of what a plan can be exported as, in one text ("nccl-tuner").
[[nodiscard]] std::vector<std::string> plan_export_formats();

// The plan as that format, which is one of these. What the plan says of the job that it was made for
// takes the place of options that are not given. A note says where the cluster is another one than
// the plan's, and which batch was taken where neither says it. Throws InputError that names an option
// or the plan's file: a plan that is none, that is not for the network, or for more ranks than the
// cluster has; an option that the format has no use for.
[[nodiscard]] simulator::ExportedText export_plan(const PlanExportOptions& options,
                                                  const std::string& format);
// The files of format msccl, which takes the options `plan` and `model` alone.
[[nodiscard]] simulator::MscclPlan export_msccl_plan(const PlanExportOptions& options);

}  // namespace paceline::job
