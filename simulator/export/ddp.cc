// Tests: tests/simulator/export/ddp_test.cc.
#include "simulator/export/ddp.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "models/base/parse_units.h"
#include "models/plan/strategy.h"
#include "simulator/cost/nccl_model.h"

namespace paceline::simulator {
namespace {

constexpr double mebibyte = 1024.0 * 1024;
const Bytes of_parameter = models::element_size(models::WireType::fp32);

// The cap of the first bucket beside a cap that is given.
enum class FirstBucket { as_others, by_default };

Bytes largest_bucket(const models::Plan& plan) {
  Bytes largest{0};
  for (const models::Bucket& bucket : plan.buckets)
    largest = std::max(largest, static_cast<double>(bucket.elements) * of_parameter);
  return largest;
}

// The caps of the grid, ascending, in whole MiB. The last one holds all gradients.
std::vector<Bytes> caps_of(const models::Plan& plan, const models::NetworkWork& network) {
  const double all =
      std::ceil(static_cast<double>(network.parameters()) * of_parameter.value() / mebibyte);
  std::vector<double> sizes = {std::ceil(largest_bucket(plan).value() / mebibyte), all};
  for (double size = 1; size < all; size *= 2) {
    sizes.push_back(size);
    if (1.5 * size < all && size > 1) sizes.push_back(1.5 * size);
  }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  std::vector<Bytes> caps;
  for (const double size : sizes) caps.push_back(Bytes{std::max(1.0, size) * mebibyte});
  return caps;
}

// The plan that DDP makes with the cap, or by default. Before PyTorch 2.3 the first bucket has
// its default also beside a cap.
models::Plan plan_with(std::optional<Bytes> cap, FirstBucket first, const models::Strategy& ddp,
                       const PredictionRequest& request) {
  models::Thresholds thresholds;
  models::take_buckets_of_ddp(*ddp.other, request.wire, request.network.parameters(), thresholds);
  if (cap) thresholds.fusion = *cap * (models::element_size(request.wire) / of_parameter);
  if (cap && first == FirstBucket::as_others) thresholds.first_fusion.reset();
  return models::make_plan(ddp, request.network.gradients, request.ranks, request.wire, thresholds);
}

bool has_buckets_of(const models::Plan& plan, const models::Plan& other) {
  const auto same = [](const models::Bucket& a, const models::Bucket& b) {
    return a.first_gradient == b.first_gradient && a.gradient_count == b.gradient_count &&
           a.elements == b.elements;
  };
  return std::equal(plan.buckets.begin(), plan.buckets.end(), other.buckets.begin(),
                    other.buckets.end(), same);
}

std::string beside(Seconds iteration, Seconds asked) {
  constexpr double percent = 100;
  return fmt::format("{}, {:+.1f} % of the plan's {}", to_text(iteration),
                     percent * (iteration / asked - 1), to_text(asked));
}

std::string buckets_text(int buckets) {
  return fmt::format("{} bucket{}", buckets, buckets == 1 ? "" : "s");
}

std::vector<std::string> notes_of(const models::Plan& plan, const DdpSettings& settings,
                                  int accumulate) {
  std::vector<std::string> notes;
  const std::string takes = fmt::format("an iteration is predicted to take {}",
                                        beside(settings.best.iteration, settings.asked));
  notes.push_back(
      settings.is_plan
          ? fmt::format("DDP makes the plan's {}, and {}", buckets_text(settings.best.buckets),
                        takes)
          : fmt::format("the plan cannot be said as it is: DDP would make {} of its {}, and {}",
                        buckets_text(settings.best.buckets), plan.buckets.size(), takes));
  if (settings.best.cap)
    notes.push_back(fmt::format("with DDP's default caps of 25 MiB and 1 MiB: {}, {}",
                                buckets_text(settings.by_default.buckets),
                                beside(settings.by_default.iteration, settings.asked)));
  const bool asks_nccl = settings.calls == "ddp";
  for (const models::PlannedSchedule& planned : plan.schedules) {
    if (asks_nccl ? planned.library() == models::Library::nccl : planned.algorithm == "ring")
      continue;
    notes.push_back(fmt::format("{}: DDP has no such choice, and the process group sends by {}",
                                described(planned),
                                asks_nccl ? "NCCL's own all-reduce" : "a ring"));
  }
  if (plan.overlap != models::Overlap::wait_free)
    notes.push_back(fmt::format("overlap {}: DDP sends a bucket once its gradients are there",
                                name(plan.overlap)));
  if (plan.streams > 1)
    notes.push_back(fmt::format("{} streams: DDP sends its buckets on one", plan.streams));
  if (plan.is_of_other_system())
    notes.push_back(
        fmt::format("{} is another system's way: DDP has neither its parts nor its "
                    "waits",
                    plan.strategy));
  if (accumulate > 1)
    notes.push_back(
        fmt::format("{} accumulated batches are the script's: with ddp.no_sync() for "
                    "all but the last",
                    accumulate));
  return notes;
}

const char* hook_of(models::WireType wire) {
  switch (wire) {
    case models::WireType::fp32:
      return nullptr;
    case models::WireType::fp16:
      return "fp16_compress_hook";
    case models::WireType::bf16:
      return "bf16_compress_hook";
  }
  return nullptr;
}

}  // namespace

std::string argument(const DdpCap& cap) {
  if (!cap.cap) return "";
  return fmt::format("bucket_cap_mb={}", static_cast<std::int64_t>(cap.cap->value() / mebibyte));
}

DdpSettings ddp_settings(const models::Plan& plan, const PredictionRequest& request) {
  const models::Strategy& ddp =
      models::strategy(sums_by_nccl(request.cluster.device) ? "ddp" : "ddp-ring");
  PredictionRequest asked = request;
  asked.thresholds = {};
  asked.overlap = {};
  Predictor predictor(asked);
  DdpSettings settings{.asked = predictor.run(plan).steady.period, .calls = ddp.name};
  const auto with = [&](std::optional<Bytes> cap) {
    models::Plan made = plan_with(cap, FirstBucket::as_others, ddp, asked);
    const int buckets = static_cast<int>(made.buckets.size());
    return std::pair(DdpCap{cap, predictor.run(made).steady.period, buckets}, std::move(made));
  };
  std::tie(settings.by_default, settings.plan) = with(std::nullopt);
  settings.best = settings.by_default;
  for (const Bytes cap : caps_of(plan, request.network)) {
    // Another cap than the one so far has to be sooner by more than noise.
    constexpr double alike = 1e-4;
    auto [candidate, made] = with(cap);
    if (candidate.iteration >= settings.best.iteration * (1 - alike)) continue;
    settings.best = candidate;
    settings.plan = std::move(made);
  }
  settings.is_plan = has_buckets_of(settings.plan, plan);
  if (settings.best.cap) {
    const auto with_first = [&](FirstBucket first) {
      return plan_with(settings.best.cap, first, ddp, asked);
    };
    if (!has_buckets_of(with_first(FirstBucket::as_others), with_first(FirstBucket::by_default)))
      settings.first_bucket = settings.best.cap;
  }
  return settings;
}

ExportedText ddp_text(const std::string& title, const models::Plan& plan,
                      const PredictionRequest& request) {
  const DdpSettings settings = ddp_settings(plan, request);
  ExportedText exported{.text = fmt::format("# {}\n", title),
                        .notes = notes_of(plan, settings, request.accumulate)};
  for (const std::string& note : exported.notes) exported.text += fmt::format("# {}\n", note);
  const char* hook = hook_of(plan.wire);
  if (settings.first_bucket) exported.text += "import torch.distributed\n";
  if (hook != nullptr)
    exported.text += "from torch.distributed.algorithms.ddp_comm_hooks import default_hooks\n";
  exported.text += "from torch.nn.parallel import DistributedDataParallel\n\n";
  if (settings.first_bucket)
    exported.text += fmt::format(
        "torch.distributed._DEFAULT_FIRST_BUCKET_BYTES = {}  # for PyTorch before 2.3\n",
        static_cast<std::int64_t>(settings.first_bucket->value()));
  exported.text +=
      settings.best.cap
          ? fmt::format("ddp = DistributedDataParallel(model, {})\n", argument(settings.best))
          : "ddp = DistributedDataParallel(model)  # its default: 25 MiB, the first bucket 1 MiB\n";
  if (hook != nullptr)
    exported.text += fmt::format("ddp.register_comm_hook(None, default_hooks.{})\n", hook);
  return exported;
}

}  // namespace paceline::simulator
