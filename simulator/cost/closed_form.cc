// Tests: tests/agreement/engine_agreement_test.cc.
#include "simulator/cost/closed_form.h"

#include <bit>

namespace paceline::simulator {

Seconds ring_time(const AlphaBetaGamma& link, int ranks, Bytes bytes) {
  const double p = ranks;
  return 2 * (p - 1) * link.alpha + 2 * (p - 1) / p * bytes * link.beta +
         (p - 1) / p * bytes * link.gamma;
}

Seconds halving_doubling_time(const AlphaBetaGamma& link, int ranks, Bytes bytes) {
  const unsigned power = std::bit_floor(static_cast<unsigned>(ranks));
  const double q = power;
  const double rounds = std::bit_width(power) - 1;
  Seconds time = 2 * rounds * link.alpha + 2 * (q - 1) / q * bytes * link.beta +
                 (q - 1) / q * bytes * link.gamma;
  if (static_cast<int>(power) != ranks)
    time += 2 * link.alpha + 2 * bytes * link.beta + bytes * link.gamma;
  return time;
}

Seconds hierarchical_time(const AlphaBetaGamma& link, int ranks, int group_size, Bytes bytes) {
  const double k = group_size;
  return 4 * (k - 1) * (link.alpha + bytes / k * link.beta) +
         2 * (k - 1) * (bytes / k) * link.gamma + ring_time(link, ranks / group_size, bytes);
}

}  // namespace paceline::simulator
