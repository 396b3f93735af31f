# Finds Open MPI. AUTO goes on without it; ON fails. The transport is written for MPI 3.1 and tried
# with Open MPI 4.1, Debian's.
set(PACELINE_MPI_STATE "off")
if(NOT PACELINE_WITH_MPI STREQUAL "OFF")
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(OPENMPI QUIET IMPORTED_TARGET ompi-c>=4.1)
  endif()
  if(OPENMPI_FOUND)
    set(PACELINE_MPI_STATE "Open MPI ${OPENMPI_VERSION}")
  elseif(PACELINE_WITH_MPI STREQUAL "ON")
    message(FATAL_ERROR "PACELINE_WITH_MPI is ON, and Open MPI 4.1 was not found: "
                        "install libopenmpi-dev and pkg-config")
  else()
    set(PACELINE_MPI_STATE "not found")
  endif()
endif()
