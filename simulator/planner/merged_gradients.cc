// Tests: tests/simulator/merged_gradients_test.cc.
#include "simulator/planner/merged_gradients.h"

#include <algorithm>

#include "models/base/error.h"

namespace paceline::simulator {

std::vector<models::Bucket> merged_gradients(std::span<const models::Gradient> gradients,
                                             std::span<const Seconds> times, Seconds startup,
                                             const std::function<Seconds(std::int64_t)>& takes) {
  PACELINE_ASSERT(gradients.size() == times.size(), "every gradient has its time");
  std::vector<models::Bucket> buckets;
  models::Bucket open;
  Seconds finish;  // of the bucket before
  for (std::size_t i = 0; i < gradients.size(); ++i) {
    ++open.gradient_count;
    open.elements += gradients[i].elements;
    const Seconds start = std::max(finish, times[i]);
    if (i + 1 < gradients.size() && times[i + 1] < start + startup) continue;
    finish = start + takes(open.elements);
    buckets.push_back(open);
    open = models::Bucket{.first_gradient = static_cast<int>(i) + 1};
  }
  return buckets;
}

Bytes saturating_bucket(Bytes few, Seconds time_of_few, Bytes more, Seconds time_of_more) {
  PACELINE_ASSERT(few < more && time_of_few <= time_of_more, "a larger all-reduce takes longer");
  constexpr double efficiency = 0.95;
  constexpr double multiplier = 3;
  constexpr double mebibyte = 1024.0 * 1024;
  constexpr Bytes least{50 * mebibyte};
  constexpr Bytes most{2000 * mebibyte};
  const Seconds difference = time_of_more - time_of_few;
  const Seconds startup = std::max(Seconds{0}, time_of_few - (few / (more - few)) * difference);
  if (difference == Seconds{0}) return startup > Seconds{0} ? most : least;
  const Bytes saturates = efficiency / (1 - efficiency) * (startup / difference) * (more - few);
  return std::clamp(multiplier * saturates, least, most);
}

}  // namespace paceline::simulator
