// Reads the JSON that the programs of nccl-tests write (-J FILE, from 2.17.6 on; documents of
// version 1 and 2), and that of rccl-tests (-Z json -x FILE: an object a line, a list from July 2025
// on).
//
// Times are those in place where there are any. A run with several GPUs a process lists the first
// device of each process only, so that ranks are counted as processes times threads times GPUs. A
// time of "nan" is left out. The facts of the format are from NVIDIA/nccl-tests, src/util.cu.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_nccl_tests_json(std::string_view text);

// As parse_nccl_tests (nccl_tests.h). Throws InputError that names the value ("results[3].size").
[[nodiscard]] Imported parse_nccl_tests_json(std::string_view text, const std::string& file,
                                             std::optional<models::Collective> stated = {});

}  // namespace paceline::calibration
