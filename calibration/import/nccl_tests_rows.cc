// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests_rows.h"

#include <fmt/core.h>

#include <cmath>
#include <optional>
#include <string_view>
#include <utility>

#include "calibration/import/table_text.h"

namespace paceline::calibration {
namespace {

constexpr double most_error = 1e-2;

std::optional<models::WireType> wire_of(std::string_view type) {
  if (type == "float") return models::WireType::fp32;
  if (type == "half") return models::WireType::fp16;
  if (type == "bfloat16") return models::WireType::bf16;
  return std::nullopt;
}

}  // namespace

void NcclTestsRows::add(const NcclTestsRow& row, const InputPlace& place) {
  if (++rows_ > most_table_rows)
    throw InputError(place, "there are more than 100000 rows", "give fewer");
  if (row.bytes == Bytes{0}) {
    ++empty_;
    return;
  }
  ImportedCurve& curve = curves_[printable(row.type)];
  if (curve.samples.empty()) {
    curve.library = "nccl";
    curve.what =
        fmt::format("all_reduce_perf, {}, {} {}", row.in_place ? "in place" : "out of place",
                    printable(row.type), printable(row.operation));
  }
  curve.samples.push_back({row.bytes, row.time});
  if (row.wrong > most_error) ++wrong_;
  if (row.algbw <= 0 || row.busbw <= 0 || row.algbw < algbw_) return;
  algbw_ = row.algbw;
  busbw_ = row.busbw;
  constexpr double giga = 1e9;
  seconds_by_algbw_ = row.time.value() * row.algbw * giga / row.bytes.value();
  fastest_ = place;
}

Imported NcclTestsRows::finish(const std::string& version, int ranks, bool between_nodes,
                               const std::string& file) {
  if (curves_.empty())
    throw InputError({file}, "a table without rows", "give the output of a finished run");
  Imported imported{.tool = "nccl-tests", .version = version};
  check_time();
  const bool listed = ranks > 0;
  if (!listed) ranks = ranks_of_bandwidth();
  if (!listed && ranks > 0)
    imported.remarks.push_back(fmt::format(
        "no device is listed; busbw is {:.3f} algbw, as over {} ranks", busbw_ / algbw_, ranks));
  for (auto& [type, curve] : curves_) {
    curve.ranks = ranks;
    if (listed) curve.between_nodes = between_nodes;
    curve.wire = wire_of(type);
    if (!curve.wire) {
      imported.remarks.push_back(fmt::format(
          "{} rows of type {} are left out: gradients travel as float, half or bfloat16",
          curve.samples.size(), type));
      continue;
    }
    imported.curves.push_back(std::move(curve));
  }
  if (imported.curves.empty())
    throw InputError({file}, "no row has type float, half or bfloat16",
                     "run all_reduce_perf -d float, half or bfloat16");
  if (ranks > 0) check_bus_bandwidth(ranks);
  if (empty_ > 0)
    imported.remarks.push_back(fmt::format("rows of 0 bytes are left out: {}", empty_));
  if (wrong_ > 0)
    imported.remarks.push_back(
        fmt::format("rows with wrong results, whose times are not to be trusted: {}", wrong_));
  return imported;
}

// busbw is algbw 2(p-1)/p for an all-reduce, and less for every other collective (nccl-tests,
// doc/PERFORMANCE.md). Both are printed with two decimals.
constexpr double half_of_last_decimal = 0.005;

void NcclTestsRows::check_bus_bandwidth(int ranks) const {
  if (algbw_ < 200 * half_of_last_decimal) return;
  const double expected = 2.0 * (ranks - 1) / ranks;
  const double found = busbw_ / algbw_;
  const double tolerance = 0.01 + 2 * half_of_last_decimal / algbw_;
  if (std::abs(found - expected) <= tolerance) return;
  throw InputError(fastest_,
                   fmt::format("busbw is {:.3f} algbw, and {:.3f} in an all-reduce over {} rank{}",
                               found, expected, ranks, ranks == 1 ? "" : "s"),
                   "give the output of one run of all_reduce_perf");
}

// A time that was printed in another unit is a thousand times off.
void NcclTestsRows::check_time() const {
  constexpr double most_rounding = 0.5;
  if (algbw_ < 200 * half_of_last_decimal || std::abs(seconds_by_algbw_ - 1) < most_rounding)
    return;
  throw InputError(
      fastest_,
      fmt::format("the time is {:.3g} times what the size takes at its algbw", seconds_by_algbw_),
      "give the output as it is");
}

int NcclTestsRows::ranks_of_bandwidth() const {
  if (algbw_ < 200 * half_of_last_decimal) return 0;
  const double least = (busbw_ - half_of_last_decimal) / (algbw_ + half_of_last_decimal);
  const double most = (busbw_ + half_of_last_decimal) / (algbw_ - half_of_last_decimal);
  if (most < 1)
    throw InputError(
        fastest_,
        fmt::format("busbw is {:.3f} algbw, and 1 or more in an all-reduce", busbw_ / algbw_),
        "give the output of all_reduce_perf");
  if (least >= 2 || most >= 2) return 0;
  const auto fewest = static_cast<int>(std::ceil(2 / (2 - least)));
  return fewest == static_cast<int>(std::floor(2 / (2 - most))) ? fewest : 0;
}

}  // namespace paceline::calibration
