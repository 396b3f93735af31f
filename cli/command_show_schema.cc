// paceline show schema: the JSON schemas of the documents that commands write.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/schemas.h"
#include "cli/table.h"
#include "models/base/names.h"

namespace paceline::cli {
namespace {

constexpr std::string_view prefix = "paceline.";

struct Options {
  std::string name;
  std::string folder;
  bool force = false;
};

// Writes all of them: "prediction-1.json".
void write_all(const std::vector<Schema>& all, const Options& options) {
  job::check_output_folder("--folder", options.folder);
  const auto path_of = [&](const Schema& schema) {
    std::string file = schema.name.substr(prefix.size()) + ".json";
    std::ranges::replace(file, '/', '-');
    return (std::filesystem::path(options.folder) / file).string();
  };
  std::vector<job::GivenPath> paths;
  for (const Schema& schema : all)
    paths.push_back(job::output_path("--folder", path_of(schema), job::FileKind::document));
  job::check_paths(paths, job::replaces(options.force));
  for (const Schema& schema : all)
    job::write_output_file(path_of(schema), schema.json().indented() + "\n");
}

void run(const Options& options) {
  const std::vector<Schema> all = schemas();
  if (!options.folder.empty()) {
    if (!options.name.empty())
      throw InputError({"--folder"}, "it takes all schemas", "leave out the name");
    return write_all(all, options);
  }
  if (options.name.empty()) {
    Table table(
        {{"document", Align::left}, {.title = "written by", .align = Align::left, .wraps = true}});
    for (const Schema& schema : all)
      table.add({schema.name.substr(prefix.size()), schema.description});
    print_text(table.fitted(table_width()).text);
    return;
  }
  std::vector<std::string> known;
  for (const Schema& schema : all) {
    known.push_back(schema.name.substr(prefix.size()));
    if (options.name != known.back() && options.name != schema.name) continue;
    print("{}\n", schema.json().indented());
    return;
  }
  throw unknown_name("document", options.name, known);
}

}  // namespace

void add_show_schema(Command& show_command) {
  Command& command = show_command.add_command(
      "schema", "The JSON schemas of the documents that commands write, or one of them");
  command.example("paceline show schema prediction/1");
  const auto options = std::make_shared<Options>();
  command
      .add_option("name", options->name,
                  "A document, such as prediction/1; without it, all are listed")
      .value("NAME");
  command.add_option("--folder", options->folder, "Write all of them into this folder")
      .value("FOLDER");
  add_force_option(command, options->force);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
