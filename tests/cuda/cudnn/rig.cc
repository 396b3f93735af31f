#include "tests/cuda/cudnn/rig.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace cuda_contract {
namespace {

using paceline::models::NumberType;
using paceline::runtime::cudnn::DeviceDescription;
using paceline::runtime::cudnn::Plan;
using paceline::runtime::cudnn::Planner;
using paceline::runtime::cudnn::PlanRules;
using paceline::runtime::steps::Operation;
using paceline::runtime::steps::Role;

bool is_of_the_host(Role role) {
  return role == Role::epsilon || role == Role::momentum;
}

std::size_t width(cudnnDataType_t type) {
  return type == CUDNN_DATA_FLOAT ? 4 : type == CUDNN_DATA_INT8 ? 1 : 2;
}

// The number of the type with `mantissa` bits and that smallest exponent which is nearest to the
// value, the even one of two.
double nearest(double value, int mantissa, int least_exponent, double largest) {
  if (value == 0 || !std::isfinite(value)) return value;
  int exponent = 0;
  std::frexp(value, &exponent);
  const int unit = std::max(exponent - 1, least_exponent) - mantissa;
  const double result = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  return std::abs(result) > largest ? std::copysign(INFINITY, value) : result;
}

std::uint16_t half_bits(float value) {
  const auto sign = static_cast<std::uint16_t>(std::signbit(value) ? 0x8000 : 0);
  const double magnitude = std::abs(static_cast<double>(value));
  if (std::isnan(value)) return 0x7e00;
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | 0x7c00);
  if (magnitude < 0x1p-14)
    return static_cast<std::uint16_t>(sign | static_cast<int>(std::ldexp(magnitude, 24)));
  const int exponent = std::ilogb(magnitude);
  const int fraction = static_cast<int>(std::ldexp(magnitude, 10 - exponent)) - 1024;
  return static_cast<std::uint16_t>(sign | ((exponent + 15) << 10) | fraction);
}

float half_value(std::uint16_t bits) {
  const int exponent = (bits >> 10) & 31;
  const int fraction = bits & 1023;
  double value =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  if (exponent == 31) value = fraction == 0 ? INFINITY : NAN;
  return static_cast<float>((bits & 0x8000) != 0 ? -value : value);
}

}  // namespace

DeviceDescription this_device() {
  const Raw device(CUDNN_BACKEND_DEVICEPROP_DESCRIPTOR);
  EXPECT_CUDNN(device.finalise());
  return {.name = "this device",
          .sources = {"cuDNN"},
          .compute_capability = 0,
          .kind = "",
          .properties = device.text(CUDNN_ATTR_DEVICEPROP_JSON_REPRESENTATION)};
}

std::unique_ptr<Raw> load_plan(cudnnHandle_t handle, const std::string& serialised) {
  auto plan = std::make_unique<Raw>(CUDNN_BACKEND_EXECUTION_PLAN_DESCRIPTOR);
  EXPECT_CUDNN(plan->set(CUDNN_ATTR_EXECUTION_PLAN_HANDLE, CUDNN_TYPE_HANDLE, 1, &handle));
  EXPECT_CUDNN(plan->set(CUDNN_ATTR_EXECUTION_PLAN_JSON_REPRESENTATION, CUDNN_TYPE_CHAR,
                         static_cast<std::int64_t>(serialised.size()), serialised.data()));
  EXPECT_CUDNN(plan->finalise());
  return plan;
}

std::unique_ptr<Raw> make_pack(const std::map<std::int64_t, void*>& memory, void* workspace) {
  std::vector<std::int64_t> uids;
  std::vector<void*> pointers;
  for (const auto& [uid, pointer] : memory) {
    uids.push_back(uid);
    pointers.push_back(pointer);
  }
  auto pack = std::make_unique<Raw>(CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR);
  const auto count = static_cast<std::int64_t>(uids.size());
  EXPECT_CUDNN(pack->set(CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS, CUDNN_TYPE_INT64, count, uids.data()));
  EXPECT_CUDNN(pack->set(CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS, CUDNN_TYPE_VOID_PTR, count,
                         pointers.data()));
  if (workspace != nullptr)
    EXPECT_CUDNN(pack->set(CUDNN_ATTR_VARIANT_PACK_WORKSPACE, CUDNN_TYPE_VOID_PTR, 1, &workspace));
  EXPECT_CUDNN(pack->finalise());
  return pack;
}

