# What `cmake --install` adds to the libraries and the command: find_package(paceline), the licenses,
# examples and schemas.
if(NOT PACELINE_INSTALL)
  return()
endif()
include(CMakePackageConfigHelpers)
set(config_folder "${CMAKE_INSTALL_LIBDIR}/cmake/paceline")
# Versions of the libraries that Paceline is tried with one version of, for the package to ask for.
if(PACELINE_SIMGRID_STATE MATCHES "^[0-9]")
  set(PACELINE_CONFIG_SIMGRID "pkg_check_modules(SIMGRID REQUIRED IMPORTED_TARGET simgrid=3.32)")
endif()
if(PACELINE_MPI_STATE MATCHES "^Open MPI")
  set(PACELINE_CONFIG_MPI "pkg_check_modules(OPENMPI REQUIRED IMPORTED_TARGET ompi-c>=4.1)")
endif()
if(PACELINE_SODIUM_STATE MATCHES "^[0-9]")
  set(PACELINE_CONFIG_SODIUM "pkg_check_modules(SODIUM REQUIRED IMPORTED_TARGET libsodium>=1.0.18)")
endif()
if(PACELINE_CUDA_STATE MATCHES "^[0-9]")
  set(PACELINE_CONFIG_CUDA "find_dependency(CUDAToolkit)")
endif()
configure_package_config_file("${CMAKE_CURRENT_LIST_DIR}/pacelineConfig.cmake.in"
  "${PROJECT_BINARY_DIR}/pacelineConfig.cmake" INSTALL_DESTINATION "${config_folder}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/pacelineConfigVersion.cmake"
  COMPATIBILITY SameMinorVersion)
install(EXPORT pacelineTargets NAMESPACE paceline:: DESTINATION "${config_folder}" COMPONENT dev)
install(FILES "${PROJECT_BINARY_DIR}/pacelineConfig.cmake" "${PROJECT_BINARY_DIR}/pacelineConfigVersion.cmake"
  DESTINATION "${config_folder}" COMPONENT dev)
install(FILES "${PROJECT_SOURCE_DIR}/LICENSE" "${PROJECT_SOURCE_DIR}/NOTICE" "${PROJECT_SOURCE_DIR}/CHANGELOG.md"
  DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(DIRECTORY "${PROJECT_SOURCE_DIR}/docs/examples" DESTINATION "${CMAKE_INSTALL_DOCDIR}")
