// paceline manual: manual pages for man(1), made from the command's own options.
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/doctor/build_info.h"
#include "cli/job/files.h"
#include "cli/manual_page.h"
#include "cli/output.h"
#include "models/base/names.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string page;
  std::string folder;
};

void run(const Command& program, const Options& options) {
  const std::vector<ManualPage> pages = manual_pages(program, doctor::version());
  if (!options.folder.empty()) {
    if (!options.page.empty())
      throw InputError({"--folder"}, "it takes all pages", "leave out the page");
    if (!std::filesystem::is_directory(options.folder))
      throw InputError({"--folder"}, "there is no folder " + options.folder, "make it first");
    for (const ManualPage& page : pages)
      job::write_output_file((std::filesystem::path(options.folder) / (page.name + ".1")).string(),
                             page.text);
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
  const Command* const program = &app;
  command.on_run([options, program] { run(*program, *options); });
}

}  // namespace paceline::cli
