// Tests: tests/cli/trust_test.py, tests/cli/plan_test.py (end to end).
#include "cli/job/job_memory.h"

#include <fmt/core.h>

#include "models/base/parse_units.h"
#include "simulator/cost/device_memory.h"

namespace paceline::job {

MemoryNeed memory_need(const simulator::StrategyPrediction& row) {
  return {row.memory.total(), row.largest_batch, row.fits};
}

MemoryNeed memory_need(const Job& job, const LoadedNetwork& network, const models::Plan& plan) {
  const simulator::MemoryRequest request =
      simulator::memory_request(network.work, plan, job.question);
  const Bytes capacity = job.cluster.device.memory.value;
  const Bytes of_rank = simulator::device_memory(request).total();
  return {of_rank, simulator::largest_batch(request, capacity), of_rank <= capacity};
}

bool checks_memory(const Job& job) {
  return !job.question.compute_is_exact && !job.question.ignore_memory;
}

std::string too_large_text(const Job& job, const MemoryNeed& need) {
  const models::Device& device = job.cluster.device;
  return fmt::format("a batch of {} does not fit the {} of a {}: a rank needs {}",
                     job.question.batch_per_rank, to_text(device.memory.value), device.name,
                     to_text(need.of_rank));
}

std::string largest_batch_text(const MemoryNeed& need) {
  return need.largest_batch > 0
             ? fmt::format("the largest batch that fits is {}", need.largest_batch)
             : std::string("not even a batch of 1 fits");
}

InputError does_not_fit(const Job& job, const LoadedNetwork& network, const models::Plan& plan,
                        const std::string& strategy) {
  const MemoryNeed need = memory_need(job, network, plan);
  simulator::MemoryRequest recomputed = simulator::memory_request(network.work, plan, job.question);
  recomputed.recompute = models::Recompute::full;
  const bool would_fit = need.largest_batch == 0 && simulator::device_memory(recomputed).total() <=
                                                        job.cluster.device.memory.value;
  const bool may_split = need.largest_batch == 0 && network.work.fuses_attention() &&
                         job.question.layout == models::Layout{};
  return {{"--batch"},
          fmt::format("{} with {}", too_large_text(job, need), strategy),
          fmt::format("{}{}{}; --ignore-memory times it all the same", largest_batch_text(need),
                      would_fit ? "; --recompute full makes this one fit" : "",
                      may_split ? "; tune --layouts finds what fits" : "")};
}

}  // namespace paceline::job
