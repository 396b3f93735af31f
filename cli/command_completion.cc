// paceline completion: a completion script for the user's shell, made from the command's own
// options. CLI11 of Debian bookworm has no generator.
#include <fmt/format.h>

#include <cstdio>

#include "cli/command.h"
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

std::string subcommands(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return joined(names);
}

std::string long_options(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return joined(names);
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
          {"--precision", "fp32 mixed"},
          {"--wire", "fp32 fp16 bf16"},
          {"--overlap", "wait-free none double-buffered priority"},
          {"--engine", "auto step flow simgrid"},
          {"--format", "goal msccl svg"},
          {"--nccl", joined(simulator::nccl_versions())},
          {"--cpu", "intel amd"},
          {"--profile", "none"}};
}

std::string bash_script(const CLI::App& app) {
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
  text +=
      "    --timeline|--output|--merged) COMPREPLY=($(compgen -f -- \"$cur\")); return;;\n  esac\n "
      " case "
      "${COMP_WORDS[1]} in\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    text += fmt::format("    {}) words='{} {}';;\n", command->get_name(), subcommands(*command),
                        long_options(*command));
  }
  text += fmt::format("  esac\n  if ((COMP_CWORD == 1)); then words='{} {}'; fi\n",
                      subcommands(app), long_options(app));
  return text +
         "  COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\ncomplete -F _paceline paceline\n";
}

// zsh runs the bash script through its own emulation.
std::string zsh_script(const CLI::App& app) {
  return "# zsh completion for paceline. Load it with: source <(paceline completion zsh)\n"
         "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" +
         bash_script(app);
}

std::string fish_script(const CLI::App& app) {
  std::string text =
      "# fish completion for paceline. Load it with: paceline completion fish | source\ncomplete "
      "-c paceline -f\n";
  for (const CLI::App* command : app.get_subcommands({})) {
    const std::string seen = fmt::format("__fish_seen_subcommand_from {}", command->get_name());
    text += fmt::format("complete -c paceline -n __fish_use_subcommand -a {} -d '{}'\n",
                        command->get_name(), command->get_description());
    for (const CLI::App* inner : command->get_subcommands({}))
      text += fmt::format("complete -c paceline -n '{}' -a {}\n", seen, inner->get_name());
    for (const CLI::Option* option : command->get_options()) {
      for (const std::string& name : option->get_lnames())
        text += fmt::format("complete -c paceline -n '{}' -l {}\n", seen, name);
    }
  }
  for (const auto& [option, values] : option_values())
    text += fmt::format("complete -c paceline -l {} -x -a '{}'\n", option.substr(2), values);
  return text;
}

}  // namespace

void add_completion(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("completion", "Print a completion script for bash, zsh or fish");
  const auto shell = std::make_shared<std::string>();
  command->add_option("shell", *shell, "bash, zsh or fish")->required();
  CLI::App* root = &app;
  command->callback([shell, root] {
    if (*shell == "bash") {
      fmt::print("{}", bash_script(*root));
    } else if (*shell == "zsh") {
      fmt::print("{}", zsh_script(*root));
    } else if (*shell == "fish") {
      fmt::print("{}", fish_script(*root));
    } else {
      throw unknown_name("shell", *shell, {"bash", "zsh", "fish"});
    }
  });
}

}  // namespace paceline::cli
