// Tests: tests/calibration/check_test.cc.
#include "calibration/check/collective_check.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/cluster/placement.h"
#include "simulator/cost/link_factors.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/iteration/all_reduce_time.h"

namespace paceline::calibration {
namespace {

// The factor between `least` and `most` at which a time that falls with it is `wanted`; an end where it is
// beyond.
double factor_where(const std::function<Seconds(double)>& time, Seconds wanted, double least,
                    double most) {
  constexpr int halvings = 30;
  for (int i = 0; i < halvings; ++i) {
    const double middle = std::sqrt(least * most);
    (time(middle) > wanted ? least : most) = middle;
  }
  return std::sqrt(least * most);
}

}  // namespace

bool CheckedCollective::is_slow() const {
  return std::ranges::any_of(
      sizes, [](const CheckedPart& size) { return size.verdict == Verdict::slower; });
}

ExpectedCollectives::ExpectedCollectives(const Expectation& expectation,
                                         const MeasuredCollective& measured)
    : expectation_(expectation), measured_(measured) {}

std::vector<Figure<Seconds>> ExpectedCollectives::times(const models::Cluster& cluster,
                                                        const models::Profile* profile,
                                                        const std::vector<Bytes>& sizes) const {
  simulator::AllReduceTimer timer({.cluster = cluster,
                                   .profile = profile,
                                   .ranks = measured_.ranks,
                                   .wire = measured_.type,
                                   .nccl_version = expectation_.nccl_version});
  const bool is_by_nccl = simulator::sums_by_nccl(cluster.device);
  std::vector<Figure<Seconds>> all;
  for (const Bytes size : sizes) {
    const Bytes bucket = simulator::bucket_of(measured_.collective, measured_.ranks, size);
    if (is_by_nccl) {
      all.push_back(timer.by_nccl({.only = {}, .collective = measured_.collective}, bucket).time);
      continue;
    }
    const auto by_curve = timer.by_curve(models::Library::open_mpi, bucket, measured_.collective);
    if (!by_curve)
      throw InputError({measured_.file},
                       fmt::format("nothing says how long an {} takes on {}, whose ranks do not "
                                   "run NCCL",
                                   name(measured_.collective), cluster.name),
                       "give --profile of paceline calibrate, made when all was well");
    all.push_back(by_curve->time);
  }
  return all;
}

CheckedCollective ExpectedCollectives::checked() const {
  CheckedCollective checked{.file = measured_.file,
                            .what = measured_.what,
                            .collective = measured_.collective,
                            .ranks = measured_.ranks};
  const std::vector<Figure<Seconds>> expected =
      times(expectation_.cluster, expectation_.profile, sizes());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const SizeSpread& time = measured_.times[i];
    checked.sizes.push_back(
        {.part = fmt::format("{} of {}", name(measured_.collective), to_text_binary(time.bytes)),
         .file = measured_.file,
         .expected = expected[i],
         .measured = time.median,
         .low = time.least,
         .high = time.most,
         .verdict = verdict(time.median, expected[i].low, expected[i].high)});
  }
  if (expectation_.cluster.platform != nullptr) return checked;
  const SizeSpread& largest = measured_.times.back();
  if (!simulator::sums_by_nccl(expectation_.cluster.device)) {  // curves do not follow links
    checked.bandwidth = expected.back().value / largest.median;
    return checked;
  }
  constexpr double most_loss = 1024;
  constexpr double most_gain = 8;
  checked.bandwidth =
      factor_where([&](double factor) { return time(with_bandwidth(factor), largest.bytes); },
                   largest.median, 1 / most_loss, most_gain);
  return checked;
}

double ExpectedCollectives::distance(const models::Cluster& cluster) const {
  const std::vector<Figure<Seconds>> expected = times(cluster, nullptr, sizes());
  double sum = 0;
  for (std::size_t i = 0; i < expected.size(); ++i)
    sum += std::pow(std::log(measured_.times[i].median / expected[i].value), 2);
  return std::sqrt(sum / static_cast<double>(expected.size()));
}

std::vector<Bytes> ExpectedCollectives::sizes() const {
  std::vector<Bytes> all;
  for (const SizeSpread& time : measured_.times) all.push_back(time.bytes);
  return all;
}

Seconds ExpectedCollectives::time(const models::Cluster& cluster, Bytes size) const {
  return times(cluster, expectation_.profile, {size}).front().value;
}

models::Cluster ExpectedCollectives::with_bandwidth(double factor) const {
  const bool is_between = models::used_nodes(expectation_.cluster, measured_.ranks) > 1;
  return simulator::with_links(
      expectation_.cluster,
      {.bandwidth = factor,
       .links = is_between ? simulator::Links::between_nodes : simulator::Links::in_nodes});
}

}  // namespace paceline::calibration
