// Tests: tests/cli/command_line_test.cc.
#include "cli/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <deque>
#include <map>

#include "models/base/common_words.h"
#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::cli {
namespace {

bool is_positional(const Option& option) {
  return !option.name.starts_with('-');
}

InputError empty_value(const std::string& name) {
  return {name.starts_with('-') ? name + " is empty" : "an empty " + name,
          "give it a value, or leave it out"};
}

// Refuses "--ranks=", behind which CLI11 would take the next word for the value.
void check_values(const Command& command, int argc, const char* const* argv) {
  for (const Option& option : command.options()) {
    for (int i = 1; i < argc; ++i) {
      if (argv[i] == option.name + "=") throw empty_value(option.name);
    }
  }
}

// Returns the command that the first words name. Throws InputError for a word that names none:
// CLI11 says only that a command is missing, and not which one the user may have meant.
const Command& named_command(const Command& root, int argc, const char* const* argv) {
  const Command* at = &root;
  for (int i = 1; i < argc && argv[i][0] != '-' && !at->commands().empty(); ++i) {
    std::vector<std::string> names;
    const Command* next = nullptr;
    for (const Command& command : at->commands()) {
      names.push_back(command.name());
      if (command.name() == argv[i]) next = &command;
    }
    if (next == nullptr) throw unknown_name("command", argv[i], names);
    at = next;
  }
  return *at;
}

// Holds the tree as CLI11 has it, and knows which command of ours each of its commands is.
class Parser {
 public:
  Parser(const Command& root, std::string_view version) : app_(root.help(), root.name()) {
    app_.set_version_flag("--version", std::string(version));
    app_.set_help_all_flag("--help-all");
    declare(root, app_);
  }

  ParsedLine parse(int argc, const char* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (const CLI::CallForHelp&) {
      return help(false);
    } catch (const CLI::CallForAllHelp&) {
      return help(true);
    } catch (const CLI::CallForVersion&) {
      return {.text = app_.version() + "\n", .run = {}};
    }
    for (const Value& value : values_) {
      if (value.declared->count() == 0) continue;
      if (!value.option->is_list) value.option->take(value.text);
      for (const std::string& text : value.texts) value.option->take(text);
    }
    const auto& run = commands_.at(&chosen(app_))->run();
    if (!run) return {};
    return {.text = {}, .run = [run, words = Words(argv + 1, argv + argc)] { run(words); }};
  }

 private:
  [[nodiscard]] ParsedLine help(bool all) const {
    std::string path = commands_.at(&app_)->name();
    const CLI::App* at = &app_;
    for (auto named = at->get_subcommands(); !named.empty(); named = at->get_subcommands()) {
      at = named.front();
      path += " " + at->get_name();
    }
    return {
        .text = {}, .help = commands_.at(at), .path = std::move(path), .all_help = all, .run = {}};
  }

  void declare(const Command& command, CLI::App& app) {
    commands_[&app] = &command;
    for (const Option& option : command.options()) declare(option, app);
    for (const Option& option : command.options()) {
      if (!option.needed.empty()) app.get_option(option.name)->needs(app.get_option(option.needed));
    }
    if (!command.commands().empty() && !command.run()) app.require_subcommand(1);
    for (const Command& inner : command.commands())
      declare(inner, *app.add_subcommand(inner.name(), inner.help()));
  }

  void declare(const Option& option, CLI::App& app) {
    Value& kept = values_.emplace_back(Value{&option});
    if (option.is_flag) {
      kept.declared = app.add_flag(option.name, option.help);
      return;
    }
    const std::string names = option.also.empty() ? option.name : option.name + "," + option.also;
    CLI::Option* const declared = option.is_list ? app.add_option(names, kept.texts, option.help)
                                                 : app.add_option(names, kept.text, option.help);
    kept.declared = declared;
    declared->required(option.is_required);
    if (!option.value_text.empty()) declared->option_text(option.value_text);
    const std::string name = option.name;
    declared->each([name](const std::string& value) {
      if (value.empty()) throw empty_value(name);
    });
  }

  // Returns the innermost command that was named.
  static const CLI::App& chosen(const CLI::App& app) {
    const std::vector<CLI::App*> named = app.get_subcommands();
    return named.empty() ? app : chosen(*named.front());
  }

