// Parts of Paceline that are loaded when they are asked for: a program that links SimGrid or CUDA
// starts later, and does not start at all where their libraries are missing.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline {

struct ModuleFile {
  std::string_view file;    // "paceline-simgrid.so"
  std::string_view what;    // "the SimGrid engine"
  std::string_view remedy;  // "choose --engine flow"
};

// Loads the module, which lies beside the executable or in ../lib/paceline from there, and returns
// the addresses of its symbols in their order. The module stays loaded. Throws UnavailableError if
// there is no such file, it cannot be loaded, or it lacks a symbol.
[[nodiscard]] std::vector<void*> load_module(const ModuleFile& module,
                                             const std::vector<std::string>& symbols);

}  // namespace paceline
