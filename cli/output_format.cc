// Tests: tests/cli/output_formats_test.py, tests/cli/output_files_test.py.
#include "cli/output_format.h"

#include <array>

#include "cli/output.h"
#include "models/base/error.h"
#include "models/base/json_records.h"

namespace paceline::cli {
namespace {

// A form that an answer can have.
struct Form {
  const char* printed;  // the option that prints it
  const char* written;  // the option that writes it to a file
  const char* name;     // for messages
  const char* printed_help;
  const char* written_help;
  bool OutputFormat::*is_printed;
  std::string OutputFormat::*path;
  std::string (*made)(const Answer& answer);
  job::FileKind kind;
};

constexpr std::array<Form, 3> forms = {
    Form{.printed = "--json",
         .written = "--json-out",
         .name = "JSON",
         .printed_help = "Print one JSON document",
         .written_help = "Also write what --json prints to a file",
         .is_printed = &OutputFormat::json,
         .path = &OutputFormat::json_out,
         .made = [](const Answer& answer) { return answer.document().indented() + "\n"; },
         .kind = job::FileKind::document},
    Form{.printed = "--csv",
         .written = "--csv-out",
         .name = "CSV",
         .printed_help = "Print comma-separated values",
         .written_help = "Also write what --csv prints to a file",
         .is_printed = &OutputFormat::csv,
         .path = &OutputFormat::csv_out,
         .made =
             [](const Answer& answer) {
               return answer.csv ? answer.csv()
                                 : csv_records(answer.document(), answer.records.path,
                                               answer.records.keys);
             },
         .kind = job::FileKind::csv},
    Form{.printed = "--markdown",
         .written = "--markdown-out",
         .name = "Markdown",
         .printed_help = "Print the table alone, in Markdown",
         .written_help = "Also write what --markdown prints to a file",
         .is_printed = &OutputFormat::markdown,
         .path = &OutputFormat::markdown_out,
         .made = [](const Answer& answer) { return answer.markdown(); },
         .kind = job::FileKind::markdown},
};

}  // namespace

void add_output_formats(Command& command, OutputFormat& format) {
  for (const Form& form : forms)
    command.add_flag(form.printed, format.*form.is_printed, form.printed_help)
        .in_group(output_group)
        .expert(form.kind == job::FileKind::markdown);
  for (const Form& form : forms)
    command.add_option(form.written, format.*form.path, form.written_help)
        .value("FILE")
        .in_group(output_group)
        .expert();
  add_force_option(command, format.force);
}

void add_force_option(Command& command, bool& force) {
  command.add_flag("--force", force, "Also replace files that paceline did not write")
      .in_group(output_group)
      .expert();
}

void check_output_format(const OutputFormat& format, std::vector<job::GivenPath> others) {
  for (std::size_t i = 0; i < forms.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      if (format.*forms[i].is_printed && format.*forms[k].is_printed)
        throw InputError({forms[i].printed}, std::string(forms[k].printed) + " is given, too",
                         "choose one");
    }
  }
  for (const Form& form : forms)
    others.push_back(job::output_path(form.written, format.*form.path, form.kind));
  job::check_paths(others, job::replaces(format.force));
}

void refuse_output_format(const OutputFormat& format, std::string_view why) {
  for (const Form& form : forms) {
    const bool is_printed = format.*form.is_printed;
    if (is_printed || !(format.*form.path).empty())
      throw InputError({is_printed ? form.printed : form.written}, std::string(why),
                       "leave it out");
  }
}

void print_answer(const OutputFormat& format, const Answer& answer) {
  for (const Form& form : forms) {
    const std::string& path = format.*form.path;
    if (path.empty()) continue;
    const std::string text = printable(form.made(answer));
    if (form.kind != job::FileKind::document)
      job::check_replaced_table(form.written, path, text, job::replaces(format.force));
    job::write_output_file(path, text);
    notice("{} written to {}\n", form.name, path);
  }
  for (const Form& form : forms) {
    if (format.*form.is_printed) return print_text(form.made(answer));
  }
  print_text(for_people(answer.wide, answer.text));
}

std::string for_people(bool wide, const std::function<std::string(int width)>& text_of) {
  const int width = wide ? unlimited_width : table_width();
  return wrapped(text_of(width), output_is_terminal() ? width : unlimited_width);
}

std::string to_markdown(std::span<const Table> tables) {
  std::string text;
  for (const Table& table : tables) text += (text.empty() ? "" : "\n") + table.markdown();
  return text;
}

}  // namespace paceline::cli