cudnnDataType_t data_type(NumberType type) {
  return type == NumberType::fp32   ? CUDNN_DATA_FLOAT
         : type == NumberType::fp16 ? CUDNN_DATA_HALF
                                    : CUDNN_DATA_BFLOAT16;
}

float rounded(cudnnDataType_t type, double value) {
  if (type == CUDNN_DATA_HALF) return static_cast<float>(nearest(value, 10, -14, 65504));
  if (type == CUDNN_DATA_BFLOAT16) return static_cast<float>(nearest(value, 7, -126, 0x1.fep127));
  return static_cast<float>(value);
}

std::vector<std::byte> packed(const Operand& operand) {
  std::vector<std::byte> bytes(operand.numbers.size() * width(operand.type));
  for (std::size_t i = 0; i < operand.numbers.size(); ++i) {
    const float number = rounded(operand.type, operand.numbers[i]);
    std::byte* const at = bytes.data() + i * width(operand.type);
    const std::uint16_t half =
        operand.type == CUDNN_DATA_HALF
            ? half_bits(number)
            : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(number) >> 16U);
    const auto whole = static_cast<std::int8_t>(number);
    if (operand.type == CUDNN_DATA_FLOAT)
      std::memcpy(at, &number, sizeof number);
    else if (operand.type == CUDNN_DATA_INT8)
      std::memcpy(at, &whole, sizeof whole);
    else
      std::memcpy(at, &half, sizeof half);
  }
  return bytes;
}

std::vector<float> unpacked(cudnnDataType_t type, const std::vector<std::byte>& bytes) {
  std::vector<float> numbers(bytes.size() / width(type));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::byte* const at = bytes.data() + i * width(type);
    std::uint16_t half = 0;
    std::int8_t whole = 0;
    if (type == CUDNN_DATA_FLOAT) {
      std::memcpy(&numbers[i], at, sizeof(float));
    } else if (type == CUDNN_DATA_INT8) {
      std::memcpy(&whole, at, sizeof whole);
      numbers[i] = whole;
    } else {
      std::memcpy(&half, at, sizeof half);
      numbers[i] = type == CUDNN_DATA_HALF
                       ? half_value(half)
                       : std::bit_cast<float>(static_cast<std::uint32_t>(half) << 16U);
    }
  }
  return numbers;
}

Operands execute(const Operation& operation, NumberType storage, const Operands& in, Operands out,
                 const PlanRules& rules) {
  const Plan plan = Planner(this_device()).plan(operation, storage, rules);
  const Stream stream;
  const Handle handle(stream);
  const std::unique_ptr<Raw> loaded = load_plan(handle, plan.serialised);
  EXPECT_EQ(loaded->number(CUDNN_ATTR_EXECUTION_PLAN_WORKSPACE_SIZE), plan.workspace);
  const Bytes workspace(static_cast<std::size_t>(std::max<std::int64_t>(plan.workspace, 1)));
  std::map<std::int64_t, std::unique_ptr<Bytes>> held;
  std::map<std::int64_t, void*> memory;
  std::map<Role, float> numbers;
  const auto hold = [&](Role role, std::size_t bytes) {
    const auto uid = static_cast<std::int64_t>(role);
    held[uid] = std::make_unique<Bytes>(bytes);
    memory[uid] = *held[uid];
  };
  for (const auto& [role, operand] : in) {
    if (is_of_the_host(role)) {
      numbers[role] = operand.numbers.at(0);
      memory[static_cast<std::int64_t>(role)] = &numbers[role];
      continue;
    }
    const std::vector<std::byte> bytes = packed(operand);
    hold(role, bytes.size());
    EXPECT_OK(cudaMemcpyAsync(memory[static_cast<std::int64_t>(role)], bytes.data(), bytes.size(),
                              cudaMemcpyHostToDevice, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
  }
  for (const auto& [role, operand] : out) hold(role, operand.numbers.size() * width(operand.type));
  const std::unique_ptr<Raw> pack =
      make_pack(memory, plan.workspace > 0 ? static_cast<void*>(workspace) : nullptr);
  EXPECT_CUDNN(cudnnBackendExecute(handle, *loaded, *pack));
  for (auto& [role, operand] : out) {
    std::vector<std::byte> bytes(operand.numbers.size() * width(operand.type));
    EXPECT_OK(cudaMemcpyAsync(bytes.data(), memory[static_cast<std::int64_t>(role)], bytes.size(),
                              cudaMemcpyDeviceToHost, stream));
    EXPECT_OK(cudaStreamSynchronize(stream));
    operand.numbers = unpacked(operand.type, bytes);
  }
  return out;
}

}  // namespace cuda_contract
