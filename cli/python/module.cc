// paceline._core: what the package of Python calls. Values of ours, and the functions that the commands
// call, too. The package beside it makes arrays and documents of what they return.
//
// The global lock of the interpreter is released while they compute, and taken back between two
// strategies or plans to look for signals, so that Ctrl-C raises KeyboardInterrupt. The module has no
// state, prints nothing, and turns each error of ours into the exception of its name.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "calibration/compare/comparison.h"
#include "calibration/compare/same_job.h"
#include "calibration/shipped_profiles.h"
#include "cli/capacity_text.h"
#include "cli/comparison_text.h"
#include "cli/cost_text.h"
#include "cli/job/capacity.h"
#include "cli/job/cost_table.h"
#include "cli/job/files.h"
#include "cli/job/measured.h"
#include "cli/job/option_values.h"
#include "cli/job/plan_export.h"
#include "cli/job/plan_timeline.h"
#include "cli/job/planned_job.h"
#include "cli/job/prediction_json.h"
#include "cli/job/proof.h"
#include "cli/job/robust_tuning.h"
#include "cli/job/scaling.h"
#include "cli/job/stragglers.h"
#include "cli/job/sweep_run.h"
#include "cli/job/time_table.h"
#include "cli/job/timeline_file.h"
#include "cli/job/tuning.h"
#include "cli/job/what_if.h"
#include "cli/output.h"
#include "cli/prediction_text.h"
#include "cli/python/asked_command.h"
#include "cli/python/keywords.h"
#include "cli/scaling_text.h"
#include "cli/tuning_text.h"
#include "cli/what_if_text.h"
#include "models/base/error.h"
#include "models/base/parse_units.h"
#include "models/cluster/catalog.h"
#include "models/cluster/cluster_json.h"
#include "models/cluster/yaml.h"
#include "models/collective/catalogue.h"
#include "models/network/network_json.h"
#include "models/network/yaml.h"
#include "models/network/zoo.h"

namespace py = pybind11;

