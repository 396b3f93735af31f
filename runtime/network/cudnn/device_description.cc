// Tests: tests/runtime/cudnn/planner_test.cc.
#include "runtime/network/cudnn/device_description.h"

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "models/base/error.h"
#include "models/base/json.h"
#include "models/base/json_reader.h"
#include "models/base/names.h"

namespace paceline::runtime::cudnn {

// Written by paceline_embed.
std::string_view embedded_file(std::string_view name);

namespace {

constexpr std::string_view schema = "paceline.cudnn-device/1";
constexpr std::int64_t largest_number = std::int64_t{1} << 53;

const std::vector<std::string>& numbers() {
  static const std::vector<std::string> keys = {"deviceVer",
                                                "driverVer",
                                                "cudaDeviceId",
                                                "regsPerBlock",
                                                "multiProcessorCount",
                                                "smClockRateKHz",
                                                "memClockRateKHz",
                                                "l2CacheSize",
                                                "warpSize",
                                                "maxSharedMemoryPerBlock",
                                                "maxSharedMemoryPerBlockOptin",
                                                "reservedSharedMemoryPerBlock",
                                                "maxRegistersPerSM",
                                                "pciDeviceId",
                                                "maxCtasPerSM",
                                                "maxThreadsPerBlock",
                                                "maxThreadsPerSM",
                                                "isTccDriver",
                                                "supportCoopLaunch",
                                                "totalGlobalMem"};
  return keys;
}
const std::vector<std::string>& triples() {
  static const std::vector<std::string> keys = {"maxGridSize", "maxBlockSize"};
  return keys;
}

// Not what tells two devices of one kind apart: place, driver, clocks.
std::string kind_of(const JsonValue& properties) {
  const auto number = [&](const char* key) { return properties.at(key).whole(0, largest_number); };
  return fmt::format("{}, sm_{}, {} multiprocessors, {} bytes of shared memory",
                     properties.at("deviceName").text(), number("deviceVer") / 10,
                     number("multiProcessorCount"), number("maxSharedMemoryPerBlockOptin"));
}

}  // namespace

DeviceDescription parse_device(std::string_view text, const std::string& file) {
  const JsonDocument document(text, file, "the device description",
                              "see runtime/network/cudnn/devices");
  const JsonValue root = document.root();
  root.check_schema(schema, "device description");
  root.check_keys({"schema", "name", "sources", "properties"});
  DeviceDescription device;
  device.name = root.at("name").text();
  root.at("sources").for_each(
      [&](const JsonValue& source) { device.sources.push_back(source.text()); });

  const JsonValue properties = root.at("properties");
  std::vector<std::string> keys = numbers();
  keys.insert(keys.end(), triples().begin(), triples().end());
  keys.emplace_back("deviceName");
  properties.check_keys(keys);
  Json taken = Json::object();
  for (const std::string& key : numbers())
    taken[key] = properties.at(key.c_str()).whole(0, largest_number);
  for (const std::string& key : triples()) {
    const JsonValue triple = properties.at(key.c_str());
    std::vector<std::int64_t> sizes;
    triple.for_each([&](const JsonValue& size) { sizes.push_back(size.whole(1, largest_number)); });
    if (sizes.size() != 3) triple.fail("it has not three sizes", "write those of x, y and z");
    taken[key] = Json(sizes);
  }
  taken["deviceName"] = properties.at("deviceName").text();
  device.compute_capability = static_cast<int>(properties.at("deviceVer").whole(100, 100'000) / 10);
  device.kind = kind_of(properties);
  device.properties = taken.in_one_line();
  return device;
}

DeviceDescription device_of_properties(std::string properties) {
  try {
    const JsonDocument document(properties, "cuDNN", "what cuDNN says of the device", "");
    DeviceDescription device;
    device.compute_capability =
        static_cast<int>(document.root().at("deviceVer").whole(100, 100'000) / 10);
    device.name = "sm_" + std::to_string(device.compute_capability) + ", " +
                  document.root().at("deviceName").text();
    device.kind = kind_of(document.root());
    device.properties = std::move(properties);
    return device;
  } catch (const InputError& error) {
    throw RunError("describe the device to cuDNN", error.what());
  }
}

std::vector<std::string> shipped_devices() {
  return {"a100-80g", "h100", "h200"};
}

DeviceDescription shipped_device(std::string_view name) {
  const std::string file = std::string(name) + ".json";
  const std::string_view text = embedded_file(file);
  if (text.empty()) throw unknown_name("described device", name, shipped_devices());
  return parse_device(text, file);
}

}  // namespace paceline::runtime::cudnn
