// Tests: tests/cli/show_dag_test.py (end to end).
#include "cli/job/shown_dag.h"

#include <fmt/core.h>

#include <vector>

#include "cli/job/job_memory.h"
#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::job {
namespace {

using simulator::Task;
using simulator::TaskKind;

bool is_of_layer(TaskKind kind) {
  return kind == TaskKind::forward || kind == TaskKind::backward || kind == TaskKind::factor_a ||
         kind == TaskKind::factor_g || kind == TaskKind::invert || kind == TaskKind::precondition;
}

// "forward conv1", "all-reduce bucket 3", "update".
std::string described(const Task& task, const models::NetworkWork& network) {
  const std::string kind(name(task.kind));
  if (task.index < 0) return kind;
  if (!is_of_layer(task.kind)) return fmt::format("{} bucket {}", kind, task.index);
  return fmt::format("{} {}", kind, network.layers[to_size(task.index)].name);
}

bool is_of_batch(TaskKind kind) {
  return kind == TaskKind::read || kind == TaskKind::decode || kind == TaskKind::host_to_device;
}

}  // namespace

std::string dag_text(const Job& job, int ranks, simulator::GraphFormat format) {
  if (job.networks.size() != 1 || job.wires.size() != 1)
    throw InputError("several networks or wire types", "a DAG has one of each");
  if (job.strategies.size() != 1)
    throw InputError({"--strategy"}, fmt::format("{} strategies", job.strategies.size()),
                     "a DAG has one, as in --strategy fused-ring");
  const LoadedNetwork& network = job.networks.front();
  if (job.plan) check_plan(*job.plan, job.plan_file, network.work, ranks);
  simulator::Predictor predictor(job.request(network, ranks, job.wires.front()));
  const simulator::StrategyRun run =
      job.plan ? predictor.run(job.plan->plan) : predictor.run(*job.strategies.front());
  if (checks_memory(job) && !memory_need(job, network, run.plan).fits)
    throw does_not_fit(job, network, run.plan, run.plan.strategy);
  std::vector<bool> is_critical(run.dag.tasks().size(), false);
  for (const simulator::CriticalTask& task : critical_path(run.dag, run.steady).tasks)
    is_critical[to_size(task.task)] = true;
  const auto note = [&](int index) -> simulator::TaskNote {
    const Task& task = run.dag.tasks()[to_size(index)];
    return {is_of_batch(task.kind) ? std::string(name(task.kind)) : described(task, network.work),
            is_critical[to_size(index)]};
  };
  return simulator::graph_text(run.dag.tasks(), run.dag.dependencies(), note, format);
}

}  // namespace paceline::job
