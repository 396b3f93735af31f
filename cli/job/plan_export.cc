// Tests: tests/cli/export_plan_test.py (end to end).
#include "cli/job/plan_export.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "cli/job/job.h"
#include "cli/job/measured.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_file.h"
#include "models/cluster/cluster_json.h"
#include "models/network/zoo.h"
#include "simulator/cost/nccl_model.h"
#include "simulator/export/ddp.h"
#include "simulator/export/frameworks.h"
#include "simulator/export/horovod.h"
#include "simulator/iteration/all_reduce_time.h"
#include "simulator/question/question_fields.h"

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
  models::check_plan(document, options.plan, network.work, document.plan.all_ranks());
  return document;
}

std::vector<std::string_view> framework_names() {
  std::vector<std::string_view> names;
  for (const simulator::Framework& framework : simulator::frameworks())
    names.push_back(framework.name);
  return names;
}

// The same for formats that say nothing of other axes, nor of shards.
models::PlanDocument load_replicated_plan(const PlanExportOptions& options,
                                          const std::string& format) {
  models::PlanDocument document = load_plan(options);
  const std::string remedy = fmt::format("choose {}", fmt::join(framework_names(), ", "));
  if (document.plan.layout != models::Layout{})
    throw InputError({options.plan},
                     fmt::format("--format {} says no layout of several axes", format), remedy);
  if (document.plan.uses<models::ShardUse>() != nullptr)
    throw InputError({options.plan}, fmt::format("--format {} says nothing of shards", format),
                     remedy);
  return document;
}

// Refuses options that the format has no use for. Each is an option and its value.
void refuse_options(const std::vector<std::pair<const char*, std::string>>& given,
                    const std::string& format, const char* whose) {
  for (const auto& [option, value] : given) {
    if (!value.empty())
      throw InputError({option}, fmt::format("it {}; --format {} has no use for it", whose, format),
                       "leave it out");
  }
}

// Refuses the options of formats that predict times.
void refuse_what_predicts(const PlanExportOptions& options, const std::string& format) {
  refuse_options({{"--cluster", options.cluster},
                  {"--profile", options.profile},
                  {"--nccl", options.nccl},
                  {"--measured", options.measured},
                  {"--batch", options.batch},
                  {"--precision", options.precision}},
                 format, "is of formats that predict times");
}

// The job whose plan is exported: options, and what the plan says of those that are not given.
simulator::Question question_of(const PlanExportOptions& options,
                                const models::PlanDocument& document) {
  simulator::Question question;
  if (const auto& made_for = document.made_for) {
    question.batch_per_rank = made_for->batch_per_rank;
    question.accumulate = made_for->accumulate;
    question.precision = made_for->precision;
    if (made_for->sequence > 0) question.sequence = made_for->sequence;
  }
  question.networks = {network_of(options, document)};
  question.cluster = options.cluster;
  for (const auto& [name, text] : {std::pair("batch", options.batch),
                                   {"precision", options.precision},
                                   {"plan", options.plan},
                                   {"profile", options.profile},
                                   {"nccl", options.nccl}})
    if (!text.empty()) read_field(simulator::question_field(name), text, question);
  return question;
}

// Where the job is not the one that the plan was made for, or is not known to be, a line each.
std::vector<std::string> notes_of_job(const PlanExportOptions& options,
                                      const models::PlanDocument& document, const Job& job,
                                      bool takes_iteration) {
  std::vector<std::string> notes;
  const auto& made_for = document.made_for;
  if (made_for && made_for->cluster != job.cluster.name)
    notes.push_back(fmt::format("the plan was made for cluster {}, and is exported for {}",
                                made_for->cluster, job.cluster.name));
  else if (made_for && made_for->cluster_digest != models::digest(job.cluster))
    notes.push_back(fmt::format(
        "the plan was made for another description of cluster {}: what is said of times holds for "
        "that of --cluster",
        job.cluster.name));
  if (!takes_iteration) return notes;
  if (!made_for && (options.batch.empty() || options.precision.empty()))
    notes.push_back(
        fmt::format("the plan does not say its job: times are those of batch {} per "
                    "rank in {}; give --batch and --precision",
                    job.question.batch_per_rank, name(job.question.precision)));
  return notes;
}

