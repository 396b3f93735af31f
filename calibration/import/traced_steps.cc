// Tests: tests/calibration/traced_steps_test.cc.
#include "calibration/import/traced_steps.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

namespace paceline::calibration {
namespace {

constexpr double us = 1e-6;

// Stretches of time that do not touch, in order.
using Stretches = std::vector<std::pair<double, double>>;

Stretches merged(Stretches stretches) {
  std::sort(stretches.begin(), stretches.end());
  Stretches all;
  for (const auto& [begin, end] : stretches) {
    if (end <= begin) continue;
    if (!all.empty() && begin <= all.back().second)
      all.back().second = std::max(all.back().second, end);
    else
      all.emplace_back(begin, end);
  }
  return all;
}

Stretches of_kernels(const std::vector<KinetoTrace::Kernel>& kernels) {
  Stretches stretches;
  for (const KinetoTrace::Kernel& kernel : kernels)
    stretches.emplace_back(kernel.begin, kernel.begin + kernel.duration);
  return merged(std::move(stretches));
}

bool is_loader(const std::string& name) {
  return name.starts_with("enumerate(DataLoader)");
}

Stretches of_loader(const KinetoTrace& trace) {
  Stretches stretches;
  for (const KinetoTrace::Stretch& stretch : trace.annotations)
    if (is_loader(stretch.name)) stretches.emplace_back(stretch.begin, stretch.end);
  for (const KinetoTrace::Operator& op : trace.operators)
    if (is_loader(op.name)) stretches.emplace_back(op.begin, op.end);
  return merged(std::move(stretches));
}

Stretches both(const Stretches& a, const Stretches& b) {
  Stretches all = a;
  all.insert(all.end(), b.begin(), b.end());
  return merged(std::move(all));
}

double length(const Stretches& stretches, double from, double to) {
  double sum = 0;
  for (const auto& [begin, end] : stretches)
    sum += std::max(0.0, std::min(end, to) - std::max(begin, from));
  return sum;
}

}  // namespace

std::optional<TracedSteps> traced_steps(const KinetoTrace& trace) {
  const Stretches computed = of_kernels(trace.kernels);
  if (computed.empty()) return std::nullopt;
  const Stretches sent = of_kernels(trace.communications);
  const Stretches busy = both(computed, sent);
  const std::vector<KinetoTrace::Step> steps = trace.steps();
  double begin = busy.front().first;
  double end = busy.back().second;
  if (std::isfinite(steps.front().begin)) begin = steps.front().begin;
  if (std::isfinite(steps.back().end)) end = std::max(end, steps.back().end);
  if (end <= begin) return std::nullopt;
  const Stretches without_idle = both(busy, of_loader(trace));
  const auto of_step = [&](double time) {
    return Seconds{std::max(0.0, time) * us / static_cast<double>(steps.size())};
  };
  const double computes = length(computed, begin, end);
  const double works = length(busy, begin, end);
  const double is_fed = length(without_idle, begin, end);
  return TracedSteps{.steps = static_cast<int>(steps.size()),
                     .iteration = of_step(end - begin),
                     .computation = of_step(computes),
                     .communication = of_step(length(sent, begin, end)),
                     .exposed = of_step(works - computes),
                     .input = of_step(is_fed - works),
                     .idle = of_step(end - begin - is_fed)};
}

}  // namespace paceline::calibration
