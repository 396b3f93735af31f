// Tests: tests/cli/output_formats_test.py.
#include "cli/output_format.h"

#include "cli/output.h"
#include "models/base/error.h"

namespace paceline::cli {

void add_json_option(Command& command, OutputFormat& format) {
  command.add_flag("--json", format.json, "Print one JSON document");
}

void add_csv_option(Command& command, OutputFormat& format) {
  command.add_flag("--csv", format.csv, "Print comma-separated values");
}

void add_markdown_option(Command& command, OutputFormat& format) {
  command.add_flag("--markdown", format.markdown, "Print the table alone, in Markdown");
}

void add_output_formats(Command& command, OutputFormat& format) {
  add_json_option(command, format);
  add_csv_option(command, format);
  add_markdown_option(command, format);
}

void check_output_format(const OutputFormat& format) {
  const auto check = [](const char* option, bool is_given, const char* other, bool is_other) {
    if (is_given && is_other)
      throw InputError({option}, std::string(other) + " is given, too", "choose one");
  };
  check("--csv", format.csv, "--json", format.json);
  check("--markdown", format.markdown, "--json", format.json);
  check("--markdown", format.markdown, "--csv", format.csv);
}

void print_answer(const OutputFormat& format, const Answer& answer) {
  if (format.json)
    print("{}\n", answer.json());
  else if (format.csv)
    print("{}", answer.csv());
  else if (format.markdown)
    print("{}", answer.markdown());
  else
    print("{}", answer.text());
}

std::string to_markdown(std::span<const Table> tables) {
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + table.markdown();
  return text;
}

}  // namespace paceline::cli
