#include "tests/support/cuda_on_host/cudnn/descriptor.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "tests/support/cuda_on_host/world.h"

namespace cuda_on_host::cudnn {
namespace {

struct Descriptor {
  std::shared_ptr<Content> content;
  bool destroyed = false;
};

std::unordered_map<const void*, std::unique_ptr<Descriptor>>& all() {
  static auto* const one = new std::unordered_map<const void*, std::unique_ptr<Descriptor>>;
  return *one;
}

Descriptor& find(cudnnBackendDescriptor_t handle) {
  require(handle != nullptr, CUDNN_STATUS_BAD_PARAM_NULL_POINTER, "a null descriptor");
  const auto at = all().find(handle);
  if (at == all().end()) die("use of a handle that is no cuDNN descriptor");
  if (at->second->destroyed) die("use of a destroyed cuDNN descriptor");
  return *at->second;
}

// Bytes of an element in the caller's array.
std::size_t width(cudnnBackendAttributeType_t type) {
  switch (type) {
    case CUDNN_TYPE_BOOLEAN:
    case CUDNN_TYPE_CHAR:
      return 1;
    case CUDNN_TYPE_INT64:
    case CUDNN_TYPE_DOUBLE:
    case CUDNN_TYPE_HANDLE:
    case CUDNN_TYPE_VOID_PTR:
    case CUDNN_TYPE_BACKEND_DESCRIPTOR:
      return 8;
    default:
      return 4;
  }
}

template <class T>
T element(const void* values, std::size_t i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(values) + i * sizeof(T), sizeof(T));
  return value;
}

bool is_operation(cudnnBackendDescriptorType_t type) {
  return type == CUDNN_BACKEND_OPERATION_POINTWISE_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_DATA_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_CONVOLUTION_BACKWARD_FILTER_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_RESAMPLE_FWD_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_RESAMPLE_BWD_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_NORM_FORWARD_DESCRIPTOR ||
         type == CUDNN_BACKEND_OPERATION_NORM_BACKWARD_DESCRIPTOR;
}

std::string number_of(int name) {
  return "attribute " + std::to_string(name);
}

// cuDNN takes the factors of a convolution as float and as double.
bool takes(const Attribute& attribute, cudnnBackendAttributeType_t type) {
  return type == attribute.type ||
         (attribute.type == CUDNN_TYPE_FLOAT && type == CUDNN_TYPE_DOUBLE);
}

Value value_of(int name, cudnnBackendAttributeType_t type, std::size_t count, const void* values) {
  Value value;
  value.type = type;
  for (std::size_t i = 0; i < count; ++i) {
    switch (type) {
      case CUDNN_TYPE_FLOAT:
        value.reals.push_back(element<float>(values, i));
        break;
      case CUDNN_TYPE_DOUBLE:
        value.reals.push_back(element<double>(values, i));
        break;
      case CUDNN_TYPE_BOOLEAN:
        value.numbers.push_back(element<std::uint8_t>(values, i) != 0 ? 1 : 0);
        break;
      case CUDNN_TYPE_CHAR:
        value.text.push_back(element<char>(values, i));
        break;
      case CUDNN_TYPE_BACKEND_DESCRIPTOR: {
        auto* const handle = element<cudnnBackendDescriptor_t>(values, i);
        const bool in_graph = name == CUDNN_ATTR_OPERATIONGRAPH_OPS;
        require(handle != nullptr,
                in_graph ? CUDNN_STATUS_BAD_PARAM_NULL_POINTER : CUDNN_STATUS_BAD_PARAM,
                number_of(name) + ": a null descriptor");
        value.descriptors.push_back(shared(handle));
        require(!in_graph || value.descriptors.back()->finalised,
                CUDNN_STATUS_BAD_PARAM_NOT_FINALIZED, "an operation is not finalised");
        if (in_graph && !is_operation(value.descriptors.back()->type))
          die("an operation of a cuDNN graph is none");
        break;
      }
      default:
        value.numbers.push_back(width(type) == 8 ? element<std::int64_t>(values, i)
                                                 : element<std::int32_t>(values, i));
    }
  }
  return value;
}

}  // namespace

std::size_t Value::size() const {
  return numbers.size() + reals.size() + descriptors.size() + text.size();
}

void Content::put(int attribute, cudnnBackendAttributeType_t value_type,
                  std::vector<std::int64_t> numbers) {
  Value value;
  value.type = value_type;
  value.numbers = std::move(numbers);
  values[attribute] = std::move(value);
}

Content& live(cudnnBackendDescriptor_t handle) {
  return *find(handle).content;
}
ContentPointer shared(cudnnBackendDescriptor_t handle) {
  return find(handle).content;
}

