// Tests: tests/cli (end to end).
#include "simulator/engine/simgrid_module.h"

#include <dlfcn.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "models/base/error.h"

namespace paceline::simulator {
namespace {

using Make = SharedLinkEngine* (*)(const models::Schedule*, std::size_t, const CommunicationCost*);

Make load() {
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
    return reinterpret_cast<Make>(dlsym(module, "paceline_make_simgrid_engine"));
  }
  throw UnavailableError(why.empty()
                             ? "the SimGrid engine is not installed: paceline-simgrid.so is not "
                               "beside paceline; choose --engine flow"
                             : "the SimGrid engine cannot be loaded: " + why);
}

}  // namespace

std::unique_ptr<SharedLinkEngine> load_simgrid_engine(std::span<const models::Schedule> schedules,
                                                      const CommunicationCost& cost) {
  static const Make make = load();
  PACELINE_ASSERT(make != nullptr, "the module makes engines");
  return std::unique_ptr<SharedLinkEngine>(make(schedules.data(), schedules.size(), &cost));
}

}  // namespace paceline::simulator
