// Tests: tests/cli (end to end).
#include "simulator/engine/simgrid_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

using Make = NetworkEngine* (*)(const models::Schedule*, std::size_t, const CommunicationCost*);
using Version = const char* (*)();

struct Module {
  Make make = nullptr;
  Version version = nullptr;
};

Module load() {
  std::error_code error;
  const std::filesystem::path here =
      std::filesystem::read_symlink("/proc/self/exe", error).parent_path();
  constexpr const char* file = "paceline-simgrid.so";
  std::string why;
  for (const auto& path : {here / file, here.parent_path() / "lib" / "paceline" / file}) {
    if (!std::filesystem::exists(path, error)) continue;
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (module == nullptr) {
      why = dlerror();
      continue;
    }
    const Module loaded{reinterpret_cast<Make>(dlsym(module, "paceline_make_simgrid_engine")),
                        reinterpret_cast<Version>(dlsym(module, "paceline_simgrid_version"))};
    if (loaded.make != nullptr && loaded.version != nullptr) return loaded;
    why = path.string() + " is of another version of paceline";
  }
  throw UnavailableError(why.empty()
                             ? "the SimGrid engine is not installed: paceline-simgrid.so is not "
                               "beside paceline; choose --engine flow"
                             : "the SimGrid engine cannot be loaded: " + why);
}

const Module& module() {
  static const Module loaded = load();
  return loaded;
}

}  // namespace

std::unique_ptr<NetworkEngine> load_simgrid_engine(std::span<const models::Schedule> schedules,
                                                   const CommunicationCost& cost) {
  return std::unique_ptr<NetworkEngine>(module().make(schedules.data(), schedules.size(), &cost));
}

std::string simgrid_version() {
  return module().version();
}

}  // namespace paceline::simulator
