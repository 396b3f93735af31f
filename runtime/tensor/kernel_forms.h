// The forms of the kernels (kernels.h), as tables of functions: for their tests and benchmarks, and
// for the choice at run time. A form is one translation unit, compiled for its instructions;
// nothing else in it may be inline code from elsewhere, lest the linker keep that copy for all.
//
// Pointers need no alignment. The functions read `count` elements of `source`, and write, or read
// and write, as many of `target`; the two do not overlap.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace paceline::runtime {

struct KernelForm {
  const char* name;
  // target[i] = source[i], rounded to the target's type.
  void (*fp16_from_fp32)(void* target, const void* source, std::size_t count);
  void (*bf16_from_fp32)(void* target, const void* source, std::size_t count);
  void (*fp32_from_fp16)(void* target, const void* source, std::size_t count);
  void (*fp32_from_bf16)(void* target, const void* source, std::size_t count);
  // target[i] = round(target[i] + source[i]), both of one type.
  void (*add_fp32)(void* target, const void* source, std::size_t count);
  void (*add_fp16)(void* target, const void* source, std::size_t count);
  void (*add_bf16)(void* target, const void* source, std::size_t count);
  // target[i] = target[i] + source[i], the target in FP32.
  void (*add_fp16_to_fp32)(void* target, const void* source, std::size_t count);
  void (*add_bf16_to_fp32)(void* target, const void* source, std::size_t count);
  void (*scale)(void* target, float factor, std::size_t count);
  bool (*all_finite)(const void* values, std::size_t count);
  double (*sum_of_squares)(const void* values, std::size_t count);
};

// The names of all forms, the best first.
[[nodiscard]] std::span<const std::string_view> all_kernel_forms();

// The environment variable that names the best form that may run, as ONEDNN_MAX_CPU_ISA does for
// oneDNN: so the forms of lesser CPUs are tried on this one. It is read once, at the first use of a
// kernel, which throws InputError where it names no form.
inline constexpr const char* kernel_limit_variable = "PACELINE_MAX_KERNELS";

// The forms that this build has and that this CPU and the environment let run, the best first,
// "portable" last.
[[nodiscard]] std::span<const KernelForm* const> kernel_forms();
// The form of that name; null if it is not among kernel_forms().
[[nodiscard]] const KernelForm* kernel_form_named(std::string_view name);

}  // namespace paceline::runtime
