// Tests: tests/calibration/import_nccl_tests_test.cc.
#include "calibration/import/nccl_tests_rows.h"

#include <fmt/core.h>

#include <algorithm>
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
  count_row(rows_, place);
  if (row.bytes == Bytes{0}) {
    ++empty_;
    return;
  }
  ImportedCurve& curve = curves_[{printable(row.type), printable(row.operation)}];
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

Imported NcclTestsRows::finish(const std::string& version, NcclTestsRun run,
                               const std::string& file) {
  if (curves_.empty())
    throw InputError({file}, "a table without rows", "give the output of a finished run");
  Imported imported{.tool = "nccl-tests", .version = version, .remarks = std::move(run.remarks)};
  check_time();
  if (!run.ranks.is_known()) {
    const Count allowed = ranks_of_bandwidth();
    run.ranks = {std::max(run.ranks.least, allowed.least), std::max(run.ranks.least, allowed.most)};
    if (run.ranks.is_known()) {
      const std::string_view list = imported.remarks.empty() ? "no device is listed; " : "";
      imported.remarks.push_back(fmt::format("{}busbw is {:.3f} algbw, as over {} ranks", list,
                                             busbw_ / algbw_, run.ranks.least));
    }
  }
  for (auto& [kind, curve] : curves_) {
    const std::string& type = kind.first;
    const std::string& operation = kind.second;
    curve.ranks = run.ranks;
    curve.nodes = run.nodes;
    curve.wire = wire_of(type);
    const auto leave_out = [&, samples = curve.samples.size()](std::string_view why) {
      imported.remarks.push_back(
          fmt::format("rows of {} {} are left out, {}: {}", type, operation, why, samples));
    };
    if (!curve.wire) {
      leave_out("because gradients travel as float, half or bfloat16");
    } else if (const std::string chosen = reduction_of(type); operation != chosen) {
      leave_out(fmt::format("because there are rows of {} {}", type, chosen));
    } else {
      imported.curves.push_back(std::move(curve));
    }
  }
  if (imported.curves.empty())
    throw InputError({file}, "no row has type float, half or bfloat16",
                     "run all_reduce_perf -d float, half or bfloat16");
  if (run.ranks.is_known()) check_bus_bandwidth(run.ranks.least);
  if (empty_ > 0)
    imported.remarks.push_back(fmt::format("rows of 0 bytes are left out: {}", empty_));
  if (wrong_ > 0)
    imported.remarks.push_back(
        fmt::format("rows with wrong results, whose times are not to be trusted: {}", wrong_));
  return imported;
}

// Gradients are summed; what averages them does the same work.
std::string NcclTestsRows::reduction_of(const std::string& type) const {
  for (const char* operation : {"sum", "avg"}) {
    if (curves_.contains({type, operation})) return operation;
  }
  return curves_.lower_bound({type, ""})->first.second;
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

Count NcclTestsRows::ranks_of_bandwidth() const {
  Count ranks{.least = 2};
  if (algbw_ < 200 * half_of_last_decimal) return ranks;
  const double least = (busbw_ - half_of_last_decimal) / (algbw_ + half_of_last_decimal);
  const double most = (busbw_ + half_of_last_decimal) / (algbw_ - half_of_last_decimal);
  if (most < 1)
    throw InputError(
        fastest_,
        fmt::format("busbw is {:.3f} algbw, and 1 or more in an all-reduce", busbw_ / algbw_),
        "give the output of all_reduce_perf");
  if (least >= 2) return ranks;
  const auto ranks_at = [&](double ratio) {
    return ratio < 2 ? std::min(2 / (2 - ratio), static_cast<double>(ranks.most)) : ranks.most;
  };
  const auto fewest = static_cast<int>(std::ceil(ranks_at(least)));
  const auto greatest = static_cast<int>(std::floor(ranks_at(most)));
  // Where no number is between the two, the rows are of another collective, or rounded otherwise.
  return fewest <= greatest ? Count{std::max(fewest, 2), greatest} : ranks;
}

}  // namespace paceline::calibration
