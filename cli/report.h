// Reports: what a command prints as --json, as one HTML file with charts (--html).
#pragma once

#include <string>
#include <vector>

#include "cli/command_line.h"
#include "cli/page/page.h"

namespace paceline::cli {

// Declares --html.
void add_html_option(Command& command, std::string& path);

// Writes the report, or leaves the path as it was, and says on standard error where it is. `words` are
// those of the command that made it. Throws RunError.
void write_report(const std::string& path, const Words& words, const std::string& title,
                  std::vector<page::Document> documents);

}  // namespace paceline::cli
