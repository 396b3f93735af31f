# Finds oneDNN, by its files: the CMake package of Debian's wants OpenCL's headers, which it does not
# need for CPUs.
find_path(PACELINE_ONEDNN_INCLUDE oneapi/dnnl/dnnl.hpp)
find_library(PACELINE_ONEDNN_LIBRARY dnnl)
if(NOT PACELINE_ONEDNN_INCLUDE OR NOT PACELINE_ONEDNN_LIBRARY)
  message(FATAL_ERROR "oneDNN was not found: install libdnnl-dev")
endif()
add_library(paceline_onednn INTERFACE)
target_include_directories(paceline_onednn SYSTEM INTERFACE "${PACELINE_ONEDNN_INCLUDE}")
target_link_libraries(paceline_onednn INTERFACE "${PACELINE_ONEDNN_LIBRARY}")
