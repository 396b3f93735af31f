# Packages of Debian by CPack: `cpack --config build/release/CPackConfig.cmake`. paceline has the command
# and runs alone; paceline-dev is for find_package(paceline); paceline-simgrid and paceline-cuda have the
# modules that are linked to libraries which many machines lack; python3-paceline is for Debian's Python.
# What lintian still says of them: CPack 3.25 calls ldconfig in scripts, and cannot be told not to.
if(NOT PACELINE_INSTALL OR NOT PROJECT_IS_TOP_LEVEL)
  return()
endif()
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME paceline)
set(CPACK_PACKAGE_VERSION "${PROJECT_VERSION}")
set(CPACK_PACKAGE_VENDOR "The Paceline maintainers")
set(CPACK_PACKAGE_CONTACT "The Paceline maintainers <maintainers@paceline.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "predict, tune and run the all-reduces of training jobs")
set(about "Paceline predicts how a data-parallel training job scales before the cluster is
bought, and runs its plan for real: the iteration time of every all-reduce
strategy for a network on a cluster, with what each number rests on.")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_COMPONENTS_ALL runtime dev)
set(CPACK_PRE_BUILD_SCRIPTS "${PROJECT_SOURCE_DIR}/cmake/PacelineDebian.cmake")
set(CPACK_PACELINE_NOTICE "${PROJECT_SOURCE_DIR}/NOTICE")

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME paceline)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SUGGESTS
  "openmpi-bin, paceline-simgrid, paceline-cuda, paceline-dev, python3-paceline, python3-torch, dataset-fashion-mnist")

# What pacelineConfig.cmake looks for.
set(own "paceline (= ${PROJECT_VERSION})")
set(CPACK_DEBIAN_DEV_PACKAGE_NAME paceline-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${own}, libfmt-dev, nlohmann-json3-dev, libyaml-cpp-dev, libpugixml-dev, libeigen3-dev, \
libprotobuf-dev, protobuf-compiler, zlib1g-dev, libxxhash-dev, libisal-dev, libturbojpeg0-dev, libdnnl-dev, pkg-config")
if(PACELINE_MPI_STATE MATCHES "^Open MPI")
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libopenmpi-dev")
endif()
if(PACELINE_SODIUM_STATE MATCHES "^[0-9]")
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libsodium-dev")
endif()

if(PACELINE_SIMGRID_STATE MATCHES "^[0-9]")
  string(APPEND CPACK_DEBIAN_DEV_PACKAGE_DEPENDS ", libsimgrid-dev")
  list(APPEND CPACK_COMPONENTS_ALL simgrid)
  set(CPACK_DEBIAN_SIMGRID_PACKAGE_NAME paceline-simgrid)
  set(CPACK_DEBIAN_SIMGRID_PACKAGE_DEPENDS "${own}")
  set(CPACK_DEBIAN_SIMGRID_PACKAGE_SHLIBDEPS ON)
endif()

# CUDA's libraries may come from NVIDIA's packages or from elsewhere, so that none is a dependency.
if(PACELINE_CUDA_STATE MATCHES "^[0-9]")
  list(APPEND CPACK_COMPONENTS_ALL cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_NAME paceline-cuda)
  set(CPACK_DEBIAN_CUDA_PACKAGE_DEPENDS "${own}, libc6, libgcc-s1, libstdc++6")
  string(REGEX MATCH "^[0-9]+" cuda_major "${CMAKE_CUDA_COMPILER_VERSION}")
  set(CPACK_DEBIAN_CUDA_PACKAGE_SUGGESTS "libnccl2, libcudnn9-cuda-${cuda_major}")
endif()

# Debian's own Python compiles what it imports, and cleans up after it.
set(packs_python OFF)
if(PACELINE_PYTHON_STATE MATCHES "^[0-9]" AND PACELINE_PYTHON STREQUAL "/usr/bin/python3")
  set(packs_python ON)
  list(APPEND CPACK_COMPONENTS_ALL python)
  string(REGEX MATCH "^([0-9]+)\\.([0-9]+)" python "${PACELINE_PYTHON_VERSION}")
  math(EXPR next_minor "${CMAKE_MATCH_2} + 1")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-paceline)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "python3 (>= ${python}~), python3 (<< ${CMAKE_MATCH_1}.${next_minor}), python3-numpy")
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SHLIBDEPS ON)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SUGGESTS "paceline, python3-matplotlib, python3-onnx, python3-protobuf, python3-torch")
  foreach(script IN ITEMS postinst prerm)
    set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA ${CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA} "${CMAKE_CURRENT_LIST_DIR}/debian/${script}")
  endforeach()
  set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_STRICT_PERMISSION ON)
endif()
include(CPack)
cpack_add_component(runtime DISPLAY_NAME "Command" DESCRIPTION "${about}
This package has the command, its manual pages, completions and examples.")
cpack_add_component(dev DISPLAY_NAME "Libraries" DESCRIPTION "${about}
This package has headers and static libraries, for find_package(paceline).")
if(PACELINE_SIMGRID_STATE MATCHES "^[0-9]")
  cpack_add_component(simgrid DISPLAY_NAME "SimGrid engine" DESCRIPTION "${about}
This package has the module of --engine simgrid.")
endif()
if(PACELINE_CUDA_STATE MATCHES "^[0-9]")
  cpack_add_component(cuda DISPLAY_NAME "GPUs" DESCRIPTION "${about}
This package has the modules of --device cuda.")
endif()
if(packs_python)
  cpack_add_component(python DISPLAY_NAME "Package for Python" DESCRIPTION "${about}
This package has the module paceline for Debian's Python.")
endif()
