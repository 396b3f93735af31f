// Tests: tests/calibration/import_machine_test.cc.
#include "calibration/import/gpu_names.h"

#include <algorithm>
#include <vector>

#include "models/cluster/catalog_parts.h"

namespace paceline::calibration {
namespace {

const std::vector<models::Device>& devices() {
  static const std::vector<models::Device> all = [] {
    std::vector<models::Device> read;
    for (const models::CatalogEntry& entry : models::catalog_devices())
      read.push_back(models::catalog_device(entry.name));
    return read;
  }();
  return all;
}

template <class Condition>
std::string first_where(Condition condition) {
  const auto found = std::ranges::find_if(devices(), condition);
  return found == devices().end() ? std::string() : found->name;
}

}  // namespace

std::string gpu_of_product(std::string_view product) {
  for (const std::string_view brand :
       {"NVIDIA ", "Tesla ", "GeForce ", "Graphics Device ", "AMD ", "Instinct "}) {
    if (product.starts_with(brand)) product.remove_prefix(brand.size());
  }
  return first_where([&](const models::Device& device) {
    return std::ranges::count(device.names.products, product) > 0;
  });
}

std::string gpu_of_pci_device(std::string_view number) {
  return first_where([&](const models::Device& device) {
    return std::ranges::count(device.names.pci, number) > 0;
  });
}

std::string gpus_of_capability(int compute_capability) {
  std::string names;
  for (const models::Device& device : devices()) {
    if (device.compute_capability != compute_capability) continue;
    names += (names.empty() ? "" : ", ") + device.name;
  }
  return names;
}

int nvlink_generation(std::string_view name) {
  const auto found = std::ranges::find(devices(), name, &models::Device::name);
  return found == devices().end() ? 0 : found->nvlink_generation;
}

int nvlink_generation_of_capability(int compute_capability) {
  const auto found = std::ranges::find_if(devices(), [&](const models::Device& device) {
    return device.compute_capability == compute_capability && device.nvlink_generation > 0;
  });
  return found == devices().end() ? 0 : found->nvlink_generation;
}

}  // namespace paceline::calibration
