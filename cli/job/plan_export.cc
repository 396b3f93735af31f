// Tests: tests/cli/export_plan_test.py (end to end).
#include "cli/job/plan_export.h"

#include <fmt/core.h>

#include <algorithm>

#include "cli/job/job.h"
#include "cli/job/measured.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "models/network/zoo.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/export/horovod.h"
#include "simulator/iteration/all_reduce_time.h"

namespace paceline::job {
namespace {

// The network that the plan is for.
std::string network_of(const PlanExportOptions& options, const models::PlanDocument& document) {
  if (!options.model.empty()) return options.model;
  if (models::is_in_zoo(document.network)) return document.network;
  throw InputError({options.plan},
                   fmt::format("the zoo has no network {}", in_quotes(document.network)),
                   "give its file as --model");
}

models::PlanDocument load_plan(const PlanExportOptions& options) {
  models::PlanDocument document = read_plan(options.plan);
  const LoadedNetwork network = load_network(network_of(options, document));
  models::check_plan(document, options.plan, network.work, document.plan.ranks);
  return document;
}

simulator::ExportedText nccl_text(const Job& job, const PlanExportOptions& options,
                                  const std::string& title, const std::string& format) {
  if (!simulator::is_gpu(job.cluster.device))
    throw InputError({"--cluster"}, "NCCL does not run on " + job.cluster.device.name,
                     "give a cluster of GPUs");
  const models::Plan& plan = job.plan->plan;
  const models::Profile* profile = job.profile ? &*job.profile : nullptr;
  const std::vector<simulator::MeasuredAllReduce> measured =
      parse_measured(options.measured, plan.ranks, job.cluster);
  check_possible(measured, job.cluster, profile);
  simulator::AllReduceTimer timer({.cluster = job.cluster,
                                   .profile = profile,
                                   .ranks = plan.ranks,
                                   .wire = plan.wire,
                                   .nccl_version = job.nccl_version,
                                   .measured = measured});
  const simulator::NcclPractice& practice = timer.nccl_practice();
  if (format == "nccl-csv") return simulator::nccl_csv_text(title, plan, practice);
  if (format == "nccl-config") return simulator::nccl_config_text(title, plan, practice);
  return simulator::nccl_tuner_text(title, plan, practice, format == "nccl-constants");
}

}  // namespace

std::vector<std::string> plan_export_formats() {
  return {"nccl-tuner", "nccl-constants", "nccl-csv", "nccl-config", "horovod"};
}

simulator::ExportedText export_plan(const PlanExportOptions& options, const std::string& format) {
  const models::PlanDocument document = load_plan(options);
  require_option(options.cluster, "--cluster", "h200-ndr");
  JobOptions of_job;
  of_job.model = network_of(options, document);
  of_job.cluster = options.cluster;
  if (!options.batch.empty()) of_job.batch = options.batch;
  if (!options.precision.empty()) of_job.precision = options.precision;
  of_job.plan = options.plan;
  of_job.profile = options.profile;
  of_job.nccl = options.nccl;
  const Job job = load_job(of_job);
  if (document.plan.ranks > job.cluster.ranks())
    throw InputError({options.plan},
                     fmt::format("the plan is for {} ranks, and {} has {}", document.plan.ranks,
                                 job.cluster.name, job.cluster.ranks()),
                     "give the cluster that it is for");
  if (document.plan.ranks == 1)
    throw InputError({options.plan}, "one rank exchanges nothing", "give a plan for more ranks");
  const std::string title = simulator::plan_title(document.network, document.plan);
  if (format != "horovod") return nccl_text(job, options, title, format);
  const LoadedNetwork& network = job.networks.front();
  return simulator::horovod_text(title, document.plan,
                                 job.request(network, document.plan.ranks, document.plan.wire));
}

simulator::MscclPlan export_msccl_plan(const PlanExportOptions& options) {
  const models::PlanDocument document = load_plan(options);
  try {
    return simulator::msccl_plan(simulator::plan_title(document.network, document.plan),
                                 document.plan);
  } catch (const InputError& error) {
    throw error.at({options.plan});
  }
}

}  // namespace paceline::job
