// Tests: tests/models/sharding_test.cc.
#include "models/layout/sharding.h"

#include <algorithm>
#include <array>
#include <utility>

#include "models/base/error.h"
#include "models/base/names.h"

namespace paceline::models {
namespace {

constexpr auto split = TensorPlacement::split;

constexpr std::array table = {
    Sharding{.kind = ShardingKind::none, .name = "none"},
    Sharding{.kind = ShardingKind::zero1, .name = "zero1", .states = split},
    Sharding{.kind = ShardingKind::zero2, .name = "zero2", .gradients = split, .states = split},
    Sharding{.kind = ShardingKind::zero3,
             .name = "zero3",
             .parameters = split,
             .gradients = split,
             .states = split},
};

}  // namespace

std::span<const Sharding> shardings() {
  return table;
}

const Sharding& sharding(ShardingKind kind) {
  const auto* found = std::ranges::find(table, kind, &Sharding::kind);
  PACELINE_ASSERT(found != table.end(), "every kind has its row");
  return *found;
}

std::string_view name(ShardingKind kind) {
  return sharding(kind).name;
}

ShardingKind sharding_from_name(std::string_view text) {
  static const auto names = [] {
    std::array<std::pair<ShardingKind, std::string_view>, table.size()> all;
    std::ranges::transform(table, all.begin(),
                           [](const Sharding& row) { return std::pair(row.kind, row.name); });
    return all;
  }();
  return value_named(names, "sharding", text);
}

}  // namespace paceline::models
