# Finds SimGrid. AUTO goes on without it; ON fails. Its interface changes from release to release,
# and 3.32, Debian's, is the one that was tried.
set(PACELINE_SIMGRID_STATE "off")
if(NOT PACELINE_WITH_SIMGRID STREQUAL "OFF")
  find_package(PkgConfig QUIET)
  if(PkgConfig_FOUND)
    pkg_check_modules(SIMGRID QUIET IMPORTED_TARGET simgrid=3.32)
  endif()
  if(SIMGRID_FOUND)
    set(PACELINE_SIMGRID_STATE "${SIMGRID_VERSION}")
  elseif(PACELINE_WITH_SIMGRID STREQUAL "ON")
    message(FATAL_ERROR "PACELINE_WITH_SIMGRID is ON, and SimGrid 3.32 was not found: "
                        "install libsimgrid-dev and pkg-config")
  else()
    set(PACELINE_SIMGRID_STATE "not found")
  endif()
endif()
