// A library's calibrated curve: which one serves a job, what it says at other ranks and beyond the
// sizes that were measured, and how its interval widens there.
#include "simulator/cost/library_curve.h"

#include <gtest/gtest.h>

#include <cmath>

#include "models/base/interval.h"

namespace paceline::simulator {
namespace {

using models::Library;
using models::WireType;

constexpr double alpha_s = 1e-3;
constexpr double beta_s = 4e-8;

// Measured from 1 KiB to 1 MiB, known to 10 % in alpha and beta, with a residual of 2 %.
models::CalibratedCurve curve(const std::string& library, int ranks, bool between_nodes = true) {
  const auto figure = [](auto value) {
    return Figure<decltype(value)>{value, 0.9 * value, 1.1 * value, Provenance::calibrated, ""};
  };
  return {.kind = models::CurveKind::all_reduce,
          .between_nodes = between_nodes,
          .library = library,
          .ranks = ranks,
          .measured = models::MeasuredSizes{Bytes{1024}, Bytes{1 << 20}},
          .pieces = {{Bytes{0}, figure(Seconds{alpha_s}), figure(SecondsPerByte{beta_s})}},
          .residual = 0.02,
          .source = library + " on " + std::to_string(ranks)};
}

models::Profile profile_of(std::vector<models::CalibratedCurve> curves) {
  models::Profile profile;
  profile.curves = std::move(curves);
  return profile;
}

struct Times {
  double stated;
  double fast;
  double slow;
};

Times times(const models::Profile& profile, const LibraryJob& job, Bytes bytes,
            models::Library library = Library::open_mpi) {
  const auto at = [&](Bound bound) {
    return LibraryCurve::find(&profile, library, job, bound)->time(bytes).value();
  };
  return {at(Bound::stated), at(Bound::fast), at(Bound::slow)};
}

std::string described(const models::Profile& profile, const LibraryJob& job,
                      models::Library library = Library::open_mpi, double least = 2048,
                      double most = 4096) {
  const auto found = LibraryCurve::find(&profile, library, job, Bound::stated);
  return found ? found->described(Bytes{least}, Bytes{most}) : "none";
}

TEST(LibraryCurve, AtItsOwnRanksItIsUsedAsItIs) {
  const models::Profile profile = profile_of({curve("open-mpi", 8)});
  const double n = 65536;
  const Times t = times(profile, {.ranks = 8}, Bytes{n});
  const double expected = alpha_s + n * beta_s;
  EXPECT_DOUBLE_EQ(t.stated, expected);
  const double misfit = normal_reach * 0.02;
  EXPECT_DOUBLE_EQ(t.slow, 1.1 * expected * (1 + misfit));
  EXPECT_DOUBLE_EQ(t.fast, 0.9 * expected / (1 + misfit));
  EXPECT_EQ(described(profile, {.ranks = 8}), "its calibrated curve");
  EXPECT_EQ(times(profile, {.ranks = 1}, Bytes{n}).stated, 0);
}

TEST(LibraryCurve, AtOtherRanksItGrowsAsHalvingDoublingDoesWithinARingAndNoGrowth) {
  const models::Profile profile = profile_of({curve("open-mpi", 8)});
  const Times small = times(profile, {.ranks = 64}, Bytes{1024});
  const double bytes_s = 1024 * beta_s * (63.0 / 64) / (7.0 / 8);
  EXPECT_DOUBLE_EQ(small.stated, alpha_s * 6 / 3 + bytes_s);
  // From as long as over 8 ranks to what a ring of 64 takes, 63 / 7 times as many steps.
  EXPECT_LT(small.fast, 0.9 * (alpha_s + 1024 * beta_s));
  EXPECT_GT(small.slow, 1.1 * (9 * alpha_s + bytes_s));
  const Times fewer = times(profile, {.ranks = 4}, Bytes{1024});
  EXPECT_DOUBLE_EQ(fewer.stated, alpha_s * 2 / 3 + 1024 * beta_s * (3.0 / 4) / (7.0 / 8));
  EXPECT_LT(fewer.fast, fewer.stated);
  EXPECT_GT(fewer.slow, 1.1 * alpha_s);
  EXPECT_EQ(described(profile, {.ranks = 64}), "its calibrated curve of 8 ranks, scaled to 64");
  EXPECT_EQ(described(profile, {.ranks = 8, .has_own_routes = true}),
            "its calibrated curve, which knows neither this fabric nor this placement");
}

TEST(LibraryCurve, RoutesBoundItWhereTheyAreKnown) {
  const models::Profile profile = profile_of({curve("open-mpi", 8)});
  const LibraryJob slow{
      .ranks = 8, .has_own_routes = true, .least_on_routes = SecondsPerByte{8 * beta_s}};
  const Times t = times(profile, slow, Bytes{1e6});
  EXPECT_DOUBLE_EQ(t.stated, alpha_s + 8e6 * beta_s);
  EXPECT_LE(t.fast, t.stated);
  EXPECT_GE(t.slow, t.stated);
  const LibraryJob fast{
      .ranks = 8, .has_own_routes = true, .least_on_routes = SecondsPerByte{0.5 * beta_s}};
  EXPECT_DOUBLE_EQ(times(profile, fast, Bytes{1e6}).stated,
                   times(profile, {.ranks = 8}, Bytes{1e6}).stated);
  EXPECT_EQ(described(profile, slow),
            "its calibrated curve, and no less than its routes need here");
}

TEST(LibraryCurve, BeyondTheMeasuredSizesItGoesOnAndItsIntervalWidensWithEveryDoubling) {
  const models::Profile profile = profile_of({curve("open-mpi", 8)});
  const LibraryJob job{.ranks = 8};
  const auto above = [&](double bytes) {
    const Times t = times(profile, job, Bytes{bytes});
    EXPECT_DOUBLE_EQ(t.stated, alpha_s + bytes * beta_s) << bytes;
    return t.slow / t.stated / 1.1 - 1;
  };
  const double misfit = normal_reach * 0.02;
  EXPECT_NEAR(above(1 << 20), misfit, 1e-12);
  EXPECT_NEAR(above(1 << 21), 2 * misfit, 1e-12);
  EXPECT_NEAR(above(1 << 24), 5 * misfit, 1e-12);
  EXPECT_NEAR(above(1024), misfit, 1e-12);
  EXPECT_NEAR(above(256), 3 * misfit, 1e-12);
  EXPECT_EQ(described(profile, job, Library::open_mpi, 512, 1 << 24),
            "its calibrated curve, extrapolated beyond 1 MiB, extrapolated below 1 KiB");
  // The fast end widens, too, and stays above 0.
  const Times far = times(profile, job, Bytes{1e15});
  EXPECT_GT(far.fast, 0);
  EXPECT_LT(far.fast, far.stated / 1.9);
}

TEST(LibraryCurve, ATimeIsNeverKnownBetterThanFitsLookFor) {
  models::Profile profile = profile_of({curve("open-mpi", 8)});
  profile.curves[0].residual = 0.001;
  const Times t = times(profile, {.ranks = 8}, Bytes{4096});
  EXPECT_NEAR(t.slow / t.stated, 1.1 * (1 + normal_reach * models::least_misfit), 1e-12);
}

TEST(LibraryCurve, TheNearestRanksServeAndThenTheWireType) {
  models::Profile profile = profile_of({curve("nccl", 8), curve("nccl", 32), curve("nccl", 32)});
  profile.curves[2].wire = WireType::fp16;
  const auto of = [&](int ranks, WireType wire) {
    return described(profile, {.ranks = ranks, .wire = wire}, Library::nccl);
  };
  EXPECT_EQ(of(32, WireType::fp32), "its calibrated curve (nccl on 32)");
  EXPECT_EQ(of(32, WireType::fp16), "its calibrated curve (nccl on 32)");
  EXPECT_EQ(of(32, WireType::bf16), "its calibrated curve of fp32 (nccl on 32)");
  EXPECT_EQ(of(8, WireType::fp16), "its calibrated curve of fp32 (nccl on 8)");
  EXPECT_EQ(of(12, WireType::fp32), "its calibrated curve of 8 ranks, scaled to 12 (nccl on 8)");
}

TEST(LibraryCurve, ACurveServesItsOwnLibraryOnly) {
  const models::Profile both = profile_of({curve("mpi", 8), curve("nccl", 8)});
  EXPECT_EQ(described(both, {.ranks = 8}), "its calibrated curve of mpi (mpi on 8)");
  EXPECT_EQ(described(both, {.ranks = 8}, Library::nccl), "its calibrated curve (nccl on 8)");
  const models::Profile gloo = profile_of({curve("gloo", 8)});
  EXPECT_EQ(described(gloo, {.ranks = 8}), "none");
  EXPECT_FALSE(has_library_curve(&gloo, Library::nccl));
  EXPECT_FALSE(has_library_curve(nullptr, Library::nccl));
  // Open MPI's own is better than one of some MPI, though of other ranks.
  const models::Profile two = profile_of({curve("mpi", 8), curve("open-mpi", 4)});
  EXPECT_EQ(described(two, {.ranks = 8}), "its calibrated curve of 4 ranks, scaled to 8");
}

TEST(LibraryCurve, NodesAreToldApart) {
  const models::Profile within = profile_of({curve("open-mpi", 8, false), curve("nccl", 8, false)});
  EXPECT_EQ(described(within, {.ranks = 8, .between_nodes = false}), "its calibrated curve");
  EXPECT_EQ(described(within, {.ranks = 16, .between_nodes = true}), "none");
  const models::Profile between = profile_of({curve("open-mpi", 8), curve("nccl", 8)});
  const LibraryJob in_a_node{.ranks = 8, .between_nodes = false};
  EXPECT_EQ(described(between, in_a_node), "its calibrated curve between nodes");
  EXPECT_EQ(described(between, in_a_node, Library::nccl), "none");
}

}  // namespace
}  // namespace paceline::simulator
