# Tests of runtime/network/cudnn, where there is a cuDNN. No GPU takes part: plans are built from
# descriptions of devices.
if(NOT TARGET paceline_cudnn)
  message(STATUS "No cuDNN (${PACELINE_CUDNN_STATE}): the tests of its plans are left out")
  return()
endif()

# A double of libcuda.so.1, so that cuDNN compiles where there is no driver. It has the real name, so
# it stands in a folder of its own, is never installed, and tests find it by LD_LIBRARY_PATH.
set(libcuda "${PROJECT_SOURCE_DIR}/tests/support/cuda_on_host/libcuda/generate.py")
set(libcuda_folder "${PROJECT_BINARY_DIR}/tests/doubles/libcuda")
set(paceline_libcuda_folder "${libcuda_folder}" CACHE INTERNAL "Folder of the double of libcuda alone")
find_library(PACELINE_LIBCUDA_STUB cuda PATHS "${CUDAToolkit_LIBRARY_DIR}/stubs" NO_DEFAULT_PATH REQUIRED)
add_custom_command(OUTPUT "${CMAKE_CURRENT_BINARY_DIR}/libcuda.cc"
  COMMAND Python3::Interpreter "${libcuda}" "${CMAKE_NM}" "${PACELINE_LIBCUDA_STUB}" > "${CMAKE_CURRENT_BINARY_DIR}/libcuda.cc"
  DEPENDS "${libcuda}" "${PACELINE_LIBCUDA_STUB}")
add_library(paceline_libcuda_double SHARED "${CMAKE_CURRENT_BINARY_DIR}/libcuda.cc")
set_target_properties(paceline_libcuda_double PROPERTIES
  OUTPUT_NAME cuda SOVERSION 1 LIBRARY_OUTPUT_DIRECTORY "${libcuda_folder}" POSITION_INDEPENDENT_CODE ON)

add_executable(paceline_cudnn_tests
  cudnn/network_plans_test.cc
  cudnn/plan_table_test.cc
  cudnn/planner_test.cc)
target_include_directories(paceline_cudnn_tests PRIVATE "${PROJECT_SOURCE_DIR}")
target_link_libraries(paceline_cudnn_tests PRIVATE
  paceline::cudnn paceline_test_support paceline_flags nlohmann_json::nlohmann_json GTest::gtest_main)
# LD_LIBRARY_PATH has to win over where the toolkit is.
target_link_options(paceline_cudnn_tests PRIVATE "LINKER:--enable-new-dtags")
paceline_test_headers(paceline_cudnn_tests)
add_dependencies(paceline_cudnn_tests paceline_libcuda_double)
gtest_discover_tests(paceline_cudnn_tests NO_PRETTY_VALUES DISCOVERY_TIMEOUT 60 TEST_FILTER "-*Slow*"
  PROPERTIES LABELS unit TIMEOUT ${paceline_hang_s})
paceline_test_environment(paceline_cudnn_tests_TESTS "RC_PARAMS=seed=20181028" "LD_LIBRARY_PATH=${libcuda_folder}")
# Every operation of every network, of which most are compiled at run time: some three minutes a
# device. Run by `ctest --test-dir build/release -C slow -L slow`.
foreach(device IN ITEMS a100 h100)
  add_test(NAME cudnn.every-plan.${device} CONFIGURATIONS slow
    COMMAND paceline_cudnn_tests "--gtest_filter=*SlowPlanTable*${device}*")
  set_tests_properties(cudnn.every-plan.${device} PROPERTIES
    LABELS slow TIMEOUT 3600 ENVIRONMENT "LD_LIBRARY_PATH=${libcuda_folder}" SKIP_REGULAR_EXPRESSION "\\[  SKIPPED \\]")
endforeach()
