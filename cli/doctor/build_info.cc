// Tests: tests/cli/command_test.py, tests/cli/doctor_test.py (end to end).
#include "cli/doctor/build_info.h"

#include <fmt/core.h>

#include <cctype>

namespace paceline::doctor {
namespace {

// What cmake says of a part: "off", "not found", "found", or a version.
BuiltPart part(std::string name, std::string_view state) {
  const bool is_there = state != "off" && state != "not found";
  const bool has_version = !state.empty() && std::isdigit(static_cast<unsigned char>(state[0]));
  return {std::move(name), is_there, has_version ? std::string(state) : std::string()};
}

}  // namespace

std::string_view version() {
  return PACELINE_VERSION;
}

std::vector<BuiltPart> built_parts() {
  std::string_view mpi = PACELINE_MPI_STATE;
  constexpr std::string_view vendor = "Open MPI ";
  const bool is_open_mpi = mpi.starts_with(vendor);
  if (is_open_mpi) mpi.remove_prefix(vendor.size());
  return {part("CUDA", PACELINE_CUDA_STATE),           part("NCCL", PACELINE_NCCL_STATE),
          part("cuDNN", PACELINE_CUDNN_STATE),         part("SimGrid", PACELINE_SIMGRID_STATE),
          part(is_open_mpi ? "Open MPI" : "MPI", mpi), part("libsodium", PACELINE_SODIUM_STATE)};
}

std::string version_text() {
  std::string parts;
  for (const BuiltPart& part : built_parts())
    parts += fmt::format("{}with{} {}{}{}", parts.empty() ? "" : ", ", part.is_there ? "" : "out",
                         part.name, part.version.empty() ? "" : " ", part.version);
  return fmt::format("paceline {}\n{}", version(), parts);
}

}  // namespace paceline::doctor
