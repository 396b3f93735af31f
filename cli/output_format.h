// --json, --csv and --markdown: in which form a command prints its table.
#pragma once

#include <functional>
#include <span>
#include <string>

#include "cli/command_line.h"
#include "cli/table.h"

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

// An answer in each of the forms. Only the one that is printed is made.
struct Answer {
  std::function<std::string()> json;      // one document, without a line feed at its end
  std::function<std::string()> csv;       // as csv_records() makes it from that document
  std::function<std::string()> markdown;  // the tables alone
  std::function<std::string()> text;      // for people
};
// Prints the answer in the form that was asked for.
void print_answer(const OutputFormat& format, const Answer& answer);

// Tables in Markdown, with a blank line between them.
[[nodiscard]] std::string to_markdown(std::span<const Table> tables);

}  // namespace paceline::cli
