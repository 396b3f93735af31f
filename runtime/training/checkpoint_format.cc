// Tests: tests/runtime/training/checkpoint_test.cc; tests/fuzz/checkpoint.cc.
#include "runtime/training/checkpoint_format.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "models/base/error.h"

namespace paceline::runtime {
namespace {

// Read by a map, whose time is n log n in the keys of any file; written in our order.
using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

constexpr const char* schema = "paceline.checkpoint/1";

struct BadHeader {
  std::string why;
};

const Json& at(const Json& object, const std::string& key) {
  if (!object.is_object() || !object.contains(key)) throw BadHeader{"no '" + key + "'"};
  return object.at(key);
}

std::string text_at(const Json& object, const std::string& key) {
  const Json& value = at(object, key);
  if (!value.is_string()) throw BadHeader{"'" + key + "' is no text"};
  return value.get<std::string>();
}

std::int64_t count_at(const Json& object, const std::string& key) {
  const Json& value = at(object, key);
  constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_unsigned() || value.get<std::uint64_t>() > most)
    throw BadHeader{"'" + key + "' is no count"};
  return value.get<std::int64_t>();
}

double scale_at(const Json& object) {
  const Json& value = at(object, "scale");
  if (!value.is_number() || !std::isfinite(value.get<double>()) || value.get<double>() <= 0)
    throw BadHeader{"'scale' is no positive number"};
  return value.get<double>();
}

bool flag_at(const Json& object, const std::string& key) {
  const Json& value = at(object, key);
  if (!value.is_boolean()) throw BadHeader{"'" + key + "' is no truth value"};
  return value.get<bool>();
}

ArrayEntry array_entry(const Json& entry) {
  if (text_at(entry, "type") != "fp32") throw BadHeader{"an array is not of FP32"};
  ArrayEntry array{text_at(entry, "name"), static_cast<std::uint64_t>(count_at(entry, "elements")),
                   text_at(entry, "xxh3_128")};
  if (array.sum.size() != 32) throw BadHeader{"a checksum has not 32 digits"};
  return array;
}

CheckpointHeader header_of(const Json& json) {
  if (text_at(json, "schema") != schema)
    throw BadHeader{std::string("the schema is not ") + schema};
  CheckpointHeader header;
  header.numbers.job = text_at(json, "job");
  header.numbers.epoch = count_at(json, "epoch");
  header.numbers.batch = count_at(json, "batch");
  header.numbers.iteration = count_at(json, "iteration");
  const Json& scale = at(json, "loss_scale");
  header.numbers.loss_scale = {scale_at(scale), count_at(scale, "good_steps"),
                               count_at(scale, "skipped"), flag_at(scale, "fixed")};
  const Json& arrays = at(json, "arrays");
  if (!arrays.is_array()) throw BadHeader{"'arrays' is no list"};
  std::set<std::string> names;
  for (const Json& entry : arrays) {
    header.arrays.push_back(array_entry(entry));
    if (!names.insert(header.arrays.back().name).second) throw BadHeader{"two arrays of one name"};
  }
  return header;
}

}  // namespace

Checksum header_sum(const CheckpointStart& start, std::string_view header) {
  Checksummer summer;
  summer.add(std::as_bytes(std::span(&start, 1)).first(16));
  summer.add(std::as_bytes(std::span(header)));
  return summer.sum();
}

std::string header_text(const Checkpoint& numbers, const std::vector<ArrayEntry>& arrays) {
  OrderedJson json = {{"schema", schema},
                      {"job", numbers.job},
                      {"epoch", numbers.epoch},
                      {"batch", numbers.batch},
                      {"iteration", numbers.iteration},
                      {"loss_scale",
                       {{"scale", numbers.loss_scale.scale},
                        {"good_steps", numbers.loss_scale.good_steps},
                        {"skipped", numbers.loss_scale.skipped},
                        {"fixed", numbers.loss_scale.fixed}}},
                      {"arrays", OrderedJson::array()}};
  for (const ArrayEntry& array : arrays) {
    json["arrays"].push_back({{"name", array.name},
                              {"type", "fp32"},
                              {"elements", array.elements},
                              {"xxh3_128", array.sum}});
  }
  try {
    return json.dump() + "\n";
  } catch (const OrderedJson::exception&) {
    throw RunError("write a checkpoint", "a name in it is no UTF-8");
  }
}

CheckpointHeader parse_header(std::string_view text, const std::string& name) {
  try {
    return header_of(Json::parse(text));
  } catch (const Json::exception&) {
    throw InputError({name}, "the header is no JSON", "give a checkpoint of this version");
  } catch (const BadHeader& error) {
    throw InputError({name}, "the header is wrong: " + error.why,
                     "give a checkpoint of this version");
  }
}

}  // namespace paceline::runtime
