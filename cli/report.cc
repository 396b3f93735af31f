// Tests: tests/cli/report_test.py.
#include "cli/report.h"

#include <utility>

#include "cli/doctor/build_info.h"
#include "cli/job/files.h"
#include "cli/output.h"

namespace paceline::cli {

void add_html_option(Command& command, std::string& path) {
  command
      .add_option("--html", path, "Write a report with charts as one HTML file that opens offline")
      .value("FILE")
      .in_group(output_group);
}

void write_report(const std::string& path, const Words& words, const std::string& title,
                  std::vector<page::Document> documents) {
  const page::Page page{.title = title,
                        .command = "paceline " + page::shell_line(words),
                        .version = std::string(doctor::version()),
                        .documents = std::move(documents)};
  job::write_output_file(path, page::html(page));
  notice("report written to {}: open it in a browser\n", path);
}

}  // namespace paceline::cli
