// Tests: tests/runtime/network_sequences_test.cc.
#include "runtime/network/onednn/rotary.h"

#include <algorithm>
#include <cmath>

#include "models/base/to_size.h"

namespace paceline::runtime::onednn {

Rotation::Rotation(const AttentionSizes& sizes, std::int64_t turned, double base)
    : sizes_(sizes), turned_(turned) {
  const std::int64_t pairs = turned / 2;
  for (std::int64_t position = 0; position < sizes.elements; ++position)
    for (std::int64_t i = 0; i < pairs; ++i) {
      const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(turned);
      const double angle = static_cast<double>(position) * std::pow(base, exponent);
      cosines_.push_back(static_cast<float>(std::cos(angle)));
      sines_.push_back(static_cast<float>(std::sin(angle)));
    }
}

void Rotation::turn(RowsOf<const float> from, RowsOf<float> to, std::int64_t heads,
                    float direction) const {
  const std::int64_t pairs = turned_ / 2;
#pragma omp parallel for schedule(static)
  for (std::int64_t row = 0; row < sizes_.samples * sizes_.elements; ++row) {
    const float* const cosines = cosines_.data() + row % sizes_.elements * pairs;
    const float* const sines = sines_.data() + row % sizes_.elements * pairs;
    for (std::int64_t head = 0; head < heads; ++head) {
      const float* const x = from.data + row * from.stride + head * sizes_.width;
      float* const y = to.data + row * to.stride + head * sizes_.width;
      for (std::int64_t i = 0; i < pairs; ++i) {
        const float first = x[i];
        const float second = x[i + pairs];
        const float sine = direction * sines[i];
        y[i] = first * cosines[i] - second * sine;
        y[i + pairs] = second * cosines[i] + first * sine;
      }
      if (x != y) std::copy(x + turned_, x + sizes_.width, y + turned_);
    }
  }
}

}  // namespace paceline::runtime::onednn
