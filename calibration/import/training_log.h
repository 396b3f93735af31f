// Reads how long the iterations of a training job took from the log that its trainer printed.
//
// A line says it by a name and a number behind it. The names are those of Megatron-LM and Megatron-Bridge
// ("elapsed time per iteration (ms):"), NeMo ("train_step_timing in s:"), nanotron, fms-fsdp, MaxText,
// torchtitan ("tps:"), Composer and llm-foundry ("throughput/device/tokens_per_sec:"), OLMo, DeepSpeed
// ("CurrSamplesPerSec="), Hugging Face's Trainer, tqdm ("2.53s/it") and levanter; lines of JSON have the
// same names. The table is in training_log.cc. Where a log has several quantities, the first of
// LogQuantity is read, since it needs the least beside it.
//
// A log with none of them still tells its iterations where its lines have a date with a time of day and the number
// of a step: a loss log.
//
// Numbers may have thousands commas and K, M or G behind them. The first tenth of the values, at least one, is
// warm-up and left out.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "calibration/import/imported.h"

namespace paceline::calibration {

[[nodiscard]] bool looks_like_training_log(std::string_view text);

// Throws InputError if fewer than three values are left.
[[nodiscard]] Imported parse_training_log(std::string_view text, const std::string& file);

}  // namespace paceline::calibration
