// Tests: tests/cli (end to end).
#include "models/base/module.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "models/base/error.h"

namespace paceline {

std::vector<void*> load_module(const ModuleFile& module, const std::vector<std::string>& symbols) {
  std::error_code error;
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  std::string why;
  for (const auto& path :
       {here / module.file, here.parent_path() / "lib" / "paceline" / module.file}) {
    if (!std::filesystem::exists(path, error)) continue;
    void* loaded = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (loaded == nullptr) {
      why = dlerror();
      continue;
    }
    std::vector<void*> addresses;
    for (const std::string& symbol : symbols) addresses.push_back(dlsym(loaded, symbol.c_str()));
    if (std::ranges::find(addresses, nullptr) == addresses.end()) return addresses;
    why = path.string() + " is of another version of paceline";
  }
  const std::string what(module.what);
  if (!why.empty()) throw UnavailableError(what + " cannot be loaded: " + why);
  throw UnavailableError(what + " is not installed: " + std::string(module.file) +
                         " is not beside paceline; " + std::string(module.remedy));
}

}  // namespace paceline
