// Writes settings.py: the keywords of the package's functions (those of verify stand in its signature), with their types and what they mean, as
// the commands declare them.
#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <set>
#include <string>

#include "cli/python/asked_command.h"
#include "cli/python/keywords.h"

namespace paceline::python {
namespace {

constexpr const char* head =
    "\"\"\"The keywords of predictions.py: the options of the command, by their names and with "
    "their types.\n"
    "\n"
    "write_settings.cc wrote this file from the options that the commands declare.\n"
    "\"\"\"\n"
    "\n"
    "from typing import Iterable, Mapping, Sequence, TypedDict\n"
    "\n"
    "from .values import Cluster, Network, PathOrName, Plan, Profile\n"
    "\n"
    "__all__ = [\"Changes\", \"CompareSettings\", \"CostSettings\", \"ExportSettings\", "
    "\"PlanCapacitySettings\",\n"
    "           \"PredictSettings\", \"ScaleSettings\", \"Texts\", \"TimeSettings\", "
    "\"TuneSettings\"]\n"
    "\n"
    "Texts = str | Iterable[str]\n"
    "Changes = str | Mapping[str, float | str]\n";

// Options that are parameters of the functions of Python, and no keywords.
std::set<std::string> parameters_of(const std::string& command) {
  if (command == "compare") return {"plan", "what_if"};
  if (command == "plan-capacity") return {"model", "cluster"};
  if (command == "export") return {"cluster"};
  return {"model", "cluster", "ranks", "algorithm", "schedule"};
}

// "PlanCapacity" of "plan-capacity".
std::string in_pascal_case(std::string_view name) {
  std::string text;
  bool begins = true;
  for (const char c : name) {
    if (c != '-') text += begins ? static_cast<char>(c - 'a' + 'A') : c;
    begins = c == '-';
  }
  return text;
}

std::string class_of(const cli::Command& command) {
  const std::set<std::string> parameters = parameters_of(command.name());
  std::string text = fmt::format(
      "\n\nclass {}Settings(TypedDict, total=False):\n"
      "    \"\"\"The options of ``paceline {}``.\"\"\"\n\n",
      in_pascal_case(command.name()), command.name());
  for (const cli::Option& option : command.options())
    if (const std::string keyword = keyword_of(option); !parameters.contains(keyword))
      text += fmt::format("    {}: {}  # {}\n", keyword, option.python_type, option.help);
  return text;
}

}  // namespace
}  // namespace paceline::python

int main() {
  using namespace paceline::python;
  std::string text = head;
  for (const std::string_view name : asked_commands)
    if (name != "verify") text += class_of(AskedCommand(name).command);
  std::fputs(text.c_str(), stdout);
}
