// paceline show dag: the tasks of an iteration and what they wait for, for Graphviz and graph tools.
#include <memory>

#include "cli/command.h"
#include "cli/job/option_values.h"
#include "cli/job/shown_dag.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/shared_options.h"

namespace paceline::cli {
namespace {

struct Options {
  simulator::Question question;
  std::string format = "dot";
};

void show(const Options& options) {
  const simulator::GraphFormat format = job::parsing_option(
      "--format", [&] { return simulator::graph_format_from_name(options.format); });
  const job::Job job = job::load_job(options.question);
  Progress progress("timing the plan");
  const std::string text = dag_text(job, ranks_of(job), format);
  progress.end();
  print_text(text);
}

}  // namespace

void add_show_dag(Command& show_command) {
  Command& command = show_command.add_command(
      "dag", "The tasks of an iteration and what they wait for, as a graph of other programs");
  const auto options = std::make_shared<Options>();
  add_job_options(command, options->question);
  add_field(command, options->question, "ignore-memory");
  add_size_options(command, options->question);
  add_field(command, options->question, "plan");
  command
      .add_option("--format", options->format,
                  "Graphviz's DOT, with the critical path in red, or GraphML, which NetworkX, "
                  "igraph, Gephi and yEd read")
      .value("dot|graphml (dot)");
  command.on_run([options] { show(*options); });
}

}  // namespace paceline::cli
