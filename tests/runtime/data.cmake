# Tests of runtime/data.
find_package(ZLIB REQUIRED)
find_package(PkgConfig REQUIRED)
pkg_check_modules(TURBOJPEG REQUIRED IMPORTED_TARGET libturbojpeg)
paceline_runtime_test(paceline_runtime_data_tests
  SOURCES
    data_idx_test.cc
    data_image_folder_test.cc
    data_jpeg_test.cc
    data_loader_test.cc
    data_synthetic_test.cc
    data_text_test.cc
    data_tfrecord_test.cc
  LIBRARIES
    PkgConfig::TURBOJPEG
    ZLIB::ZLIB)
