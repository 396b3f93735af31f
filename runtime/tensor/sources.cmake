set(tensor_sources
  tensor/kernels.cc
  tensor/kernels_portable.cc
  tensor/optimizer_kernels.cc)
set(tensor_headers
  tensor/kernel_forms.h
  tensor/kernel_loops.h
  tensor/kernels.h
  tensor/optimizer_kernels.h)
# Each form is one file, compiled for its instructions; kernels.cc chooses at run time.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  list(APPEND tensor_sources
    tensor/kernels_avx2.cc
    tensor/kernels_avx512.cc
    tensor/kernels_avx512_fp16.cc)
  set_source_files_properties(tensor/kernels.cc PROPERTIES
    COMPILE_DEFINITIONS PACELINE_KERNELS_X86)
  set_source_files_properties(tensor/kernels_avx2.cc PROPERTIES
    COMPILE_OPTIONS "-mavx2;-mf16c")
  # GCC 12 takes the undefined operands of its own intrinsics for uninitialized (GCC bug 105593).
  set(avx512_options
    -mavx512f -mavx512bw -mavx512dq -mavx512vl -Wno-uninitialized -Wno-maybe-uninitialized)
  set_source_files_properties(tensor/kernels_avx512.cc PROPERTIES
    COMPILE_OPTIONS "${avx512_options}")
  set_source_files_properties(tensor/kernels_avx512_fp16.cc PROPERTIES
    COMPILE_OPTIONS "${avx512_options};-mavx512fp16")
endif()
