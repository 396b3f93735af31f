// What the command line of a program may say, as values: commands, their options and flags, and
// what runs once all has been read. CLI11 reads the words in command_line.cc, which is the only
// file that includes it: it is the slowest header of the house to compile.
//
// Read by main.cc, by every command_*.cc (which declares its part of the tree) and by
// command_completion.cc (which writes the tree as a completion script).
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/base/field.h"

namespace paceline::cli {

// The group of --help with what says how and where something is printed.
inline constexpr std::string_view output_group = "Output";

// An option, a flag or an argument without a name.
struct Option {
  std::string name;       // "--ranks", or "file" for an argument that is known by its
                          // position
  std::string also = {};  // another name of an option
  std::string help;       // what it means, for --help
  // Takes the value as typed, once all words have been read; that of a flag is empty. It writes to what
  // must outlive the parse. Throws InputError that names the option.
  std::function<void(const std::string& text)> take;
  bool is_flag = false;
  std::string value_text = {};  // what stands for the value in --help: "N (64)", "NAME|FILE"
  std::string group = {};       // of --help; empty: no group of its own
  bool is_expert = false;       // only --help-all has it
  bool is_required = false;
  bool is_list = false;  // whether it may have several values, each of which `take` is called with
  std::string python_type = "str";  // of the keyword in Python
  std::string needed = {};          // the option without which this one says nothing;
                                    // empty: it stands alone

  // Set what the fields of these names hold, and return the option.
  Option& value(std::string shown);
  Option& explained(std::string meaning);
  Option& python(std::string type);
  Option& in_group(std::string_view title);
  Option& expert(bool is = true);
  Option& required();
  Option& needs(const Option& other);
};

// The words of a command line behind the program's name, as the user typed them.
using Words = std::vector<std::string>;

// A command and those below it, as in `paceline show network`.
class Command {
 public:
  Command(std::string name, std::string help);

  // Adds a command below this one. The reference stays valid.
  Command& add_command(std::string name, std::string help);
  // Add an option whose value is written to `text`, or a flag that sets `flag`. A name without
  // dashes is known by its position. The reference stays valid.
  Option& add_option(std::string name, std::string& text, std::string help);
  Option& add_flag(std::string name, bool& flag, std::string help);
  // Adds an option that may have several values, or an argument of which there may be several.
  Option& add_list(std::string name, std::vector<std::string>& texts, std::string help);
  // Adds the option of a field, which is read into `value`. The reference stays valid.
  template <class Value>
  Option& add_field(const Field<Value>& field, Value& value) {
    return add(field,
               [&field, &value](const std::string& text) { read_field(field, text, value); });
  }
  // Adds a line that shows in --help how the command is called.
  Command& example(std::string line);
  // What the command does. A command without this needs one of the commands below it.
  void on_run(std::function<void()> run) {
    run_ = [run = std::move(run)](const Words&) { run(); };
  }
  // The same for a command that says how it was called.
  void on_run(std::function<void(const Words& words)> run) { run_ = std::move(run); }

  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] const std::string& help() const { return help_; }
  [[nodiscard]] const std::deque<Command>& commands() const { return commands_; }
  [[nodiscard]] const std::deque<Option>& options() const { return options_; }
  [[nodiscard]] std::deque<Option>& options() { return options_; }
  [[nodiscard]] const std::vector<std::string>& examples() const { return examples_; }
  [[nodiscard]] const std::function<void(const Words& words)>& run() const { return run_; }

 private:
  Option& add(const FieldLabel& label, std::function<void(const std::string& text)> take);

  std::string name_;
  std::string help_;
  std::deque<Command> commands_;
  std::deque<Option> options_;
  std::vector<std::string> examples_;
  std::function<void(const Words& words)> run_;
};

// What the words of a command line ask for.
struct ParsedLine {
  std::string text;               // the version, if that was asked for; else empty
  const Command* help = nullptr;  // of which --help or --help-all was asked for (help_text.h)
  std::string path = {};          // how that command is called: "paceline show plan"
  bool all_help = false;
  std::function<void()> run;  // of the command that was named; none if there is a text
};

// Reads the words, and has options take their values, in the order in which they were declared. `version` is what
// --version prints. Throws InputError for what is not known, what is missing, and what is given
// without a value or with an empty one.
[[nodiscard]] ParsedLine parse_command_line(const Command& root, std::string_view version, int argc,
                                            const char* const* argv);

}  // namespace paceline::cli
