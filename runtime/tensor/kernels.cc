#include "runtime/tensor/kernels.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "models/base/error.h"
#include "models/base/names.h"
#include "models/base/to_size.h"
#include "runtime/tensor/kernel_forms.h"

namespace paceline::runtime {

extern const KernelForm portable_kernels;
extern const KernelForm avx2_kernels;
extern const KernelForm avx512_kernels;
void add_fp16_in_fp16(void* target, const void* source, std::size_t count);

namespace {

constexpr std::array<std::string_view, 4> names = {"avx512-fp16", "avx512", "avx2-f16c",
                                                   "portable"};

// The forms that run here, the best first. Throws InputError where the environment names none.
struct Forms {
  Forms() {
#ifdef PACELINE_KERNELS_X86
    __builtin_cpu_init();
    const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("f16c");
    const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") &&
                        __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
                        __builtin_cpu_supports("avx512vl");
    if (avx512 && __builtin_cpu_supports("avx512fp16")) {
      avx512_fp16 = avx512_kernels;
      avx512_fp16.name = "avx512-fp16";
      avx512_fp16.add_fp16 = &add_fp16_in_fp16;
      list[count++] = &avx512_fp16;
    }
    if (avx512) list[count++] = &avx512_kernels;
    if (avx2) list[count++] = &avx2_kernels;
#endif
    list[count++] = &portable_kernels;
    limit();
  }

  // Drops the forms that are better than the one that the environment names.
  void limit() {
    const char* const most = std::getenv(kernel_limit_variable);
    if (most == nullptr || *most == '\0') return;
    const auto* const limit = std::ranges::find(names, most);
    if (limit == names.end())
      throw unknown_name(std::string("form of kernels in ") + kernel_limit_variable, most,
                         {names.begin(), names.end()});
    const auto is_better = [&](const KernelForm* form) {
      return std::ranges::find(names, form->name) < limit;
    };
    // "portable" is never better than the one that is named.
    const auto kept = std::find_if_not(list.begin(), list.end(), is_better);
    count -= to_size(kept - list.begin());
    std::rotate(list.begin(), kept, list.end());
  }

  KernelForm avx512_fp16{};
  std::array<const KernelForm*, names.size()> list{};
  std::size_t count = 0;
};

const Forms& forms() {
  static const Forms found;
  return found;
}

const KernelForm& best() {
  return *forms().list[0];
}

}  // namespace

std::span<const std::string_view> all_kernel_forms() {
  return names;
}

std::span<const KernelForm* const> kernel_forms() {
  return std::span(forms().list).first(forms().count);
}

const KernelForm* kernel_form_named(std::string_view name) {
  for (const KernelForm* form : kernel_forms()) {
    if (form->name == name) return form;
  }
  return nullptr;
}

std::string_view kernel_form() {
  return best().name;
}

void cast_from_fp32(std::span<const float> source, NumberType type, void* target) {
  if (source.empty()) return;
  switch (type) {
    case NumberType::fp32:
      std::memcpy(target, source.data(), source.size_bytes());
      return;
    case NumberType::fp16:
      best().fp16_from_fp32(target, source.data(), source.size());
      return;
    case NumberType::bf16:
      best().bf16_from_fp32(target, source.data(), source.size());
      return;
  }
}

void cast_to_fp32(const void* source, NumberType type, std::span<float> target) {
  if (target.empty()) return;
  switch (type) {
    case NumberType::fp32:
      std::memcpy(target.data(), source, target.size_bytes());
      return;
    case NumberType::fp16:
      best().fp32_from_fp16(target.data(), source, target.size());
      return;
    case NumberType::bf16:
      best().fp32_from_bf16(target.data(), source, target.size());
      return;
  }
}

void add(NumberType type, void* target, const void* source, std::size_t count) {
  switch (type) {
    case NumberType::fp32:
      best().add_fp32(target, source, count);
      return;
    case NumberType::fp16:
      best().add_fp16(target, source, count);
      return;
    case NumberType::bf16:
      best().add_bf16(target, source, count);
      return;
  }
}

void add_to_fp32(std::span<float> target, const void* source, NumberType type) {
  switch (type) {
    case NumberType::fp32:
      best().add_fp32(target.data(), source, target.size());
      return;
    case NumberType::fp16:
      best().add_fp16_to_fp32(target.data(), source, target.size());
      return;
    case NumberType::bf16:
      best().add_bf16_to_fp32(target.data(), source, target.size());
      return;
  }
}

void scale(std::span<float> target, float factor) {
  best().scale(target.data(), factor, target.size());
}

bool all_finite(std::span<const float> values) {
  return best().all_finite(values.data(), values.size());
}

double sum_of_squares(std::span<const float> values) {
  return best().sum_of_squares(values.data(), values.size());
}

}  // namespace paceline::runtime
