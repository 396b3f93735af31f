// Data sets as what a training run needs of them: how many samples an epoch has.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace paceline::models {

struct Dataset {
  std::string name;  // empty: a number that somebody gave
  double samples = 0;
};

struct KnownDataset {
  std::string_view name;
  double samples = 0;
  std::string_view source;
};

[[nodiscard]] std::span<const KnownDataset> known_datasets();

// A name of known_datasets(), or a number of samples from 1 to `longest` (length.h). Throws InputError.
[[nodiscard]] Dataset parse_dataset(std::string_view text);

}  // namespace paceline::models