simulator::ExportedText nccl_text(const Job& job, const PlanExportOptions& options,
                                  const std::string& title, const std::string& format) {
  if (!simulator::sums_by_nccl(job.cluster.device))
    throw InputError({"--cluster"}, "NCCL does not run on " + job.cluster.device.name,
                     "give a cluster of GPUs");
  const models::Plan& plan = job.plan->plan;
  const models::Profile* profile = job.profile ? &*job.profile : nullptr;
  const std::vector<simulator::MeasuredAllReduce> measured =
      parse_measured(options.measured, plan.ranks, job.cluster);
  check_possible(measured, models::Collective::all_reduce, job.cluster, profile);
  simulator::AllReduceTimer timer({.cluster = job.cluster,
                                   .profile = profile,
                                   .ranks = plan.ranks,
                                   .wire = plan.wire,
                                   .nccl_version = job.question.nccl_version,
                                   .measured = measured});
  const simulator::NcclPractice& practice = timer.nccl_practice();
  if (format == "nccl-csv") return simulator::nccl_csv_text(title, plan, practice);
  if (format == "nccl-config") return simulator::nccl_config_text(title, plan, practice);
  return simulator::nccl_tuner_text(title, plan, practice, format == "nccl-constants");
}

simulator::ExportedText framework_text(const PlanExportOptions& options,
                                       const simulator::Framework& framework) {
  refuse_what_predicts(options, std::string(framework.name));
  const models::PlanDocument document = load_plan(options);
  try {
    return framework.text(document);
  } catch (const InputError& error) {
    throw error.at({options.plan});
  }
}

}  // namespace

std::vector<std::string> plan_export_formats() {
  std::vector<std::string> names = {"nccl-tuner",  "nccl-constants", "nccl-csv",
                                    "nccl-config", "horovod",        "ddp"};
  const std::vector<std::string_view> others = framework_names();
  names.insert(names.end(), others.begin(), others.end());
  return names;
}

simulator::ExportedText export_plan(const PlanExportOptions& options, const std::string& format) {
  for (const simulator::Framework& framework : simulator::frameworks())
    if (framework.name == format) return framework_text(options, framework);
  const models::PlanDocument document = load_replicated_plan(options, format);
  const bool takes_iteration = format == "horovod" || format == "ddp";
  if (takes_iteration)
    refuse_options({{"--measured", options.measured}}, format, "is of NCCL's formats");
  else
    refuse_options({{"--batch", options.batch}, {"--precision", options.precision}}, format,
                   "is of --format horovod and ddp, which predict an iteration");
  require_option(options.cluster, "--cluster", "h200-ndr");
  const Job job = load_job(question_of(options, document));
  if (document.plan.ranks > job.cluster.ranks())
    throw InputError({options.plan},
                     fmt::format("the plan is for {} ranks, and {} has {}", document.plan.ranks,
                                 job.cluster.name, job.cluster.ranks()),
                     "give the cluster that it is for");
  if (document.plan.ranks == 1)
    throw InputError({options.plan}, "one rank exchanges nothing", "give a plan for more ranks");
  const std::string title = simulator::plan_title(document.network, document.plan);
  std::vector<std::string> notes = notes_of_job(options, document, job, takes_iteration);
  simulator::ExportedText exported = [&] {
    if (!takes_iteration) return nccl_text(job, options, title, format);
    const simulator::PredictionRequest request =
        job.request(job.networks.front(), document.plan.ranks, document.plan.wire);
    return format == "ddp" ? simulator::ddp_text(title, document.plan, request)
                           : simulator::horovod_text(title, document.plan, request);
  }();
  exported.notes.insert(exported.notes.begin(), notes.begin(), notes.end());
  return exported;
}

simulator::MscclPlan export_msccl_plan(const PlanExportOptions& options) {
  refuse_what_predicts(options, "msccl");
  const models::PlanDocument document = load_replicated_plan(options, "msccl");
  try {
    return simulator::msccl_plan(simulator::plan_title(document.network, document.plan),
                                 document.plan);
  } catch (const InputError& error) {
    throw error.at({options.plan});
  }
}

}  // namespace paceline::job
