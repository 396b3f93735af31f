// paceline manual: manual pages for man(1), made from the command's own options.
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/doctor/build_info.h"
#include "cli/job/files.h"
#include "cli/manual_page.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "models/base/names.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string page;
  std::string folder;
  bool force = false;
};

void run(const Command& program, const Options& options) {
  const std::vector<ManualPage> pages = manual_pages(program, doctor::version());
  if (!options.folder.empty()) {
    if (!options.page.empty())
      throw InputError({"--folder"}, "it takes all pages", "leave out the page");
    job::check_output_folder("--folder", options.folder);
    const auto path_of = [&](const ManualPage& page) {
      return (std::filesystem::path(options.folder) / (page.name + ".1")).string();
    };
    std::vector<job::GivenPath> paths;
    for (const ManualPage& page : pages)
      paths.push_back(job::output_path("--folder", path_of(page), job::FileKind::manual_page));
    job::check_paths(paths, job::replaces(options.force));
    for (const ManualPage& page : pages) job::write_output_file(path_of(page), page.text);
    return;
  }
  const std::string wanted = options.page.empty() ? program.name() : options.page;
  std::vector<std::string> names;
  for (const ManualPage& page : pages) {
    names.push_back(page.name);
    if (page.name != wanted) continue;
    print("{}", page.text);
    return;
  }
  throw unknown_name("page", wanted, names);
}

}  // namespace

void add_manual(Command& app) {
  Command& command =
      app.add_command("manual", "Print a manual page: paceline manual paceline-predict | man -l -");
  const auto options = std::make_shared<Options>();
  command.add_option("page", options->page, "The page; by default that of paceline itself");
  command.add_option("--folder", options->folder, "Write all pages into this folder")
      .value("FOLDER");
  add_force_option(command, options->force);
  const Command* const program = &app;
  command.on_run([options, program] { run(*program, *options); });
}

}  // namespace paceline::cli
