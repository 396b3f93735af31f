// paceline show plan: the buckets that a strategy makes, and when each travels.
#include <fmt/core.h>

#include "cli/command.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/prediction_text.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/table.h"
#include "models/base/parse_units.h"
#include "simulator/planner/recurrence.h"

namespace paceline::cli {
namespace {

// When the first of a bucket's tasks on its communication stream starts, and when the last ends.
struct Travel {
  Seconds start;
  Seconds end;
};

std::vector<Travel> travels(const simulator::StrategyRun& run) {
  std::vector<Travel> list(run.plan.buckets.size());
  std::vector<bool> seen(list.size());
  for (std::size_t i = 0; i < run.dag.tasks().size(); ++i) {
    const simulator::Task& task = run.dag.tasks()[i];
    const bool travels = task.resource == simulator::Resource::communication &&
                         task.kind != simulator::TaskKind::update &&
                         task.kind != simulator::TaskKind::wait;
    if (!travels) continue;
    const auto bucket = static_cast<std::size_t>(task.index);
    if (!seen[bucket]) list[bucket].start = run.steady.start[i];
    seen[bucket] = true;
    list[bucket].end = run.steady.finish(run.dag, static_cast<int>(i));
  }
  return list;
}

// When the forward pass of the steady iteration starts. Times in the table count from there.
Seconds forward_start(const simulator::StrategyRun& run) {
  for (std::size_t i = 0; i < run.dag.tasks().size(); ++i) {
    if (run.dag.tasks()[i].kind == simulator::TaskKind::forward) return run.steady.start[i];
  }
  return Seconds{0};
}

void show(const job::JobOptions& options) {
  const job::Job job = job::load_job(options);
  const int ranks = ranks_of(options, job);
  if (job.networks.size() != 1 || job.wires.size() != 1)
    throw InputError("several networks or wire types", "a plan is of one");
  const job::LoadedNetwork& network = job.networks.front();
  if (job.plan) check_plan(*job.plan, job.plan_file, network.work, ranks);
  simulator::Predictor predictor(job.request(network, ranks, job.wires.front()));
  for (std::size_t s = 0; s < job.strategies.size(); ++s) {
    const models::Strategy& strategy = *job.strategies[s];
    Progress progress(fmt::format("timing the plan of {}", strategy.name));
    const simulator::StrategyRun run =
        job.plan ? predictor.run(job.plan->plan) : predictor.run(strategy);
    progress.end();
    print("{}{}: {} on {}, {} ranks, {} bucket{}, {} on the wire, overlap {}\n\n",
          s == 0 ? "" : "\n", strategy.name, network.work.name, job.cluster.name, ranks,
          run.plan.buckets.size(), run.plan.buckets.size() == 1 ? "" : "s", name(run.plan.wire),
          name(run.plan.overlap));
    Table table({{"bucket"},
                 {"gradients"},
                 {"first", Align::left},
                 {"last", Align::left},
                 {"size"},
                 {"schedule", Align::left},
                 {"starts"},
                 {"takes"},
                 {"ends"}});
    const std::vector<Travel> times = travels(run);
    const Seconds zero = forward_start(run);
    for (std::size_t i = 0; i < run.plan.buckets.size(); ++i) {
      const models::Bucket& bucket = run.plan.buckets[i];
      const models::PlannedSchedule& schedule =
          run.plan.schedules[static_cast<std::size_t>(bucket.schedule)];
      const auto gradient = [&](int offset) {
        return network.work.gradients[static_cast<std::size_t>(bucket.first_gradient + offset)]
            .name;
      };
      table.add({fmt::format("{}", i), fmt::format("{}", bucket.gradient_count), gradient(0),
                 gradient(bucket.gradient_count - 1), to_text(run.plan.bytes(bucket)),
                 described(schedule), to_text(times[i].start - zero),
                 to_text(times[i].end - times[i].start), to_text(times[i].end - zero)});
    }
    print("{}\niteration {} (predicted); times count from the start of its forward pass\n{}",
          table.text(), to_text(run.steady.period), setting_text(job));
    if (strategy.library())
      print("all-reduces are timed by {}, not by an engine of ours\n", run.timed_by);
  }
}

}  // namespace

void add_show_plan(Command& show_command) {
  Command& command = show_command.add_command(
      "plan", "The buckets that strategies make of a network, and when each travels");
  const auto options = std::make_shared<job::JobOptions>();
  add_job_options(command, *options);
  command.add_option("--ranks", options->ranks, "Number of ranks").value("N");
  add_plan_option(command, options->plan);
  command.on_run([options] { show(*options); });
}

}  // namespace paceline::cli
