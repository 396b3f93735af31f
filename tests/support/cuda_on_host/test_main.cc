// main() of tests that run on the doubles and on a GPU. With --on-doubles it fails without the
// doubles; else it fails with them, and ends with 77 (skipped) where there is no GPU.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "tests/support/cuda_on_host/control.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("RC_PARAMS", "seed=20181028", 0);  // RapidCheck draws the same cases in every run
  bool on_doubles = false;
  for (int i = 1; i < argc; ++i)
    on_doubles = on_doubles || std::string_view(argv[i]) == "--on-doubles";
  if (testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  if (on_doubles != cuda_on_host::present()) {
    std::printf(
        "the doubles of CUDA's libraries were %s %s --on-doubles: see LD_LIBRARY_PATH, and "
        "tests/support/cuda_on_host/README.md\n",
        on_doubles ? "not loaded" : "loaded", on_doubles ? "with" : "without");
    return 1;
  }
  int devices = 0;
  if (!on_doubles && (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0)) {
    std::printf("skipped: no GPU on this machine\n");
    return 77;
  }
  return RUN_ALL_TESTS();
}
