// A backend descriptor of cuDNN as its C functions have it.
#pragma once

#include <cudnn_graph.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace cuda_contract {

#define EXPECT_CUDNN(call) EXPECT_EQ((call), CUDNN_STATUS_SUCCESS)
#define ASSERT_CUDNN(call) ASSERT_EQ((call), CUDNN_STATUS_SUCCESS)

// Without any check of ours.
class Raw {
 public:
  explicit Raw(cudnnBackendDescriptorType_t type) {
    EXPECT_CUDNN(cudnnBackendCreateDescriptor(type, &raw_));
  }
  ~Raw() { EXPECT_CUDNN(cudnnBackendDestroyDescriptor(raw_)); }
  Raw(const Raw&) = delete;
  Raw& operator=(const Raw&) = delete;
  operator cudnnBackendDescriptor_t() const { return raw_; }  // NOLINT: is used as the descriptor

  cudnnStatus_t set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                    std::int64_t count, const void* values) const {
    return cudnnBackendSetAttribute(raw_, name, type, count, values);
  }
  [[nodiscard]] cudnnStatus_t finalise() const { return cudnnBackendFinalize(raw_); }
  [[nodiscard]] std::int64_t number(cudnnBackendAttributeName_t name) const {
    std::int64_t value = 0;
    std::int64_t count = 0;
    EXPECT_CUDNN(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_INT64, 1, &count, &value));
    return value;
  }
  [[nodiscard]] std::string text(cudnnBackendAttributeName_t name) const {
    std::int64_t count = 0;
    EXPECT_CUDNN(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_CHAR, 0, &count, nullptr));
    std::string text(static_cast<std::size_t>(count), '\0');
    EXPECT_CUDNN(cudnnBackendGetAttribute(raw_, name, CUDNN_TYPE_CHAR, count, &count, text.data()));
    return text.substr(0, text.find('\0'));
  }

 private:
  cudnnBackendDescriptor_t raw_ = nullptr;
};

}  // namespace cuda_contract
