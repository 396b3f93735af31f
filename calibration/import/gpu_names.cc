// Tests: tests/calibration/import_machine_test.cc.
#include "calibration/import/gpu_names.h"

#include <array>

namespace paceline::calibration {
namespace {

struct Gpu {
  std::string_view name;
  std::string_view
      product;  // without "NVIDIA " and the like; a product that begins with it is meant
  std::array<std::string_view, 2> pci;
  int compute_capability;
  int nvlink;
};

// A longer product stands before a shorter one that it begins with.
constexpr std::array<Gpu, 22> gpus = {{
    {"k80", "K80", {"0x102d"}, 37, 0},
    {"m40", "M40", {"0x17fd"}, 52, 0},
    {"titan-x", "GTX TITAN X", {"0x17c2"}, 52, 0},
    {"p40", "P40", {"0x1b38"}, 61, 0},
    {"gtx-1080-ti", "GTX 1080 Ti", {"0x1b06"}, 61, 0},
    {"p100", "P100-SXM2-16GB", {"0x15f9"}, 60, 1},
    {"p100-pcie", "P100-PCIE-16GB", {"0x15f8"}, 60, 0},
    {"v100-32g", "V100-SXM2-32GB", {"0x1db5"}, 70, 2},
    {"v100", "V100-SXM2-16GB", {"0x1db1"}, 70, 2},
    {"v100-pcie", "V100-PCIE-16GB", {"0x1db4"}, 70, 0},
    {"v100-sxm3", "V100-SXM3-32GB", {"0x1db8"}, 70, 2},
    {"t4", "T4", {"0x1eb8"}, 75, 0},
    {"rtx-2080-ti", "RTX 2080 Ti", {"0x1e07", "0x1e04"}, 75, 2},
    {"titan-rtx", "TITAN RTX", {"0x1e02"}, 75, 2},
    {"a100-80g", "A100-SXM4-80GB", {"0x20b2"}, 80, 3},
    {"a100", "A100-SXM4-40GB", {"0x20b0"}, 80, 3},
    {"a100-pcie", "A100-PCIE-40GB", {"0x20f1"}, 80, 3},
    {"h100", "H100 80GB HBM3", {"0x2330"}, 90, 4},
    {"h100-pcie", "H100 PCIe", {"0x2331"}, 90, 4},
    {"h200", "H200", {"0x2335"}, 90, 4},
    {"gb200", "GB200", {}, 100, 5},
    {"b200", "B200", {"0x2901"}, 100, 5},
}};

}  // namespace

std::string gpu_of_product(std::string_view product) {
  for (const std::string_view brand : {"NVIDIA ", "Tesla ", "GeForce ", "Graphics Device "}) {
    if (product.starts_with(brand)) product.remove_prefix(brand.size());
  }
  for (const Gpu& gpu : gpus) {
    if (product == gpu.product) return std::string(gpu.name);
  }
  return {};
}

std::string gpu_of_pci_device(std::string_view device) {
  for (const Gpu& gpu : gpus) {
    for (const std::string_view pci : gpu.pci) {
      if (!pci.empty() && pci == device) return std::string(gpu.name);
    }
  }
  return {};
}

std::string gpus_of_capability(int compute_capability) {
  std::string names;
  for (const Gpu& gpu : gpus) {
    if (gpu.compute_capability != compute_capability) continue;
    names += (names.empty() ? "" : ", ") + std::string(gpu.name);
  }
  return names;
}

int nvlink_generation(std::string_view device) {
  for (const Gpu& gpu : gpus) {
    if (gpu.name == device) return gpu.nvlink;
  }
  return 0;
}

int nvlink_generation_of_capability(int compute_capability) {
  for (const Gpu& gpu : gpus) {
    if (gpu.compute_capability == compute_capability && gpu.nvlink > 0) return gpu.nvlink;
  }
  return 0;
}

}  // namespace paceline::calibration
