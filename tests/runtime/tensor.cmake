# Tests of runtime/tensor.
paceline_runtime_test(paceline_runtime_tensor_tests SOURCES kernels_test.cc ON_AVX2 "Kernels*.*-KernelForms*")
