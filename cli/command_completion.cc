// paceline completion: a completion script for the user's shell, made from the command's own
// options.
#include <fmt/core.h>

#include <algorithm>
#include <set>

#include "cli/command.h"
#include "cli/output.h"
#include "experiments/agreement/topologies.h"
#include "models/base/names.h"
#include "models/cluster/catalog.h"
#include "models/collective/catalogue.h"
#include "models/network/zoo.h"
#include "models/plan/strategy.h"
#include "simulator/cost/nccl_tables.h"

namespace paceline::cli {
namespace {

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string subcommands(const Command& command) {
  std::vector<std::string> names;
  for (const Command& inner : command.commands()) names.push_back(inner.name());
  return joined(names);
}

// Names of options, without the arguments that are known by their position.
std::vector<std::string> option_names(const Command& command) {
  std::vector<std::string> names = {"--help", "--help-all"};
  for (const Option& option : command.options()) {
    if (option.name.starts_with("--")) names.push_back(option.name);
  }
  return names;
}

// The words that may follow an option.
std::vector<std::pair<std::string, std::string>> option_values() {
  std::vector<std::string> networks;
  for (const models::ZooEntry& entry : models::zoo()) networks.emplace_back(entry.name);
  std::vector<std::string> clusters;
  for (const auto& entry : models::catalog_clusters()) clusters.emplace_back(entry.name);
  std::vector<std::string> topologies = {"all", "help"};
  for (const experiments::Topology& topology : experiments::topologies())
    topologies.emplace_back(topology.name);
  return {{"--model", joined(networks)},
          {"--cluster", joined(clusters)},
          {"--strategy", joined(models::strategy_names())},
          {"--schedule", joined(models::collective_names())},
          {"--topology", joined(topologies)},
          {"--precision", "fp32 mixed fp8"},
          {"--wire", "fp32 fp16 bf16"},
          {"--dtype", "fp32 fp16 bf16"},
          {"--overlap", "wait-free none double-buffered priority"},
          {"--engine", "auto step flow executor simgrid"},
          {"--format", "goal msccl svg"},
          {"--nccl", joined(simulator::nccl_versions())},
          {"--cpu", "intel amd"},
          {"--profile", "none"}};
}

// Adds the names of all options of a command, and of those below it, whose value is a path and that
// have no words of their own.
void add_path_options(const Command& command, std::set<std::string>& names) {
  for (const Option& option : command.options()) {
    const auto takes = [&option](std::string_view what) {
      return option.value_text.find(what) != std::string::npos;
    };
    if (option.name.starts_with("--") &&
        (takes("FILE") || takes("FOLDER") || takes("PATH") || takes("PREFIX")))
      names.insert(option.name);
  }
  for (const Command& inner : command.commands()) add_path_options(inner, names);
}

std::vector<std::string> path_options(const Command& app) {
  std::set<std::string> names;
  add_path_options(app, names);
  for (const auto& [option, values] : option_values()) names.erase(option);
  return {names.begin(), names.end()};
}

std::string bash_script(const Command& app) {
  std::string text =
      "# bash completion for paceline. Load it with: source <(paceline completion bash)\n"
      "_paceline() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD-1]} words=\n"
      "  case $prev in\n";
  for (const auto& [option, values] : option_values()) {
    text += fmt::format(
        "    {}) COMPREPLY=($(compgen -W '{}' -- \"$cur\") $(compgen -f -- \"$cur\")); return;;\n",
        option, values);
  }
  std::string paths;
  for (const std::string& option : path_options(app)) paths += (paths.empty() ? "" : "|") + option;
  text += fmt::format(
      "    {}) COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n  esac\n  case "
      "\"${{COMP_WORDS[1]}} ${{COMP_WORDS[2]}}\" in\n",
      paths);
  for (const Command& command : app.commands()) {
    for (const Command& inner : command.commands())
      text += fmt::format("    '{} {}') words='{}';;\n", command.name(), inner.name(),
                          joined(option_names(inner)));
    text += fmt::format("    '{} '*) words='{} {}';;\n", command.name(), subcommands(command),
                        joined(option_names(command)));
  }
  text += fmt::format("  esac\n  if ((COMP_CWORD == 1)); then words='{} {}'; fi\n",
                      subcommands(app), joined(option_names(app)));
  return text +
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -F _paceline paceline\n";
}

// Text between single quotes of zsh.
std::string in_zsh(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

// The same of fish, which knows escapes there.
std::string in_fish(const std::string& text) {
  std::string quoted = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + "'";
}

// What is said beside a word: the help up to its first sentence's end.
std::string short_help(const std::string& help) {
  return help.substr(0, std::min({help.find_first_of(".;\n"), help.find(": "), help.size()}));
}

// The words that follow a command, each with its help behind a colon.
std::string zsh_words(const Command& command) {
  std::string words;
  for (const Command& inner : command.commands())
    words += " " + in_zsh(inner.name() + ":" + short_help(inner.help()));
  for (const Option& option : command.options()) {
    if (option.name.starts_with("--"))
      words += " " + in_zsh(option.name + ":" + short_help(option.help));
  }
  return words + " '--help:Print help and exit'";
}

std::string zsh_script(const Command& app) {
  std::string text =
      "#compdef paceline\n"
      "# zsh completion for paceline. Load it with: source <(paceline completion zsh)\n"
      "_paceline() {\n  local pair\n  local -a offered names shown\n  case $words[CURRENT-1] in\n";
  for (const auto& [option, values] : option_values())
    text += fmt::format("    {}) compadd -- {}; _files; return;;\n", option, values);
  std::string paths;
  for (const std::string& option : path_options(app)) paths += (paths.empty() ? "" : "|") + option;
  text +=
      fmt::format("    {}) _files; return;;\n  esac\n  case \"$words[2] $words[3]\" in\n", paths);
  for (const Command& command : app.commands()) {
    for (const Command& inner : command.commands())
      text += fmt::format("    '{} {}') offered=({});;\n", command.name(), inner.name(),
                          zsh_words(inner));
    text += fmt::format("    '{} '*) offered=({});;\n", command.name(), zsh_words(command));
  }
  text += fmt::format("  esac\n  if ((CURRENT == 2)); then offered=({}); fi\n", zsh_words(app));
  return text +
         "  for pair in $offered; do\n    names+=(\"${pair%%:*}\")\n    "
         "shown+=(\"${pair%%:*}  ${pair#*:}\")\n  done\n"
         "  compadd -l -d shown -a names\n  if [[ $words[CURRENT] != -* ]]; then _files; fi\n}\n"
         "if [[ $funcstack[1] == _paceline ]]; then\n  _paceline \"$@\"\nelse\n"
         "  (( $+functions[compdef] )) || { autoload -Uz compinit && compinit }\n"
         "  compdef _paceline paceline\nfi\n";
}

// The options of a command, where `condition` of fish says that it was named.
std::string fish_options(const Command& command, const std::string& condition) {
  std::string text;
  for (const Option& option : command.options()) {
    if (option.name.starts_with("--"))
      text += fmt::format("complete -c paceline -n {} -l {} -d {}\n", in_fish(condition),
                          option.name.substr(2), in_fish(short_help(option.help)));
  }
  return text + fmt::format("complete -c paceline -n {} -l help\n", in_fish(condition));
}

std::string fish_script(const Command& app) {
  std::string text =
      "# fish completion for paceline. Load it with: paceline completion fish | source\ncomplete "
      "-c paceline -f\n";
  for (const Command& command : app.commands()) {
    const std::string seen = fmt::format("__fish_seen_subcommand_from {}", command.name());
    text += fmt::format("complete -c paceline -n __fish_use_subcommand -a {} -d {}\n",
                        command.name(), in_fish(short_help(command.help())));
    const std::string none =
        fmt::format("{}; and not __fish_seen_subcommand_from {}", seen, subcommands(command));
    for (const Command& inner : command.commands()) {
      text += fmt::format("complete -c paceline -n {} -a {} -d {}\n", in_fish(none), inner.name(),
                          in_fish(short_help(inner.help())));
      text += fish_options(
          inner, fmt::format("{}; and __fish_seen_subcommand_from {}", seen, inner.name()));
    }
    text += fish_options(command, command.commands().empty() ? seen : none);
  }
  for (const auto& [option, values] : option_values())
    text += fmt::format("complete -c paceline -l {} -x -a '{}'\n", option.substr(2), values);
  for (const std::string& option : path_options(app))
    text += fmt::format("complete -c paceline -l {} -r -F\n", option.substr(2));
  return text;
}

}  // namespace

void add_completion(Command& app) {
  Command& command =
      app.add_command("completion", "Print a completion script for bash, zsh or fish");
  const auto shell = std::make_shared<std::string>();
  command.add_option("shell", *shell, "bash, zsh or fish").required();
  const Command* const root = &app;
  command.on_run([shell, root] {
    if (*shell == "bash") {
      print("{}", bash_script(*root));
    } else if (*shell == "zsh") {
      print("{}", zsh_script(*root));
    } else if (*shell == "fish") {
      print("{}", fish_script(*root));
    } else {
      throw unknown_name("shell", *shell, {"bash", "zsh", "fish"});
    }
  });
}

}  // namespace paceline::cli
