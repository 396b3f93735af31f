// How long a part of a training run is: in epochs, in samples or in iterations.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace paceline::models {

enum class Measure { epochs, samples, iterations };

inline constexpr std::array<std::pair<Measure, std::string_view>, 3> measures = {
    {{Measure::epochs, "epochs"},
     {Measure::samples, "samples"},
     {Measure::iterations, "iterations"}}};

[[nodiscard]] std::string_view name(Measure measure);

struct Length {
  double count = 0;  // more than 0; may be a fraction
  Measure measure = Measure::epochs;
  bool operator==(const Length&) const = default;
};

// The most and the least that a length may be, of any measure.
inline constexpr double longest = 1e12;
inline constexpr double shortest = 1e-6;

// A count from `shortest` to `longest`. Throws InputError.
[[nodiscard]] double parse_length_count(std::string_view text);
// "4 epochs", "1 epoch", "500 iterations", "1e6 samples". Throws InputError.
[[nodiscard]] Length parse_length(std::string_view text);
[[nodiscard]] std::string to_text(const Length& length);  // "90 epochs", "1 epoch"

// The samples that a length is of. `dataset` is the samples of an epoch, and is not read unless the
// length is in epochs.
[[nodiscard]] double samples(const Length& length, double samples_of_an_iteration, double dataset);

}  // namespace paceline::models
