// Tests: tests/cli/compare_test.py (end to end).
#include "calibration/compare/comparison_json.h"

#include <optional>
#include <utility>

#include "calibration/compare/verdict.h"
#include "models/base/json.h"

namespace paceline::calibration {
namespace {

Json json_of(const Compared& time) {
  Json json = Json::object();
  json["measured_s"] = time.run.exists() ? Json(time.run.median.value()) : Json();
  json["measured_low_s"] = time.run.exists() ? Json(time.run.least.value()) : Json();
  json["measured_high_s"] = time.run.exists() ? Json(time.run.most.value()) : Json();
  json["predicted_s"] = time.prediction.exists() ? Json(time.prediction.median.value()) : Json();
  const std::optional<Seconds> by = time.difference();
  json["difference_s"] = by ? Json(by->value()) : Json();
  const std::optional<double> relative = time.relative();
  json["relative_difference"] = relative ? Json(*relative) : Json();
  return json;
}

Json json_of(const ComparedSide& side, const std::string& file) {
  return {
      {"file", file},      {"title", side.title},           {"provenance", side.provenance},
      {"rank", side.rank}, {"iterations", side.iterations}, {"complete_iterations", side.complete}};
}

Json interval_json(const Comparison& comparison) {
  if (!comparison.interval) return nullptr;
  const auto [low, high] = *comparison.interval;
  return {{"low_s", low.value()},
          {"high_s", high.value()},
          {"verdict", name(verdict(comparison.iteration.run.median, low, high))}};
}

}  // namespace

std::string to_json(const Comparison& comparison, const ComparedFiles& files) {
  Json json = {{"schema", "paceline.comparison/1"},
               {"run", json_of(comparison.run, files.run)},
               {"prediction", json_of(comparison.prediction, files.prediction)},
               {"model", comparison.job.network},
               {"ranks", comparison.job.ranks},
               {"strategy", comparison.job.strategy},
               {"wire_type", name(comparison.job.wire)},
               {"overlap", name(comparison.job.overlap)},
               {"iteration", json_of(comparison.iteration)},
               {"predicted_interval", interval_json(comparison)},
               {"parts", Json::array()},
               {"buckets", Json::array()},
               {"layers", Json::array()},
               {"one_sided", Json::array()},
               {"notes", comparison.notes}};
  for (const ComparedPart& part : comparison.parts) {
    Json row = {{"part", part.part}};
    row.update(json_of(part.time));
    json["parts"].push_back(std::move(row));
  }
  for (const ComparedBucket& b : comparison.buckets) {
    json["buckets"].push_back({{"bucket", b.index},
                               {"first_gradient", b.first_gradient},
                               {"gradients", b.gradients},
                               {"bytes", b.bytes.value()},
                               {"ready", json_of(b.ready)},
                               {"wait", json_of(b.wait)},
                               {"cast", json_of(b.cast)},
                               {"pack", json_of(b.pack)},
                               {"transfer", json_of(b.transfer)},
                               {"unpack", json_of(b.unpack)},
                               {"exposed", json_of(b.exposed)}});
  }
  for (const ComparedLayer& layer : comparison.layers) {
    json["layers"].push_back({{"layer", layer.name},
                              {"kind", layer.kind},
                              {"forward", json_of(layer.forward)},
                              {"backward", json_of(layer.backward)}});
  }
  for (const OneSided& only : comparison.one_sided) {
    json["one_sided"].push_back(
        {{"provenance", only.is_run ? comparison.run.provenance : comparison.prediction.provenance},
         {"task", only.task},
         {"tasks", only.tasks},
         {"time_s", only.time.value()}});
  }
  return json.indented();
}

}  // namespace paceline::calibration
