// Tests: tests/cli/help_text_test.cc.
#include "cli/help_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/base/to_size.h"

namespace paceline::cli {
namespace {

constexpr std::size_t explanation_column = 28;
constexpr std::string_view other_group = "Options";

bool is_positional(const Option& option) {
  return !option.name.starts_with('-');
}

// The words of a text in lines of at most `width`.
std::vector<std::string> wrapped_words(std::string_view text, std::size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (line.size() + 1 + word.size() <= width) {
      line += fmt::format(" {}", word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

// A name, and what it means in a column of its own.
std::string entry(const std::string& label, std::string_view meaning, std::size_t width) {
  std::string text = "  " + label;
  if (text.size() + 2 > explanation_column) text += "\n";
  const std::size_t room = width > explanation_column + 20 ? width - explanation_column : 20;
  for (const std::string& line : wrapped_words(meaning, room)) {
    const std::size_t begun =
        text.rfind('\n') == std::string::npos ? text.size() : text.size() - text.rfind('\n') - 1;
    text +=
        std::string(explanation_column - std::min(explanation_column, begun), ' ') + line + "\n";
  }
  return text;
}

// A text of several lines; those that begin with a blank stay as they are.
std::string paragraph(std::string_view text, std::size_t width) {
  std::string lines;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, std::min(text.find('\n'), text.size()));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
    if (line.starts_with(' ')) {
      lines += fmt::format("{}\n", line);
      continue;
    }
    for (const std::string& wrapped : wrapped_words(line, width)) lines += wrapped + "\n";
  }
  return lines;
}

std::string label_of(const Option& option) {
  std::string name = option.name;
  if (is_positional(option)) return option.value_text.empty() ? name : option.value_text;
  return option.value_text.empty() ? name : fmt::format("{} {}", name, option.value_text);
}

std::string_view group_of(const Option& option) {
  if (is_positional(option)) return "Arguments";
  return option.group.empty() ? other_group : std::string_view(option.group);
}

std::string usage(std::string_view path, const Command& command) {
  std::string text = fmt::format("Usage: {}", path);
  for (const Option& option : command.options())
    if (is_positional(option)) text += fmt::format(" {}", label_of(option));
  text += " [OPTIONS]";
  if (!command.commands().empty()) text += " COMMAND";
  return text + "\n";
}

std::string options_text(const Command& command, std::size_t width, bool all, int& left_out) {
  std::vector<std::string_view> groups;
  for (const Option& option : command.options())
    if (std::find(groups.begin(), groups.end(), group_of(option)) == groups.end())
      groups.push_back(group_of(option));
  std::string text;
  for (const std::string_view group : groups) {
    std::string entries;
    for (const Option& option : command.options()) {
      if (group_of(option) != group) continue;
      const bool is_shown = all || !option.is_expert;
      if (is_shown) entries += entry(label_of(option), option.help, width);
      left_out += is_shown ? 0 : 1;
    }
    if (!entries.empty()) text += fmt::format("\n{}:\n{}", group, entries);
  }
  return text;
}

}  // namespace

std::string help_text(std::string_view path, const Command& command, int width, bool all) {
  const auto columns = to_size(std::max(40, width));
  std::string text = paragraph(command.help(), columns) + "\n" + usage(path, command);
  for (const std::string& example : command.examples()) text += "Example: " + example + "\n";
  int left_out = 0;
  text += options_text(command, columns, all, left_out);
  if (!command.commands().empty()) {
    text += "\nCommands:\n";
    for (const Command& inner : command.commands())
      text += entry(inner.name(), inner.help(), columns);
    text += fmt::format(
        "\nWhat a command takes: {} COMMAND --help. The version: paceline --version\n", path);
  }
  if (left_out > 0)
    text += fmt::format("\n{} more option{}: {} --help-all\n", left_out, left_out == 1 ? "" : "s",
                        path);
  return text;
}

}  // namespace paceline::cli
