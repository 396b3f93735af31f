// paceline platform: a cluster's links and routes as a SimGrid platform.
#include <fmt/core.h>

#include <algorithm>

#include "cli/command.h"
#include "cli/job/files.h"
#include "cli/job/job.h"
#include "cli/job/option_values.h"
#include "cli/output.h"
#include "cli/output_format.h"
#include "cli/shared_options.h"
#include "models/cluster/placement.h"
#include "models/cluster/simgrid_xml.h"
#include "simulator/cost/communication_cost.h"
#include "simulator/engine/platform_of.h"
#include "simulator/engine/routes.h"

namespace paceline::cli {
namespace {

struct Options {
  std::string cluster;
  std::string placement;
  std::string ranks;
  std::string profile;
  std::string output;
  bool force = false;
};

models::Platform load_platform(const Options& options) {
  if (options.cluster.ends_with(".xml"))
    return models::parse_simgrid_xml(job::read_input_file(options.cluster), options.cluster);
  const models::Cluster cluster = job::load_cluster(options.cluster, options.placement);
  if (options.ranks.empty() && models::placed_ranks(cluster) > simulator::most_platform_ranks) {
    throw InputError("--ranks is missing",
                     fmt::format("give 1 to {}, as in --ranks {}", simulator::most_platform_ranks,
                                 std::max(64, cluster.ranks_per_node)));
  }
  const int ranks = options.ranks.empty() ? models::placed_ranks(cluster)
                                          : job::parse_ranks(options.ranks, cluster);
  const auto profile = job::load_profile(options.profile, cluster);
  const simulator::CommunicationCost cost = simulator::communication_cost(
      cluster, profile ? &*profile : nullptr, simulator::Bound::stated, ranks);
  return job::parsing_option("--ranks", [&] {
    return simulator::platform_of(simulator::Routes(cost, ranks), cluster.name);
  });
}

void run(const Options& options) {
  job::require_option(options.cluster, "--cluster", "jizhi-p40");
  job::check_paths({job::output_path("--output", options.output, job::FileKind::platform),
                    {"--cluster", options.cluster, job::PathUse::name_or_input},
                    {"--placement", options.placement, job::PathUse::name_or_input},
                    {"--profile", options.profile, job::PathUse::name_or_input}},
                   job::replaces(options.force));
  const models::Platform platform = load_platform(options);
  const std::string xml = models::simgrid_xml(platform);
  if (options.output.empty()) {
    print_text(xml);
    return;
  }
  job::write_output_file(options.output, xml);
  notice("platform {} written to {}: {} hosts, {} links\n", platform.name, options.output,
         platform.hosts.size(), platform.links.size());
}

}  // namespace

void add_platform(Command& app) {
  Command& command =
      app.add_command("platform", "A cluster as a SimGrid platform (XML), one host for each rank");
  const auto options = std::make_shared<Options>();
  command
      .add_option("--cluster", options->cluster,
                  "Cluster: a name of the catalogue, a YAML file, or a platform to write anew")
      .value("NAME|FILE");
  command
      .add_option("--ranks", options->ranks,
                  fmt::format("Number of ranks, up to {}; by default all of the cluster",
                              simulator::most_platform_ranks))
      .value("N");
  add_field_text(command, options->placement, "placement");
  add_field_text(command, options->profile, "profile");
  command.add_option("--output", options->output, "File to write; standard output if not given")
      .value("FILE");
  add_force_option(command, options->force);
  command.on_run([options] { run(*options); });
}

}  // namespace paceline::cli