  // An option of any command, and what was typed for it.
  struct Value {
    const Option* option = nullptr;
    CLI::Option* declared = nullptr;
    std::string text = {};
    std::vector<std::string> texts = {};  // of a list
  };

  CLI::App app_;
  std::deque<Value> values_;  // CLI11 refers to their texts
  std::map<const CLI::App*, const Command*> commands_;
};

// Says which option the command does not have, and which one may have been meant.
InputError unexpected(const CLI::ExtrasError& error, const Command& command, int argc,
                      const char* const* argv) {
  std::vector<std::string> names = {"--help", "--help-all"};
  for (const Option& option : command.options()) {
    if (!is_positional(option)) names.push_back(option.name);
  }
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    const std::string name(word.substr(0, word.find('=')));
    if (!name.starts_with("--") || name == "--") continue;
    if (std::find(names.begin(), names.end(), name) != names.end()) continue;
    const std::string problem = "unknown option " + in_quotes(name);
    if (std::string remedy = common_word_remedy("option", name); !remedy.empty())
      return {problem, std::move(remedy)};
    const auto nearest = nearest_name(name, names);
    return {problem, nearest ? "did you mean '" + *nearest + "'?" : "see --help"};
  }
  return {std::string(error.what()), "see --help"};
}

}  // namespace

Option& Option::value(std::string shown) {
  value_text = std::move(shown);
  return *this;
}

Option& Option::explained(std::string meaning) {
  help = std::move(meaning);
  return *this;
}

Option& Option::python(std::string type) {
  python_type = std::move(type);
  return *this;
}

Option& Option::in_group(std::string_view title) {
  group = title;
  return *this;
}

Option& Option::expert(bool is) {
  is_expert = is;
  return *this;
}

Option& Option::required() {
  is_required = true;
  return *this;
}

Option& Option::needs(const Option& other) {
  needed = other.name;
  return *this;
}

Command::Command(std::string name, std::string help)
    : name_(std::move(name)), help_(std::move(help)) {}

Command& Command::add_command(std::string name, std::string help) {
  return commands_.emplace_back(std::move(name), std::move(help));
}

Command& Command::example(std::string line) {
  examples_.push_back(std::move(line));
  return *this;
}

Option& Command::add_option(std::string name, std::string& text, std::string help) {
  return options_.emplace_back(Option{.name = std::move(name),
                                      .help = std::move(help),
                                      .take = [&text](const std::string& typed) { text = typed; }});
}

Option& Command::add_list(std::string name, std::vector<std::string>& texts, std::string help) {
  return options_.emplace_back(
      Option{.name = std::move(name),
             .help = std::move(help),
             .take = [&texts](const std::string& typed) { texts.push_back(typed); },
             .is_list = true});
}

Option& Command::add_flag(std::string name, bool& flag, std::string help) {
  return options_.emplace_back(Option{.name = std::move(name),
                                      .help = std::move(help),
                                      .take = [&flag](const std::string&) { flag = true; },
                                      .is_flag = true,
                                      .python_type = "bool"});
}

Option& Command::add(const FieldLabel& label, std::function<void(const std::string& text)> take) {
  Option& option = options_.emplace_back(Option{.name = label.option(),
                                                .help = std::string(label.help),
                                                .take = std::move(take),
                                                .is_flag = label.is_flag(),
                                                .group = std::string(label.group),
                                                .is_expert = label.is_expert,
                                                .python_type = std::string(label.python)});
  option.also = label.also;
  if (label.is_flag()) return option;
  return option.value(label.shown());
}

ParsedLine parse_command_line(const Command& root, std::string_view version, int argc,
                              const char* const* argv) {
  const Command& command = named_command(root, argc, argv);
  check_values(command, argc, argv);
  try {
    return Parser(root, version).parse(argc, argv);
  } catch (const CLI::ExtrasError& error) {
    throw unexpected(error, command, argc, argv);
  } catch (const CLI::RequiredError& error) {
    if (command.commands().empty() || command.run())
      throw InputError(std::string(error.what()), "see paceline --help");
    std::string names;
    for (const Command& inner : command.commands())
      names += (names.empty() ? "" : ", ") + inner.name();
    throw InputError("a command is missing", "give one of: " + names);
  } catch (const CLI::ParseError& error) {
    throw InputError(std::string(error.what()), "see paceline --help");
  }
}

}  // namespace paceline::cli
