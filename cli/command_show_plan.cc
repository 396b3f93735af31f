// paceline show plan: the buckets that a strategy makes, and when each travels.
#include <fmt/core.h>

#include <chrono>
#include <string>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/plan_picture.h"
#include "cli/prediction_text.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/stop_signals.h"
#include "cli/table.h"
#include "cli/why_text.h"
#include "models/base/parse_units.h"
#include "simulator/iteration/alternatives.h"
#include "simulator/iteration/bucket_travel.h"

namespace paceline::cli {
namespace {

struct Options {
  job::JobOptions job;
  std::string plot;
  bool why = false;
};

// To say what is next best.
constexpr Seconds most_explained{10};

// The heading of a plan, without its strategy's name.
std::string described(const job::Job& job, const models::NetworkWork& network,
                      const models::Plan& plan) {
  return fmt::format("{} on {}, {} ranks, {} bucket{}, {} on the wire, overlap {}", network.name,
                     job.cluster.name, plan.ranks, plan.buckets.size(),
                     plan.buckets.size() == 1 ? "" : "s", name(plan.wire), name(plan.overlap));
}

void write_picture(const Options& options, const job::Job& job, const models::NetworkWork& network,
                   const simulator::StrategyRun& run, const simulator::PlanTravel& travel) {
  Seconds waits;
  for (const simulator::ComputeSpan& span : travel.idle) waits += span.end - span.start;
  const std::string title =
      fmt::format("{}: {}", run.plan.strategy, described(job, network, run.plan));
  const std::string facts = fmt::format(
      "an iteration of {}, of which computation waits {}; predicted, timed by {}; {} samples a "
      "rank",
      to_text(travel.period), to_text(waits), run.timed_by, job.batch_per_rank);
  job::write_output_file(options.plot, plan_svg(title, facts, network, run.plan, travel));
  notice("picture of the plan written to {}\n", options.plot);
}

// Returns the text of what the plan would lose by other choices.
std::string why(simulator::Predictor& predictor, const simulator::StrategyRun& run) {
  remember_stop_signals();
  const auto start = std::chrono::steady_clock::now();
  bool is_stopped = false;
  Progress progress("timing what could be otherwise");
  const auto others = predictor.alternatives(run.plan, [&] {
    const auto elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
    is_stopped =
        Seconds{elapsed.count()} >= most_explained || stop_asked() != runtime::StopReason::none;
    return is_stopped;
  });
  progress.end();
  if (others.empty())
    return "what it would lose by other choices: nothing was tried, for its buckets are no "
           "all-reduces "
           "of ours of whole gradients\n";
  return why_text(others, run.steady.period) +
         (is_stopped ? "stopped: buckets that are not in the table have not been tried\n" : "");
}

void show(const Options& options) {
  const job::Job job = job::load_job(options.job);
  const int ranks = ranks_of(options.job, job);
  if (!options.plot.empty()) {
    if (job.strategies.size() > 1)
      throw InputError({"--plot"}, "several plans and one picture", "name one --strategy");
    check_outputs_of(options.job, {{"--plot", options.plot}});
  }
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
    print("{}{}: {}\n\n", s == 0 ? "" : "\n", strategy.name,
          described(job, network.work, run.plan));
    Table table({{"bucket"},
                 {"gradients"},
                 {"first", Align::left},
                 {"last", Align::left},
                 {"size"},
                 {"schedule", Align::left},
                 {"ready"},
                 {"starts"},
                 {"takes"},
                 {"ends"},
                 {"exposed"}});
    const simulator::PlanTravel travel = plan_travel(run.plan, run.dag, run.steady);
    for (std::size_t i = 0; i < run.plan.buckets.size(); ++i) {
      const models::Bucket& bucket = run.plan.buckets[i];
      const simulator::BucketTravel& times = travel.buckets[i];
      const models::PlannedSchedule& schedule =
          run.plan.schedules[static_cast<std::size_t>(bucket.schedule)];
      const auto gradient = [&](int offset) {
        return network.work.gradients[static_cast<std::size_t>(bucket.first_gradient + offset)]
            .name;
      };
      table.add({fmt::format("{}", i), fmt::format("{}", bucket.gradient_count), gradient(0),
                 gradient(bucket.gradient_count - 1), to_text(run.plan.bytes(bucket)),
                 models::described(schedule), to_text(times.ready), to_text(times.start),
                 to_text(times.end - times.start), to_text(times.end), to_text(times.exposed)});
    }
    print(
        "{}\niteration {} (predicted); times count from the start of its forward pass\n"
        "exposed: for how long of its way computation waits\n{}",
        table.text(), to_text(run.steady.period), setting_text(job));
    if (strategy.library())
      print("all-reduces are timed by {}, not by an engine of ours\n", run.timed_by);
    if (options.why) print("\n{}", why(predictor, run));
    if (!options.plot.empty()) write_picture(options, job, network.work, run, travel);
  }
}

}  // namespace

void add_show_plan(Command& show_command) {
  Command& command = show_command.add_command(
      "plan", "The buckets that strategies make of a network, and when each travels");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->job);
  command.add_option("--ranks", options->job.ranks, "Number of ranks").value("N");
  add_plan_option(command, options->job.plan);
  command
      .add_option("--plot", options->plot,
                  "Also write a picture: layers, buckets, when they travel, and what waits")
      .value("FILE");
  command.add_flag(
      "--why", options->why,
      "Also list what each bucket would lose by other choices, all others as they are");
  command.on_run([options] { show(*options); });
}

}  // namespace paceline::cli
