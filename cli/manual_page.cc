// Tests: tests/cli/manual_test.py.
#include "cli/manual_page.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>

namespace paceline::cli {
namespace {

// Text as roff prints it: dashes that can be copied, and no line that is taken for a request.
std::string escaped(std::string_view text) {
  std::string roff;
  bool begins_line = true;
  for (const char c : text) {
    if (begins_line && (c == '.' || c == '\'')) roff += "\\&";
    begins_line = c == '\n';
    if (c == '\\')
      roff += "\\e";
    else if (c == '-')
      roff += "\\-";
    else
      roff += c;
  }
  return roff;
}

std::string upper(std::string text) {
  std::ranges::transform(text, text.begin(),
                         [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return text;
}

// "paceline show network" with this between the words.
std::string joined(const std::vector<const Command*>& path, const char* between) {
  std::string text;
  for (const Command* const command : path) text += (text.empty() ? "" : between) + command->name();
  return text;
}

bool is_positional(const Option& option) {
  return !option.name.starts_with('-');
}

std::string entry(const std::string& title, const std::string& help) {
  return fmt::format(".TP\n{}\n{}\n", title, escaped(help));
}

std::string option_entry(const Option& option) {
  std::string title = is_positional(option) ? fmt::format("\\fI{}\\fR", escaped(option.name))
                                            : fmt::format("\\fB{}\\fR", escaped(option.name));
  if (!option.value_text.empty())
    title += fmt::format(" \\fI{}\\fR", escaped(option.value_text));
  else if (!option.is_flag && !is_positional(option))
    title += " \\fITEXT\\fR";
  std::string help = option.help;
  if (option.is_required) help += ". It must be given";
  if (!option.needed.empty()) help += ". Only with " + option.needed;
  return entry(title, help + ".");
}

std::string synopsis(const std::vector<const Command*>& path) {
  const Command& command = *path.back();
  std::string text = fmt::format(".B {}\n", escaped(joined(path, " ")));
  if (!command.commands().empty()) text += "\\fICOMMAND\\fR\n";
  text += "[\\fIOPTIONS\\fR]\n";
  for (const Option& option : command.options()) {
    if (!is_positional(option)) continue;
    text += option.is_required ? fmt::format("\\fI{}\\fR\n", escaped(option.name))
                               : fmt::format("[\\fI{}\\fR]\n", escaped(option.name));
  }
  return text;
}

// Paragraphs as they are; of one that begins with a title and a colon, the lines below it as they
// are.
std::string description(const std::string& help) {
  std::string text;
  for (std::size_t at = 0; at < help.size();) {
    const std::size_t end = std::min(help.find("\n\n", at), help.size());
    const std::string paragraph = help.substr(at, end - at);
    const std::size_t colon = paragraph.find(":\n");
    if (colon == std::string::npos) {
      text += fmt::format(".PP\n{}{}\n", escaped(paragraph), paragraph.ends_with('.') ? "" : ".");
    } else {
      text += fmt::format(".PP\n{}\n.PP\n.nf\n{}\n.fi\n", escaped(paragraph.substr(0, colon + 1)),
                          escaped(paragraph.substr(colon + 2)));
    }
    at = end + 2;
  }
  return text;
}

std::string summary(const std::string& help) {
  const std::size_t end = std::min({help.find(". "), help.find(".\n"), help.size()});
  return help.substr(0, end);
}

ManualPage page_of(const std::vector<const Command*>& path, std::string_view version) {
  const Command& command = *path.back();
  const std::string name = joined(path, "-");
  std::string text = fmt::format(
      ".\\\" Written by `paceline manual` from the options of the command.\n"
      ".TH {} 1 \"\" \"paceline {}\" \"Paceline\"\n.nh\n.ad l\n.SH NAME\n{} \\- {}\n.SH "
      "SYNOPSIS\n{}.SH "
      "DESCRIPTION\n{}",
      upper(escaped(name)), version, escaped(name), escaped(summary(command.help())),
      synopsis(path), description(command.help()));
  if (!command.commands().empty()) {
    text += ".SH COMMANDS\n";
    for (const Command& inner : command.commands())
      text += entry(fmt::format("\\fB{}\\fR", escaped(inner.name())),
                    fmt::format("{}. See {}-{}(1).", summary(inner.help()), name, inner.name()));
  }
  text += ".SH OPTIONS\n";
  for (const Option& option : command.options()) text += option_entry(option);
  text += entry("\\fB\\-h\\fR, \\fB\\-\\-help\\fR", "Print this help message and exit.");
  if (path.size() == 1)
    text += entry("\\fB\\-\\-version\\fR", "Display program version information and exit.");
  text +=
      ".SH EXIT STATUS\n0: done. 1: the work failed. 2: the input is wrong, or asks for a part "
      "that "
      "is not there. 128 + n: signal n stopped the work, as in 143 (SIGTERM) and 130 (SIGINT). "
      "Each failure is one line on "
      "standard error.\n";
  if (path.size() > 1) {
    std::vector<const Command*> above(path.begin(), path.end() - 1);
    text += fmt::format(".SH SEE ALSO\n.BR {} (1)\n", escaped(joined(above, "-")));
  }
  return {name, text};
}

void add_pages(std::vector<const Command*>& path, std::string_view version,
               std::vector<ManualPage>& pages) {
  pages.push_back(page_of(path, version));
  for (const Command& inner : path.back()->commands()) {
    path.push_back(&inner);
    add_pages(path, version, pages);
    path.pop_back();
  }
}

}  // namespace

std::vector<ManualPage> manual_pages(const Command& program, std::string_view version) {
  std::vector<ManualPage> pages;
  std::vector<const Command*> path = {&program};
  add_pages(path, version, pages);
  return pages;
}

}  // namespace paceline::cli
