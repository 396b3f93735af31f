// --json, --csv and --markdown: in which form a command prints its table; --json-out, --csv-out and
// --markdown-out: files that it writes beside what it prints.
#pragma once

#include <fmt/core.h>

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/command_line.h"
#include "cli/job/files.h"
#include "cli/output.h"
#include "cli/table.h"
#include "models/base/json.h"

namespace paceline::cli {

// The forms that the user asks for.
struct OutputFormat {
  // At most one of them is set once check_output_format() has returned. None: text for people.
  bool json = false;
  bool csv = false;
  bool markdown = false;
  // Paths of files with what --json, --csv and --markdown would print. Empty: none is written.
  std::string json_out = {};
  std::string csv_out = {};
  std::string markdown_out = {};
  // --force: files that paceline did not write are replaced, too, by whatever the command writes.
  bool force = false;
};

// All three forms, printed and in files, and --force.
void add_output_formats(Command& command, OutputFormat& format);

// Declares --force, of a command that writes files but has not these forms.
void add_force_option(Command& command, bool& force);

// Throws InputError where more than one form is to be printed. Refuses, before any work, a file that
// cannot be written or replaced or that is also one of `others`, the paths of the command's other options; and so
// for those of them that are outputs (job::check_paths).
void check_output_format(const OutputFormat& format, std::vector<job::GivenPath> others = {});

// Throws InputError where any form is asked for, printed or in a file: `why` says what is printed in its
// place.
void refuse_output_format(const OutputFormat& format, std::string_view why);

// Which elements of a document are the records of its comma-separated values (csv_records()).
struct CsvRecords {
  std::vector<std::string_view> path = {};
  std::vector<std::string_view> keys = {};
};

// An answer, of which only those forms are made that are asked for.
struct Answer {
  std::function<Json()> document;
  CsvRecords records = {};                     // of the document
  std::function<std::string()> csv = {};       // in place of these
  std::function<std::string()> markdown;       // the tables alone
  std::function<std::string(int width)> text;  // for people, by for_people()
  bool wide = false;
};
// Writes the files that were asked for, each as a whole, and then prints the answer in the form that
// was asked for. Throws RunError, and InputError where another table would be replaced.
void print_answer(const OutputFormat& format, const Answer& answer);

// Returns text_of(width), where the width is table_width(), or unlimited_width with `wide`. On a terminal,
// lines that are wider all the same are broken (wrapped()).
[[nodiscard]] std::string for_people(bool wide,
                                     const std::function<std::string(int width)>& text_of);

// Prints whole lines for people. On a terminal, lines that are wider are broken.
template <class... T>
void print_lines(fmt::format_string<T...> format, T&&... values) {
  const std::string text = fmt::format(format, std::forward<T>(values)...);
  print_text(for_people(false, [&](int) { return text; }));
}

// Tables in Markdown, with a blank line between them.
[[nodiscard]] std::string to_markdown(std::span<const Table> tables);

}  // namespace paceline::cli
