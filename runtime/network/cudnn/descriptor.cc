// Tests: tests/runtime/cudnn/planner_test.cc.
#include "runtime/network/cudnn/descriptor.h"

#include <algorithm>
#include <array>

#include "models/base/error.h"
#include "models/base/to_size.h"

namespace paceline::runtime::cudnn {

static_assert(std::is_same_v<cudnnBackendDescriptor_t, void*>);

std::string last_words() {
  std::array<char, 2048> buffer{};
  cudnnGetLastErrorString(buffer.data(), buffer.size());
  std::string text = buffer.data();
  std::replace_if(
      text.begin(), text.end(), [](char c) { return static_cast<unsigned char>(c) < ' '; }, ' ');
  // It is a list of all that was tried, in which the first reason is the nearest cause.
  constexpr std::string_view mark = "Reason: ";
  if (const std::size_t first = text.find(mark); first != std::string::npos)
    text = text.substr(first + mark.size(), text.find(" Warning:", first) - first - mark.size());
  constexpr std::size_t longest = 300;
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

void check(cudnnStatus_t status, const std::string& operation) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  const std::string words = last_words();
  throw RunError(operation,
                 std::string(cudnnGetErrorString(status)) + (words.empty() ? "" : ": " + words));
}

void Descriptor::Destroy::operator()(cudnnBackendDescriptor_t raw) const {
  cudnnBackendDestroyDescriptor(raw);
}

Descriptor::Descriptor(cudnnBackendDescriptorType_t type) {
  cudnnBackendDescriptor_t raw = nullptr;
  check(cudnnBackendCreateDescriptor(type, &raw),
        "create cuDNN descriptor " + std::to_string(static_cast<int>(type)));
  raw_.reset(raw);
}

Descriptor& Descriptor::set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                std::size_t count, const void* values) {
  const cudnnStatus_t status =
      cudnnBackendSetAttribute(raw_.get(), name, type, static_cast<std::int64_t>(count), values);
  if (status != CUDNN_STATUS_SUCCESS)
    check(status, "set cuDNN attribute " + std::to_string(static_cast<int>(name)));
  return *this;
}

Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::int64_t value) {
  return set_raw(name, CUDNN_TYPE_INT64, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name,
                            std::span<const std::int64_t> values) {
  return set_raw(name, CUDNN_TYPE_INT64, values.size(), values.data());
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, float value) {
  return set_raw(name, CUDNN_TYPE_FLOAT, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, bool value) {
  return set_raw(name, CUDNN_TYPE_BOOLEAN, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
  return set_raw(name, CUDNN_TYPE_DATA_TYPE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
  return set_raw(name, CUDNN_TYPE_HANDLE, 1, &value);
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, const Descriptor& value) {
  return set(name, std::span(&value, 1));
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values) {
  std::vector<cudnnBackendDescriptor_t> raw;
  for (const Descriptor& value : values) raw.push_back(value.raw_.get());
  return set_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, raw.size(), raw.data());
}
Descriptor& Descriptor::set(cudnnBackendAttributeName_t name, std::span<void* const> addresses) {
  return set_raw(name, CUDNN_TYPE_VOID_PTR, addresses.size(), addresses.data());
}
Descriptor& Descriptor::set_number32(cudnnBackendAttributeName_t name, std::int32_t value) {
  return set_raw(name, CUDNN_TYPE_INT32, 1, &value);
}
Descriptor& Descriptor::set_text(cudnnBackendAttributeName_t name, const std::string& text) {
  return set_raw(name, CUDNN_TYPE_CHAR, text.size(), text.data());
}

Descriptor& Descriptor::finalise(const std::string& what) {
  const cudnnStatus_t status = cudnnBackendFinalize(raw_.get());
  if (status != CUDNN_STATUS_SUCCESS) check(status, "finalise " + what);
  return *this;
}

std::size_t Descriptor::get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                std::size_t most, void* values) const {
  std::int64_t count = 0;
  const cudnnStatus_t status = cudnnBackendGetAttribute(
      raw_.get(), name, type, static_cast<std::int64_t>(most), &count, values);
  if (status != CUDNN_STATUS_SUCCESS)
    check(status, "get cuDNN attribute " + std::to_string(static_cast<int>(name)));
  return std::min(to_size(std::max<std::int64_t>(count, 0)),
                  values == nullptr ? to_size(count) : most);
}

std::size_t Descriptor::count(cudnnBackendAttributeName_t name,
                              cudnnBackendAttributeType_t type) const {
  return get_raw(name, type, 0, nullptr);
}

std::int64_t Descriptor::number(cudnnBackendAttributeName_t name) const {
  std::int64_t value = 0;
  get_raw(name, CUDNN_TYPE_INT64, 1, &value);
  return value;
}

std::string Descriptor::text(cudnnBackendAttributeName_t name) const {
  std::string text(count(name, CUDNN_TYPE_CHAR), '\0');
  text.resize(get_raw(name, CUDNN_TYPE_CHAR, text.size(), text.data()));
  while (!text.empty() && text.back() == '\0') text.pop_back();
  return text;
}

std::vector<Descriptor> Descriptor::held(cudnnBackendAttributeName_t name,
                                         cudnnBackendDescriptorType_t type) const {
  const std::size_t most = count(name, CUDNN_TYPE_BACKEND_DESCRIPTOR);
  std::vector<Descriptor> descriptors;
  std::vector<cudnnBackendDescriptor_t> raw;
  for (std::size_t i = 0; i < most; ++i) raw.push_back(descriptors.emplace_back(type).raw_.get());
  const std::size_t written = get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, most, raw.data());
  descriptors.erase(descriptors.begin() + static_cast<std::ptrdiff_t>(written), descriptors.end());
  return descriptors;
}

Descriptor Descriptor::only_held(cudnnBackendAttributeName_t name,
                                 cudnnBackendDescriptorType_t type) const {
  Descriptor descriptor(type);
  cudnnBackendDescriptor_t raw = descriptor.raw_.get();
  get_raw(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, 1, &raw);
  return descriptor;
}

}  // namespace paceline::runtime::cudnn
