// cuDNN's backend descriptors, owned, and its status codes as errors.
//
// A descriptor is made of a type, gets attributes, and is finalised; then it is only read. All of
// this is host work and needs no device, no driver and no cudnnHandle_t.
// Thread safety: none for one descriptor; different ones may be used by different threads.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace paceline::runtime::cudnn {

// Throws RunError("<operation>", "<status>: <what cuDNN says of it>") unless the status is success.
// cuDNN's text is made one line and cut.
void check(cudnnStatus_t status, const std::string& operation);
// The first reason that cuDNN last gave in this thread, on one line; empty if it said nothing.
[[nodiscard]] std::string last_words();

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);

  // Each throws RunError that names the attribute by its number in cudnn_graph.h.
  Descriptor& set(cudnnBackendAttributeName_t name, std::int64_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const std::int64_t> values);
  Descriptor& set(cudnnBackendAttributeName_t name, float value);
  Descriptor& set(cudnnBackendAttributeName_t name, bool value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnDataType_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, const Descriptor& value);
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnHandle_t value);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<const Descriptor> values);
  Descriptor& set(cudnnBackendAttributeName_t name, std::span<void* const> addresses);
  Descriptor& set_number32(cudnnBackendAttributeName_t name, std::int32_t value);
  Descriptor& set_text(cudnnBackendAttributeName_t name, const std::string& text);
  // An enumeration, whose type cuDNN has a number for.
  template <class Enumeration>
  Descriptor& set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  Enumeration value) {
    return set_raw(name, type, 1, &value);
  }
  // Throws RunError("finalise <what>", ...).
  Descriptor& finalise(const std::string& what);

  [[nodiscard]] std::int64_t number(cudnnBackendAttributeName_t name) const;
  [[nodiscard]] std::string text(cudnnBackendAttributeName_t name) const;
  // Elements of an enumeration; at most `most`.
  template <class Enumeration>
  [[nodiscard]] std::vector<Enumeration> list(cudnnBackendAttributeName_t name,
                                              cudnnBackendAttributeType_t type,
                                              std::size_t most) const {
    std::vector<Enumeration> values(most);
    values.resize(get_raw(name, type, most, values.data()));
    return values;
  }
  // Descriptors that this one holds, each of the given type.
  [[nodiscard]] std::vector<Descriptor> held(cudnnBackendAttributeName_t name,
                                             cudnnBackendDescriptorType_t type) const;
  // The one descriptor that this one holds.
  [[nodiscard]] Descriptor only_held(cudnnBackendAttributeName_t name,
                                     cudnnBackendDescriptorType_t type) const;

  // cuDNN's own handle of it, which this still owns.
  [[nodiscard]] cudnnBackendDescriptor_t raw() const { return raw_.get(); }

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t raw) const;
  };
  Descriptor& set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::size_t count, const void* values);
  // Returns how many were written.
  std::size_t get_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                      std::size_t most, void* values) const;
  [[nodiscard]] std::size_t count(cudnnBackendAttributeName_t name,
                                  cudnnBackendAttributeType_t type) const;

  std::unique_ptr<void, Destroy> raw_;
};

}  // namespace paceline::runtime::cudnn
