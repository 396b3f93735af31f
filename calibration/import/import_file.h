// Reads the output of another tool in whichever of the known formats it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/import/imported.h"
#include "models/network/network.h"

namespace paceline::calibration {

enum class ImportFormat {
  nccl_tests,
  osu,
  kineto,
  horovod,
  nvidia_topology,
  nccl_topology,
  nccl_log,
  mlperf,
  imb,
  torch_bench,
  deepspeed,
  training_log
};

// "nccl-tests", "osu", "kineto", "horovod", "nvidia-topo", "nccl-topology", "nccl-log", "mlperf",
// "imb", "torch-bench", "deepspeed", "training-log".
[[nodiscard]] std::string_view name(ImportFormat format);
[[nodiscard]] std::vector<std::string> import_format_names();
// Throws InputError that suggests the nearest name.
[[nodiscard]] ImportFormat import_format_from_name(std::string_view text);
// The format that the text looks like. Throws InputError if it looks like none of them.
[[nodiscard]] ImportFormat guessed_format(std::string_view text, const std::string& file);

// `network` is needed for kineto only, and may be null for the others. `collective` is that of tables that
// do not say it (nccl-tests). Throws InputError as the readers do, and if a trace of torch.profiler comes
// without a network.
[[nodiscard]] Imported import_text(ImportFormat format, std::string_view text,
                                   const std::string& file, const models::Network* network,
                                   std::optional<models::Collective> collective = {});

}  // namespace paceline::calibration
