// Rotary positions (Su 2021, arXiv 2104.09864, 3.4.2): pairs of features turn by angles that grow with the position,
// so that a product of a query and a key depends on how far apart they are. Private to runtime/network/onednn.
#pragma once

#include <cstdint>
#include <vector>

#include "runtime/network/onednn/attention_kernel.h"

namespace paceline::runtime::onednn {

class Rotation {
 public:
  // Features i and i + turned / 2 of each head turn by p base^(-2 i / turned) at position p. `turned` is even, and
  // at most the width of a head.
  Rotation(const AttentionSizes& sizes, std::int64_t turned, double base);

  // Turns the first `heads` heads of all rows, or turns them back. `to` may be `from`.
  void turn(RowsOf<const float> from, RowsOf<float> to, std::int64_t heads) const {
    turn(from, to, heads, 1);
  }
  void turn_back(RowsOf<float> rows, std::int64_t heads) const {
    turn({rows.data, rows.stride}, rows, heads, -1);
  }

 private:
  void turn(RowsOf<const float> from, RowsOf<float> to, std::int64_t heads, float direction) const;

  AttentionSizes sizes_;
  std::int64_t turned_;
  std::vector<float> cosines_;  // (elements, turned / 2)
  std::vector<float> sines_;
};

}  // namespace paceline::runtime::onednn
