#include "runtime/training/data/order.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "models/base/error.h"
#include "models/base/random.h"
#include "models/base/seeds.h"
#include "models/base/to_size.h"

namespace paceline::runtime {

std::vector<std::uint32_t> shuffled_order(std::int64_t samples, std::uint64_t seed,
                                          std::int64_t epoch) {
  PACELINE_ASSERT(samples >= 0 && samples <= std::numeric_limits<std::uint32_t>::max(),
                  "samples are counted in 32 bits");
  std::vector<std::uint32_t> order(to_size(samples));
  std::iota(order.begin(), order.end(), 0U);
  Random random(mixed_seed(seed, static_cast<std::uint64_t>(epoch)));
  for (std::size_t left = order.size(); left > 1; --left)
    std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

Positions positions_of(const Sharing& sharing, std::int64_t number) {
  const std::int64_t batch = sharing.batch;
  const std::int64_t begin = (number * sharing.ranks + sharing.rank) * batch;
  return {std::min(begin, sharing.samples), std::min(begin + batch, sharing.samples)};
}

std::int64_t batches_of_all(const Sharing& sharing) {
  const std::int64_t together = std::int64_t{sharing.ranks} * sharing.batch;
  return (sharing.samples + together - 1) / together;
}

std::int64_t batches_per_epoch(std::int64_t samples, int ranks, int batch) {
  return samples / (std::int64_t{ranks} * batch);
}

}  // namespace paceline::runtime
