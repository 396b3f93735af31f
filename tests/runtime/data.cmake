# Tests of runtime/data.
find_package(ZLIB REQUIRED)
paceline_runtime_test(paceline_runtime_data_tests
  SOURCES
    data_idx_test.cc
    data_loader_test.cc
    data_synthetic_test.cc
  LIBRARIES
    ZLIB::ZLIB)
