// What this build of the command is: its version, and the parts that may be missing. Read by
// --version, doctor, reports and the digests of sweeps.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline::doctor {

// "0.1.0"
[[nodiscard]] std::string_view version();

// A part that was looked for when Paceline was built.
struct BuiltPart {
  std::string name;     // "CUDA"
  bool is_there;        // whether Paceline was built with it
  std::string version;  // "13.0.88", or empty where it is not there or was not asked
};
[[nodiscard]] std::vector<BuiltPart> built_parts();

// The version and the parts, as --version prints them, on two lines.
[[nodiscard]] std::string version_text();

}  // namespace paceline::doctor
