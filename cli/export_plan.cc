// Tests: tests/cli/export_plan_test.py (end to end).
#include "cli/export_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <vector>

#include "cli/job/files.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::cli {
namespace {

constexpr const char* msccl = "msccl";

void check_output(const job::PlanExportOptions& options, const std::string& output,
                  job::Replace replace) {
  job::check_paths({job::output_path("--output", output, job::FileKind::plan_export),
                    {"PLAN", options.plan, job::PathUse::input},
                    {"--model", options.model, job::PathUse::name_or_input},
                    {"--cluster", options.cluster, job::PathUse::name_or_input},
                    {"--profile", options.profile, job::PathUse::name_or_input}},
                   replace);
}

// Refuses a folder that is not there and cannot be made, or that cannot be written into.
void check_folder(const std::string& folder) {
  std::error_code error;
  if (folder.empty()) return;
  if (std::filesystem::exists(std::filesystem::symlink_status(folder, error)))
    return job::check_output_folder("--output", folder);
  const std::filesystem::path parent = std::filesystem::absolute(folder).parent_path();
  job::check_output_folder("--output", parent.string());
}

// One file for each run of sizes: several need a folder.
void export_msccl(const job::PlanExportOptions& options, const std::string& folder,
                  job::Replace replace) {
  check_folder(folder);
  const simulator::MscclPlan plan = job::export_msccl_plan(options);
  if (folder.empty()) {
    if (plan.files.size() > 1)
      throw InputError({"--output"},
                       fmt::format("{} files, for bucket sizes of their own", plan.files.size()),
                       "give a folder for them");
    print_text(plan.files.front().text);
  } else {
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    if (error || !std::filesystem::is_directory(folder))
      throw InputError({"--output"}, folder + " is no folder, and cannot be made",
                       "give a folder for the files of a plan");
    const auto path_of = [&](const simulator::NamedText& file) {
      return (std::filesystem::path(folder) / file.name).string();
    };
    std::vector<job::GivenPath> paths;
    for (const simulator::NamedText& file : plan.files)
      paths.push_back(job::output_path("--output", path_of(file), job::FileKind::plan_export));
    job::check_paths(paths, replace);
    for (const simulator::NamedText& file : plan.files)
      job::write_output_file(path_of(file), file.text);
  }
  warn(plan.notes);
}

}  // namespace

void export_plan(const job::PlanExportOptions& options, const std::string& format,
                 const std::string& output, job::Replace replace) {
  std::vector<std::string> names = job::plan_export_formats();
  names.emplace_back(msccl);
  if (format.empty())
    throw InputError("--format is missing", fmt::format("give {}", fmt::join(names, ", ")));
  if (format == msccl) return export_msccl(options, output, replace);
  if (std::find(names.begin(), names.end(), format) == names.end())
    throw unknown_name("format of plans", format, names).at({"--format"});
  check_output(options, output, replace);
  Progress progress(fmt::format("exporting the plan as {}", format));
  const simulator::ExportedText exported = job::export_plan(options, format);
  progress.end();
  if (output.empty())
    print_text(exported.text);
  else
    job::write_output_file(output, exported.text);
  warn(exported.notes);
}

}  // namespace paceline::cli
