// What cuDNN has to know of a GPU to plan for it, so that it can where there is none.
//
// cuDNN takes 23 properties as JSON (CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION, from 9.11): those of
// cudaDeviceProp that its heuristics and limits ask for. Shipped descriptions are written by hand
// from data sheets, each with its sources; that of the H100 agrees with what one says of itself.
//
// The file: {"schema": "paceline.cudnn-device/1", "name", "sources": [...], "properties": {...}}.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace paceline::runtime::cudnn {

struct DeviceDescription {
  std::string name;  // as in the catalogue of devices: "h100"
  std::vector<std::string> sources;
  int compute_capability = 0;  // times ten: 80, 90
  std::string kind;            // what devices have in common that may use one another's plans
  std::string properties;      // the JSON that cuDNN takes
};

// Throws InputError that names the file and the place unless all properties are there, whole numbers
// from 0 (the device's name: a text), and no others.
[[nodiscard]] DeviceDescription parse_device(std::string_view text, const std::string& file);

// The device that cuDNN has described. Its name is "sm_90" with the device's own behind it. Throws
// RunError if the text is not what cuDNN writes.
[[nodiscard]] DeviceDescription device_of_properties(std::string properties);

// "a100-80g", "h100", "h200".
[[nodiscard]] std::vector<std::string> shipped_devices();
// Throws InputError that suggests the nearest name.
[[nodiscard]] DeviceDescription shipped_device(std::string_view name);

}  // namespace paceline::runtime::cudnn
