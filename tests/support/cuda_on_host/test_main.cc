// main() of tests that run on the doubles and on a GPU. With --on-doubles it fails without the
// doubles; else it fails with them, and ends with 77 (skipped) where there is no GPU. With
// --ranks-as-processes ranks of NCCL's double meet in a folder, which tests take as a sign to make them
// processes.
#include <cuda_runtime_api.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "tests/support/cuda_on_host/control.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  setenv("RC_PARAMS", "seed=20181028", 0);  // RapidCheck draws the same cases in every run
  bool on_doubles = false;
  std::string boards;
  for (int i = 1; i < argc; ++i) {
    on_doubles = on_doubles || std::string_view(argv[i]) == "--on-doubles";
    if (std::string_view(argv[i]) != "--ranks-as-processes") continue;
    boards = std::filesystem::temp_directory_path() / "paceline-boards-XXXXXX";
    if (::mkdtemp(boards.data()) == nullptr) return 1;
    setenv("CUDA_ON_HOST_RANKS", boards.c_str(), 1);
    setenv("CUDA_ON_HOST_HANGS_AFTER", "2", 0);
  }
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
  const int result = RUN_ALL_TESTS();
  if (!boards.empty()) std::filesystem::remove_all(boards);
  return result;
}