namespace paceline::python {
namespace {

// Raises what a signal asks for: KeyboardInterrupt after Ctrl-C, in the main thread.
void raise_signals() {
  const py::gil_scoped_acquire lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

// Tables, and the job that they refer to.
struct Tables {
  std::unique_ptr<job::Job> job;
  std::vector<job::PredictionTable> tables;
};

// One of them; all of a curve share one owner.
struct Prediction {
  std::shared_ptr<const Tables> owner;
  const job::PredictionTable* table = nullptr;  // of the owner's
};

struct Scaling {
  std::shared_ptr<const Tables> owner;
  std::vector<job::MeasuredThroughput> measured;
};

struct Tuning {
  std::shared_ptr<const job::Job> job;
  job::Tuning tuning;
  std::optional<job::RobustTuning> robust = {};
  bool why = false;  // whether its text says it

  [[nodiscard]] const models::Plan& plan() const {
    return robust ? robust->chosen().plan : tuning.chosen();
  }
};

job::GivenValues given(const models::Network* network, const models::Cluster* cluster,
                       const models::Profile* profile, const models::PlanDocument* plan) {
  job::GivenValues values;
  if (network != nullptr) values.network = *network;
  if (cluster != nullptr) values.cluster = *cluster;
  if (profile != nullptr) values.profile = *profile;
  if (plan != nullptr) values.plan = *plan;
  return values;
}

job::TableObserver table_observer() {
  return {.begin = [](const models::Strategy&, std::size_t, std::size_t) { raise_signals(); }};
}

Prediction predict(const Keywords& keywords, const models::Network* network,
                   const models::Cluster* cluster, const models::Profile* profile,
                   const models::PlanDocument* plan) {
  AskedCommand asked("predict");
  take_keywords(asked.command, keywords);
  const auto owner = std::make_shared<Tables>();
  owner->job = std::make_unique<job::Job>(job::load_job(
      asked.question, {.given = given(network, cluster, profile, plan), .is_of_one_size = true}));
  const job::Job& job = *owner->job;
  const int ranks = job::ranks_of(job);
  if (job.networks.size() > 1)
    throw InputError({"--model"}, "several networks", "predict one after the other");
  owner->tables.push_back(predict_table(job, job.networks.front(), ranks, table_observer()));
  if (asked.sensitivity) add_sensitivity(owner->tables.front());
  return {owner, owner->tables.data()};
}

Scaling scale(const Keywords& keywords, const models::Network* network,
              const models::Cluster* cluster, const models::Profile* profile) {
  AskedCommand asked("scale");
  take_keywords(asked.command, keywords);
  const auto owner = std::make_shared<Tables>();
  owner->job = std::make_unique<job::Job>(
      job::load_job(asked.question, {.given = given(network, cluster, profile, nullptr)}));
  job::Job& job = *owner->job;
  const std::vector<int> ranks = job::parse_rank_range(asked.question.ranks, job.cluster);
  std::vector<job::MeasuredThroughput> measured =
      job::parse_measured_throughputs(asked.measured, job.cluster);
  owner->tables =
      scaling_curve(job, ranks, {.begin = [](const job::ScalingStep&) { raise_signals(); }});
  return {owner, std::move(measured)};
}

Tuning tune(const Keywords& keywords, const models::Network* network,
            const models::Cluster* cluster, const models::Profile* profile) {
  using Clock = std::chrono::steady_clock;
  AskedCommand asked("tune");
  take_keywords(asked.command, keywords);
  const auto job = std::make_shared<job::Job>(job::load_job(
      asked.question, {.given = given(network, cluster, profile, nullptr), .is_added_to = true}));
  job::compare_with_others(*job);
  job::leave_out_untimed(*job);
  const int ranks = job::ranks_of(*job);
  const std::optional<job::AskedRobust> robust = take_robust(asked.robust, *job, ranks);
  const job::TuningTarget target = job::parse_target(asked.tuning, *job, robust.has_value());
  const Seconds limit = job::parse_time_limit(asked.tuning.time_limit);
  const auto start = Clock::now();
  const auto ends_at = [start](Seconds time) {
    const auto end = start + std::chrono::duration<double>(time.value());
    return [end] {
      raise_signals();
      return Clock::now() >= end;
    };
  };
  const job::TuningTimes times = job::tuning_times(limit, asked.why, robust.has_value());
  const job::TuningObserver observer{
      .table = table_observer(),
      .search = {},
      .stop = [&](double share) { return ends_at(share * times.search)(); },
      .explain = asked.why,
      .stop_explaining = ends_at(times.explanation)};
  Tuning answer{.job = job, .tuning = tune_job(*job, ranks, target, observer), .why = asked.why};
  if (robust)
    answer.robust =
        robust_tuning(answer.tuning, *robust, target.all_reduces, ends_at(times.sampling));
  return answer;
}

// The document of what a training run costs, and its text.
std::pair<std::string, std::string> cost(const Keywords& keywords, const models::Network* network,
                                         const models::Cluster* cluster,
                                         const models::Profile* profile,
                                         const models::PlanDocument* plan) {
  AskedCommand asked("cost");
  take_keywords(asked.command, keywords);
  const job::CostTable table = job::cost_table(
      asked.question, asked.run,
      {.observer = [](const std::string&, const models::Strategy&, double) { raise_signals(); },
       .given = given(network, cluster, profile, plan)});
  return {job::cost_document().text(table), cli::to_text(table, cli::unlimited_width)};
}

// The document of the candidates, and its text. Networks and clusters are names and files.
std::pair<std::string, std::string> plan_capacity(const Keywords& keywords) {
  AskedCommand asked("plan-capacity");
  take_keywords(asked.command, keywords);
  // Signals are looked at between candidates by the thread that asks; the others have no Python.
  const std::thread::id asking = std::this_thread::get_id();
  const job::Capacity capacity =
      job::capacity(asked.capacity, 1, [asking](const std::string&, double) {
        if (std::this_thread::get_id() == asking) raise_signals();
      });
  return {job::capacity_document().text(capacity), cli::to_text(capacity, cli::unlimited_width, 0)};
}

// The plan of a file in another form, and notes of what that form cannot say.
std::pair<std::string, std::vector<std::string>> export_plan(const Keywords& keywords,
                                                             const std::string& file,
                                                             const std::string& format) {
  AskedCommand asked("export");
  take_keywords(asked.command, keywords);
  asked.plan_export.plan = file;
  const simulator::ExportedText exported = job::export_plan(asked.plan_export, format);
  return {exported.text, exported.notes};
}

// The rows of a sweep's file as comma-separated values, with their header.
std::string sweep(const std::string& file) {
  const job::Sweep read = job::parse_sweep(job::read_input_file(file), file, PACELINE_VERSION);
  std::string text = job::sweep_header(job::SweepFormat::csv);
  job::run_sweep({.sweep = read}, [&](const std::string& rows, std::int64_t) {
    raise_signals();
    text += rows;
  });
  return text;
}

// The document of the times.
std::string time(const Keywords& keywords, const models::Cluster* cluster,
                 const models::Profile* profile) {
  AskedCommand asked("time");
  take_keywords(asked.command, keywords);
  return job::time_document().text(time_table(
      asked.time, [](std::string_view, double) { raise_signals(); },
      given(nullptr, cluster, profile, nullptr)));
}

// The document of the proof.
std::string verify(const Keywords& keywords) {
  AskedCommand asked("verify");
  take_keywords(asked.command, keywords);
  return models::proof_document().text(
      prove(asked.proof, [](std::int64_t, double) { raise_signals(); }).proof);
}

// The document of the comparison, and its text.
std::pair<std::string, std::string> compare(const models::TracedTimeline& run,
                                            const models::TracedTimeline& prediction,
                                            const models::PlanDocument* plan,
                                            const calibration::ComparedFiles& files) {
  if (plan != nullptr) {
    calibration::check_follows(run.job, files.run, *plan);
    calibration::check_follows(prediction.job, files.prediction, *plan);
  }
  const calibration::Comparison comparison = calibration::compare(run, prediction);
  return {calibration::comparison_document().text({comparison, files}),
          cli::to_text(comparison, files, true, cli::unlimited_width)};
}

// The document of the answers about the run of a timeline, and its text.
std::pair<std::string, std::string> what_if(const Keywords& keywords, const std::string& text,
                                            const std::string& file, const models::Network* network,
                                            const models::Cluster* cluster,
                                            const models::Profile* profile,
                                            const models::PlanDocument* plan) {
  AskedCommand asked("compare");
  take_keywords(asked.command, keywords);
  const calibration::WhatIfAnswers answers =
      answer(text, file, asked.what_if, given(network, cluster, profile, plan));
  return {calibration::what_if_document().text(answers), cli::to_text(answers)};
}

// An event in the order of the fields of paceline.values.EVENT.
py::list events_of(const models::TracedTimeline& traced) {
  py::list events;
  for (const models::TimelineEvent& event : traced.timeline.events)
    events.append(py::make_tuple(name(event.kind), name(event.resource), event.stream, event.index,
                                 event.iteration, event.start.value(), event.duration.value()));
  return events;
}

std::vector<std::string> keywords_of_command(const std::string& name) {
  return keywords_of(AskedCommand(name).command);
}

// The name, the type and the meaning of each keyword.
std::vector<std::tuple<std::string, std::string, std::string>> options_of_command(
    const std::string& name) {
  const AskedCommand asked(name);
  std::vector<std::tuple<std::string, std::string, std::string>> options;
  for (const cli::Option& option : asked.command.options())
    options.emplace_back(keyword_of(option), option.python_type, option.help);
  return options;
}

template <class Entries>
std::vector<std::string> names_of(const Entries& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

void raise(const char* type, py::tuple arguments) {
  const py::object exception = py::module_::import("paceline.errors").attr(type);
  const py::object raised = exception(*arguments);
  PyErr_SetObject(exception.ptr(), raised.ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const InputError& error) {
    const InputPlace& place = error.place();
    raise("InputError", py::make_tuple(error.what(), place.file, place.line, place.column,
                                       error.problem(), error.remedy()));
  } catch (const RunError& error) {
    raise("RunError", py::make_tuple(error.what()));
  } catch (const UnavailableError& error) {
    raise("UnavailableError", py::make_tuple(error.what()));
  }
}

}  // namespace

PYBIND11_MODULE(_core, module) {
  const py::call_guard<py::gil_scoped_release> unlocked;
  py::register_exception_translator(translate);
  module.attr("__version__") = PACELINE_VERSION;

  py::class_<models::Network>(module, "Network")
      .def_static("load", job::load_layers, unlocked)
      .def_static("parse", models::parse_network_yaml, unlocked)
      .def("to_yaml", [](const models::Network& self) { return models::to_yaml(self); })
      .def("to_json",
           [](const models::Network& self) {
             return models::network_document().text(models::work(self));
           })
      .def("__eq__", [](const models::Network& a, const models::Network& b) { return a == b; });

  py::class_<models::Cluster>(module, "Cluster")
      .def_static("load",
                  py::overload_cast<const std::string&, const std::string&>(job::load_cluster),
                  unlocked)
      .def_static(
          "parse",
          [](const std::string& text, const std::string& file) {
            return models::parse_cluster_yaml(text, file, job::read_input_file);
          },
          unlocked)
      .def("to_json",
           [](const models::Cluster& self) { return models::cluster_document().text(self); });

  py::class_<models::Profile>(module, "Profile")
      .def_static(
          "load",
          [](const std::string& name) { return job::load_profile(name, models::Cluster{}); },
          unlocked)
      .def_static("parse", models::parse_profile, unlocked)
      .def("to_json", [](const models::Profile& self) { return to_json(self); });

  py::class_<models::PlanDocument>(module, "Plan")
      .def_static("parse", models::parse_plan, unlocked)
      .def("to_json", [](const models::PlanDocument& self) { return to_json(self); })
      .def("__eq__",
           [](const models::PlanDocument& a, const models::PlanDocument& b) { return a == b; });

  py::class_<models::TracedTimeline>(module, "Timeline")
      .def_static("parse", job::parse_timeline, unlocked)
      .def("to_json",
           [](const models::TracedTimeline& self) {
             return models::chrome_trace(std::vector<models::TracedTimeline>{self});
           })
      .def("events", events_of)
      .def_property_readonly("title",
                             [](const models::TracedTimeline& self) { return self.timeline.title; })
      .def_property_readonly(
          "provenance", [](const models::TracedTimeline& self) { return self.timeline.provenance; })
      .def_property_readonly("rank",
                             [](const models::TracedTimeline& self) { return self.timeline.rank; })
      .def_property_readonly(
          "period", [](const models::TracedTimeline& self) { return self.timeline.period.value(); })
      .def_property_readonly("network",
                             [](const models::TracedTimeline& self) { return self.job.network; })
      .def_property_readonly("strategy",
                             [](const models::TracedTimeline& self) { return self.job.strategy; })
      .def_property_readonly("ranks",
                             [](const models::TracedTimeline& self) { return self.job.ranks; })
      .def("layers", [](const models::TracedTimeline& self) { return names_of(self.job.layers); })
      .def("buckets", [](const models::TracedTimeline& self) {
        py::list buckets;
        for (const models::TracedBucket& bucket : self.job.buckets)
          buckets.append(py::make_tuple(bucket.first_gradient, bucket.gradients, bucket.ready_after,
                                        bucket.bytes.value(), bucket.schedule));
        return buckets;
      });

  py::class_<Prediction>(module, "Prediction")
      .def("to_json",
           [](const Prediction& self) { return job::prediction_document().text(*self.table); })
      .def("to_text",
           [](const Prediction& self, int width) { return cli::to_text(*self.table, width); })
      .def("plan",
           [](const Prediction& self, std::size_t row) {
             return job::plan_document(self.table->rows.at(row).plan, self.table->job,
                                       self.table->network.work);
           })
      .def(
          "timeline",
          [](const Prediction& self, std::size_t row) {
            return job::row_timeline(*self.table, self.table->rows.at(row));
          },
          unlocked);

  py::class_<Scaling>(module, "Scaling")
      .def("to_json",
           [](const Scaling& self) {
             return job::scaling_document().text({self.owner->tables, self.measured});
           })
      .def("to_text",
           [](const Scaling& self, int width) {
             return cli::curve_text(*self.owner->job, self.owner->tables, width);
           })
      .def("points", [](const Scaling& self) {
        std::vector<Prediction> points;
        for (const job::PredictionTable& table : self.owner->tables)
          points.push_back({self.owner, &table});
        return points;
      });

  py::class_<Tuning>(module, "Tuning")
      .def("to_json",
           [](const Tuning& self) {
             return job::tuning_document().text(
                 {self.tuning, self.robust ? &*self.robust : nullptr});
           })
      .def("to_text",
           [](const Tuning& self, int width) {
             return cli::to_text(self.tuning, self.robust ? &*self.robust : nullptr, self.why,
                                 width);
           })
      .def("plan", [](const Tuning& self) {
        return job::plan_document(self.plan(), self.tuning.table.job,
                                  self.tuning.table.network.work);
      });

  module.def("predict", predict, unlocked);
  module.def("scale", scale, unlocked);
  module.def("tune", tune, unlocked);
  module.def("cost", cost, unlocked);
  module.def("plan_capacity", plan_capacity, unlocked);
  module.def("export_plan", export_plan, unlocked);
  module.def("sweep", sweep, unlocked);
  module.def("time", time, unlocked);
  module.def("verify", verify, unlocked);
  module.def(
      "compare",
      [](const models::TracedTimeline& run, const models::TracedTimeline& prediction,
         const models::PlanDocument* plan, const std::string& run_name,
         const std::string& prediction_name) {
        return compare(run, prediction, plan, {run_name, prediction_name});
      },
      unlocked);
  module.def("what_if", what_if, unlocked);
  module.def("keywords", keywords_of_command);
  module.def("options", options_of_command);
  module.def("read_file", job::read_input_file, unlocked);
  module.def(
      "write_file",
      [](const std::string& path, const std::string& text) { job::write_output_file(path, text); },
      unlocked);
  module.def("seconds_text", [](double seconds) { return to_text(Seconds{seconds}); });
  module.def("bytes_text", [](double bytes) { return to_text(Bytes{bytes}); });
  module.def("networks", [] { return names_of(models::zoo()); });
  module.def("clusters", [] { return names_of(models::catalog_clusters()); });
  module.def("profiles", calibration::shipped_profile_names);
  module.def("strategies", [] { return names_of(models::strategy_catalogue()); });
  module.def("all_reduces", [] { return names_of(models::all_reduce_catalogue()); });
}

}  // namespace paceline::python
