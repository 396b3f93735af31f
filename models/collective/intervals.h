// A value for each element of a bucket, kept for intervals over which it is equal. By it a compiler
// of schedules knows what touched an element last.
#pragma once

#include <cstdint>
#include <iterator>
#include <map>

#include "models/collective/span.h"

namespace paceline::models {

template <class Value>
class Intervals {
 public:
  explicit Intervals(std::int64_t elements) {
    starts_[0];
    starts_[elements];
  }

  // Calls visit(span, value) for each interval of the span, which it cuts at its ends.
  template <class F>
  void visit(Span<std::int64_t> span, F&& visit) {
    if (span.size == 0) return;
    auto it = cut(span.begin);
    const auto end = cut(span.end());
    while (it != end) {
      const auto next = std::next(it);
      visit(Span<std::int64_t>{it->first, next->first - it->first}, it->second);
      it = next;
    }
  }

 private:
  auto cut(std::int64_t at) {
    const auto it = starts_.lower_bound(at);
    if (it != starts_.end() && it->first == at) return it;
    return starts_.emplace_hint(it, at, std::prev(it)->second);
  }

  std::map<std::int64_t, Value> starts_;
};

}  // namespace paceline::models
