// GPUs of the catalogue as other tools name them.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace paceline::calibration {

// The catalogue's name of a product, "NVIDIA A100-SXM4-40GB"; empty if it has none.
[[nodiscard]] std::string gpu_of_product(std::string_view product);
// The same of a device number on the PCI bus of vendor 0x10de, "0x20b0" (the PCI ID repository,
// pci-ids.ucw.cz).
[[nodiscard]] std::string gpu_of_pci_device(std::string_view device);
// The GPUs of the catalogue with a compute capability, separated by commas; empty if there is none.
[[nodiscard]] std::string gpus_of_capability(int compute_capability);
// The generation of NVLink of a GPU of the catalogue, 1 to 5; 0 if it has none, or is unknown.
[[nodiscard]] int nvlink_generation(std::string_view device);
[[nodiscard]] int nvlink_generation_of_capability(int compute_capability);
// NVLinks of a GPU of each generation, as the links nvlink1 to nvlink5 of the catalogue have them.
inline constexpr std::array<int, 6> nvlinks_of_gpu = {0, 4, 6, 12, 18, 18};

}  // namespace paceline::calibration
