// --json, --csv and --markdown: in which form a command prints its table.
#pragma once

#include "cli/command_line.h"

namespace paceline::cli {

// At most one of them is set once check_output_format() has returned. None: text for people.
struct OutputFormat {
  bool json = false;
  bool csv = false;
  bool markdown = false;
};

void add_json_option(Command& command, OutputFormat& format);
void add_csv_option(Command& command, OutputFormat& format);
void add_markdown_option(Command& command, OutputFormat& format);
// All three.
void add_output_formats(Command& command, OutputFormat& format);

// Throws InputError where more than one is given.
void check_output_format(const OutputFormat& format);

}  // namespace paceline::cli
