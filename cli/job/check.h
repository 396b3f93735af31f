// The question of `paceline check`: files that were measured, and the job and the cluster that they belong to.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "calibration/check/check.h"
#include "cli/job/cluster_calibration.h"
#include "cli/job/job.h"

namespace paceline::job {

struct CheckOptions {
  simulator::Question question;    // the job; without iterations to check, its cluster alone
  std::vector<std::string> files;  // of any of the tools that are known (calibration/import)
  std::string collective;          // of tables that do not say it
  std::string fail_slower;         // a share, or "interval"
  std::string time = "10 s";       // of what is measured here
  std::optional<models::Profile> here = {};  // what was measured here

  CheckOptions() { question.nccl_version.clear(); }
};

// The answer, and what the readers of files left out.
struct CheckAnswer {
  calibration::Check check;
  std::string job;  // in words; empty without one
  std::vector<std::string> remarks;
};

// The measurements to make here where there are no files: as `paceline calibrate` does, with the layers of the model
// where CPUs compute it. Throws InputError that names the option.
[[nodiscard]] CalibrationRequest check_here(const CheckOptions& options);

// Throws InputError that names the option or the file.
[[nodiscard]] CheckAnswer check(const CheckOptions& options, const GivenValues& given = {});

}  // namespace paceline::job
