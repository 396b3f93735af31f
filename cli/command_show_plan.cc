// paceline show plan: the buckets that a strategy makes, and when each travels.
#include <fmt/core.h>

#include <chrono>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/job_memory.h"
#include "cli/job/shown_plan.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/plan_picture.h"
#include "cli/prediction_text.h"
#include "cli/progress.h"
#include "cli/shared_options.h"
#include "cli/stop_signals.h"
#include "cli/table.h"
#include "cli/why_text.h"
#include "models/base/json_records.h"
#include "models/base/parse_units.h"
#include "models/base/to_size.h"

namespace paceline::cli {
namespace {

struct Options {
  simulator::Question question;
  std::string plot;
  bool why = false;
  bool wide = false;
  OutputFormat format;
};

// To say what is next best.
constexpr Seconds most_explained{10};

// The heading of a plan, without its strategy's name.
std::string described(const job::Job& job, const models::NetworkWork& network,
                      const models::Plan& plan) {
  return fmt::format("{} on {}, {} ranks, {} bucket{}, {} on the wire, overlap {}", network.name,
                     job.cluster.name, plan.all_ranks(), plan.buckets.size(),
                     plan.buckets.size() == 1 ? "" : "s", name(plan.wire), name(plan.overlap));
}

void write_picture(const Options& options, const job::Job& job, const models::NetworkWork& network,
                   const job::ShownPlan& shown) {
  Seconds waits;
  for (const simulator::ComputeSpan& span : shown.travel.idle) waits += span.end - span.start;
  const std::string title =
      fmt::format("{}: {}", shown.plan.strategy, described(job, network, shown.plan));
  const std::string facts = fmt::format(
      "an iteration of {}, of which computation waits {}; predicted, timed by {}; {} samples a "
      "rank",
      to_text(shown.travel.period), to_text(waits), shown.timed_by, job.question.batch_per_rank);
  job::write_output_file(options.plot, plan_svg(title, facts, network, shown.plan, shown.travel));
  notice("picture of the plan written to {}\n", options.plot);
}

// Tries other choices for each bucket, as far as the time allows it.
job::OtherChoices other_choices(simulator::Predictor& predictor, const models::Plan& plan) {
  remember_stop_signals();
  const auto start = std::chrono::steady_clock::now();
  job::OtherChoices others;
  Progress progress("timing what could be otherwise");
  others.of_buckets = predictor.alternatives(plan, [&] {
    const auto elapsed = std::chrono::duration<double>(std::chrono::steady_clock::now() - start);
    others.is_complete =
        Seconds{elapsed.count()} < most_explained && stop_asked() == runtime::StopReason::none;
    return !others.is_complete;
  });
  return others;
}

Table buckets_table(const job::ShownPlan& shown, const models::NetworkWork& network) {
  Table table({{"bucket"},
               {"gradients", Align::right, 3},
               {"first", Align::left, 1},
               {"last", Align::left, 4},
               {"size"},
               {"schedule", Align::left},
               {"ready"},
               {"starts", Align::right, 2},
               {"takes", Align::right, 5},
               {"ends"},
               {"exposed"}});
  for (std::size_t i = 0; i < shown.plan.buckets.size(); ++i) {
    const models::Bucket& bucket = shown.plan.buckets[i];
    const simulator::BucketTravel& times = shown.travel.buckets[i];
    const models::PlannedSchedule& schedule = shown.plan.schedules[to_size(bucket.schedule)];
    const auto gradient = [&](int offset) {
      return network.gradients[to_size(bucket.first_gradient + offset)].name;
    };
    table.add({fmt::format("{}", i), fmt::format("{}", bucket.gradient_count), gradient(0),
               gradient(bucket.gradient_count - 1), to_text(shown.plan.bytes(bucket)),
               models::described(schedule), to_text(times.ready), to_text(times.start),
               to_text(times.end - times.start), to_text(times.end), to_text(times.exposed)});
  }
  return table;
}

std::string others_text(const job::ShownPlan& shown, int width) {
  if (!shown.others) return "";
  if (shown.others->of_buckets.empty())
    return "\nwhat it would lose by other choices: nothing was tried, for its buckets are no "
           "all-reduces of ours of whole gradients\n";
  return "\n" + why_text(shown.others->of_buckets, shown.travel.period, width) +
         (shown.others->is_complete
              ? ""
              : "stopped: buckets that are not in the table have not been tried\n");
}

std::string to_text(const job::Job& job, const models::NetworkWork& network,
                    const std::vector<job::ShownPlan>& plans, int width) {
  std::string text;
  for (const job::ShownPlan& shown : plans) {
    const Table::Fitted buckets = buckets_table(shown, network).fitted(width);
    text += fmt::format(
        "{}{}: {}\n\n{}{}\niteration {} (predicted); times count from the start of its forward "
        "pass\nexposed: for how long of its way computation waits\n{}",
        text.empty() ? "" : "\n", shown.name, described(job, network, shown.plan), buckets.text,
        buckets.not_shown(), to_text(shown.travel.period), setting_text(job));
    if (shown.plan.uses<models::Library>() != nullptr)
      text +=
          fmt::format("all-reduces are timed by {}, not by an engine of ours\n", shown.timed_by);
    text += others_text(shown, width);
  }
  return text;
}

std::vector<Table> tables_of(const models::NetworkWork& network,
                             const std::vector<job::ShownPlan>& plans) {
  std::vector<Table> tables;
  for (const job::ShownPlan& shown : plans) {
    tables.push_back(buckets_table(shown, network));
    if (shown.others && !shown.others->of_buckets.empty())
      tables.push_back(why_table(shown.others->of_buckets, shown.travel.period));
  }
  return tables;
}

void show(const Options& options) {
  check_output_format(
      options.format,
      job::given_paths(options.question, {{"--plot", options.plot, job::FileKind::picture}}));
  const job::Job job = job::load_job(options.question);
  const int ranks = ranks_of(job);
  if (!options.plot.empty() && job.strategies.size() > 1)
    throw InputError({"--plot"}, "several plans and one picture", "name one --strategy");
  if (job.networks.size() != 1 || job.wires.size() != 1)
    throw InputError("several networks or wire types", "a plan has one of each");
  const job::LoadedNetwork& network = job.networks.front();
  if (job.plan) check_plan(*job.plan, job.plan_file, network.work, ranks);
  simulator::Predictor predictor(job.request(network, ranks, job.wires.front()));
  std::vector<job::ShownPlan> plans;
  for (const models::Strategy* strategy : job.strategies) {
    Progress progress(fmt::format("timing the plan of {}", strategy->name));
    const simulator::StrategyRun run =
        job.plan ? predictor.run(job.plan->plan) : predictor.run(*strategy);
    progress.end();
    if (job::checks_memory(job) && !job::memory_need(job, network, run.plan).fits)
      throw job::does_not_fit(job, network, run.plan, std::string(strategy->name));
    plans.push_back({.name = std::string(strategy->name),
                     .plan = run.plan,
                     .travel = plan_travel(run.plan, run.dag, run.steady),
                     .timed_by = run.timed_by});
    if (options.why) plans.back().others = other_choices(predictor, run.plan);
  }
  if (!options.plot.empty()) write_picture(options, job, network.work, plans.front());
  print_answer(options.format,
               {.document =
                    [&] {
                      return job::plan_travel_document().json({job, network, ranks, plans});
                    },
                .records = {{"plans", "buckets"},
                            {"model", "cluster", "ranks", "strategy", "wire_type", "iteration_s"}},
                .markdown = [&] { return to_markdown(tables_of(network.work, plans)); },
                .text = [&](int width) { return to_text(job, network.work, plans, width); },
                .wide = options.wide});
}

}  // namespace

void add_show_plan(Command& show_command) {
  Command& command = show_command.add_command(
      "plan", "The buckets that strategies make of a network, and when each travels");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->question);
  add_field(command, options->question, "ignore-memory");
  add_size_options(command, options->question);
  add_field(command, options->question, "plan");
  command
      .add_option("--plot", options->plot,
                  "Also write a picture: layers, buckets, when they travel, and what waits")
      .value("FILE");
  command.add_flag(
      "--why", options->why,
      "Also list what each bucket would lose by other choices, all others as they are");
  add_wide_option(command, options->wide);
  add_output_formats(command, options->format);
  command.on_run([options] { show(*options); });
}

}  // namespace paceline::cli