cudnnBackendDescriptor_t make_descriptor(cudnnBackendDescriptorType_t type) {
  auto made = std::make_unique<Descriptor>();
  made->content = std::make_shared<Content>();
  made->content->type = type;
  Descriptor* const handle = made.get();
  all()[handle] = std::move(made);
  return handle;
}

void destroy_descriptor(cudnnBackendDescriptor_t handle) {
  Descriptor& descriptor = find(handle);
  descriptor.destroyed = true;
  descriptor.content.reset();
}

int live_descriptors() {
  return static_cast<int>(std::count_if(
      all().begin(), all().end(), [](const auto& entry) { return !entry.second->destroyed; }));
}

void forget_descriptors() {
  std::erase_if(all(), [](const auto& entry) { return entry.second->destroyed; });
}

void set_attribute(Content& content, int name, cudnnBackendAttributeType_t type, std::int64_t count,
                   const void* values) {
  require(!content.finalised, "a finalised descriptor is not changed");
  const Attribute* const attribute = find_attribute(content.type, name);
  require(attribute != nullptr && attribute->access != Attribute::Access::read_only,
          number_of(name) + " is none that is set here");
  if (name == CUDNN_ATTR_OPERATIONGRAPH_OPS && count == 0) return;
  if (type == CUDNN_TYPE_CHAR && attribute->type == type && count == 0) {
    content.values[name].type = type;
    return;
  }
  require(count > 0 && values != nullptr, number_of(name) + ": no value");
  if (!takes(*attribute, type)) {
    const bool of_pack = content.type == CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR;
    throw Refusal{of_pack ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
                  number_of(name) + " has another type"};
  }
  const bool one = attribute->count == Attribute::Count::one;
  require(
      !one || count == 1,
      type == CUDNN_TYPE_BACKEND_DESCRIPTOR ? CUDNN_STATUS_NOT_SUPPORTED : CUDNN_STATUS_BAD_PARAM,
      number_of(name) + " has one value");
  require(type != CUDNN_TYPE_HANDLE || element<const void*>(values, 0) != nullptr,
          CUDNN_STATUS_BAD_PARAM_NULL_POINTER, number_of(name) + ": a null handle");
  content.values[name] = value_of(name, type, static_cast<std::size_t>(count), values);
}

void get_attribute(const Content& content, int name, cudnnBackendAttributeType_t type,
                   std::int64_t most, std::int64_t* count, void* values) {
  require(content.type != CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, CUDNN_STATUS_NOT_SUPPORTED,
          "a variant pack is not read");
  require(content.finalised, CUDNN_STATUS_NOT_INITIALIZED, "the descriptor is not finalised");
  const Attribute* const attribute = find_attribute(content.type, name);
  require(attribute != nullptr, number_of(name) + " is none that is read here");
  require(takes(*attribute, type), CUDNN_STATUS_BAD_PARAM_ATTRIBUTE_TYPE,
          number_of(name) + " has another type");
  require(most >= 0, number_of(name) + ": a negative count");
  static const Value nothing;
  const Value& value = content.has(name) ? content.value(name) : nothing;
  const std::size_t there = value.size();
  if (values == nullptr || most == 0) {
    // cuDNN counts one configuration more than it then gives.
    const bool results = name == CUDNN_ATTR_ENGINEHEUR_RESULTS && there > 0;
    if (count != nullptr && values == nullptr)
      *count = static_cast<std::int64_t>(there + (results ? 1 : 0));
    else if (count != nullptr)
      *count = 0;
    return;
  }
  const std::size_t taken = std::min(there, static_cast<std::size_t>(most));
  std::size_t written = 0;
  for (std::size_t i = 0; i < taken; ++i) {
    std::byte* const at = static_cast<std::byte*>(values) + i * width(type);
    if (type == CUDNN_TYPE_BACKEND_DESCRIPTOR) {
      auto* const handle = element<cudnnBackendDescriptor_t>(values, i);
      if (handle == nullptr) continue;
      Content& target = live(handle);
      if (target.type != value.descriptors[i]->type) continue;
      if (target.finalised) die("a finalised cuDNN descriptor is overwritten by another one");
      target = *value.descriptors[i];
    } else if (type == CUDNN_TYPE_CHAR) {
      *at = static_cast<std::byte>(value.text[i]);
    } else if (type == CUDNN_TYPE_FLOAT) {
      const auto real = static_cast<float>(value.reals[i]);
      std::memcpy(at, &real, sizeof real);
    } else if (type == CUDNN_TYPE_DOUBLE) {
      std::memcpy(at, &value.reals[i], sizeof(double));
    } else {
      std::memcpy(at, &value.numbers[i], width(type));  // little endian
    }
    ++written;
  }
  if (count != nullptr) *count = static_cast<std::int64_t>(written);
}

}  // namespace cuda_on_host::cudnn
